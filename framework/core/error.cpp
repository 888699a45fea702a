// The form of errors: what, where, why, try.
#include <tenon/core/error.hpp>

#include "framework/core/state.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace tenon {
namespace {

constexpr const char* kFamilies[] = {"",     "ARG",  "SHAPE", "DTYPE", "STATE", "MEM",  "OP",  "DEVICE",
                                     "LOAD", "POLICY", "DATA",  "FILE",  "CONF",  "GRAD", "TRAIN", "ABI"};

// The family that a plain status belongs to, for failures that carry no id.
uint32_t family_of(tn_status status) {
  switch (status) {
    case TN_E_SHAPE: return error::kShape;
    case TN_E_DTYPE: return error::kDtype;
    case TN_E_OOM: return error::kMem;
    case TN_E_POLICY: return error::kPolicy;
    case TN_E_STATE: case TN_E_BUSY: return error::kState;
    case TN_E_UNSUPPORTED: case TN_E_FAILED: case TN_E_DEPENDS: case TN_E_STALE: return error::kOp;
    case TN_E_UNAVAILABLE: case TN_E_DEVICE_LOST: return error::kDevice;
    case TN_E_IO: return error::kFile;
    case TN_E_ABI: case TN_E_EXT: case TN_E_BUG: return error::kAbi;
    default: return error::kArg;
  }
}

// Takes "why: ...", "try: ..." and "where: ..." lines out of a message; what is left is the summary.
void split(std::string_view msg, std::string& summary, std::string& where, std::string& why, std::string& advice) {
  std::string* target = &summary;
  for (bool first = true; !msg.empty(); first = false) {
    const size_t end = msg.find('\n');
    std::string_view line = msg.substr(0, end);
    msg = end == std::string_view::npos ? std::string_view{} : msg.substr(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const struct { std::string_view head; std::string* to; } heads[] = {{"where:", &where}, {"why:", &why}, {"try:", &advice}};
    for (const auto& h : heads) {
      if (first || line.substr(0, h.head.size()) != h.head) continue;  // the first line may be about the op `where`
      target = h.to;
      line.remove_prefix(h.head.size());
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      break;
    }
    if (!target->empty()) *target += ' ';
    *target += line;
  }
}

}  // namespace

std::string id_text(uint32_t id, tn_status status) {
  const uint32_t family = id >> 16 ? id >> 16 : family_of(status);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "TN-%s-%03u", family < 16 ? kFamilies[family] : "EXT", id & 0xFFFF);
  return buffer;
}

std::string to_string(Where where) {
  if (where.file == nullptr || where.file[0] == 0) return "";
  const char* slash = std::strrchr(where.file, '/');
  return detail::format("%s:%u", slash ? slash + 1 : where.file, where.line);
}

Error::Error(tn_status status, uint32_t id, std::string summary, Where line, std::string detail, std::string why, std::string advice)
    : status_(status), id_number_(id), line_(line), id_(id_text(id, status)), summary_(std::move(summary)), detail_(std::move(detail)),
      why_(std::move(why)), advice_(std::move(advice)) {
  compose();
}

Error::Error(const tn_diag& diag, Where line, const char* op, const char* device)
    : status_(diag.status), id_number_(diag.id), line_(line), id_(id_text(diag.id, diag.status)) {
  std::string noted;
  split(std::string_view(diag.msg, std::min<size_t>(diag.len, sizeof diag.msg)), summary_, noted, why_, advice_);
  if (summary_.empty()) summary_ = tn_status_text(diag.status);
  if (op && *op) detail_ = "op " + std::string(op);
  if (device && *device) detail_ += (detail_.empty() ? "device " : ", device ") + std::string(device);
  // Work that failed earlier names the line that asked for it; the line that noticed stands first.
  if (!noted.empty() && noted.rfind(tenon::to_string(line), 0) != 0) detail_ += (detail_.empty() ? "" : ", ") + ("asked for at " + noted);
  compose();
}

void Error::add_context(const std::string& where, const std::string& why) {
  if (std::exchange(has_context_, true)) return;
  if (!where.empty()) detail_ += (detail_.empty() ? "" : ", ") + where;
  if (!why.empty()) why_ += (why_.empty() ? "" : "; ") + why;
  compose();
}

void Error::relocate(Where line) {
  if (line_.file != nullptr && line_.file[0] != 0 && std::strstr(line_.file, "framework/nn/") == nullptr) return;
  line_ = line;
  compose();
}

void Error::compose() {
  where_ = tenon::to_string(line_);
  if (!detail_.empty()) where_ += (where_.empty() ? "" : ", ") + detail_;
  text_ = "error[" + id_ + "]: " + summary_;
  if (!where_.empty()) text_ += "\n  where: " + where_;
  if (!why_.empty()) text_ += "\n  why:   " + why_;
  if (!advice_.empty()) text_ += "\n  try:   " + advice_;
}

std::string nearest_name(const std::string& word, const std::string* known, size_t n) {
  size_t best = word.size() / 3 + 2;
  std::string name;
  for (size_t k = 0; k < n; ++k) {  // Levenshtein distance, two rows
    const std::string& other = known[k];
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= other.size(); ++j) {
        const size_t change = diagonal + (word[i - 1] != other[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < best) best = row.back(), name = other;
  }
  return name;
}

namespace detail {

std::string format(const char* f, ...) {
  char buffer[512];
  va_list args;
  va_start(args, f);
  const int n = std::vsnprintf(buffer, sizeof buffer, f, args);
  va_end(args);
  return std::string(buffer, static_cast<size_t>(std::clamp(n, 0, static_cast<int>(sizeof buffer) - 1)));
}

void raise(tn_status status, uint32_t id, Where where, const char* op, const char* summary, std::string why, std::string advice) {
  throw Error(status, id, summary, where, op && *op ? "op " + std::string(op) : std::string(), std::move(why), std::move(advice));
}

void raise(const tn_diag& diag, tn_status status, Where where, const char* op, const DeviceState* device) {
  tn_diag d = diag;
  if (d.status == TN_OK || d.len > sizeof d.msg) d = tn_diag{sizeof d};  // a callee that left no diagnosis
  d.status = status;
  throw Error(d, where, op, device ? device->name : nullptr);
}

void require_defined(const Tensor& t, const char* op, const char* operand, Where where) {
  if (t.defined()) return;
  raise(TN_E_ARG, error::id(error::kArg, 101), where, op, "an operand is an undefined tensor",
        format("%s: operand %s holds no tensor", op, operand), "assign a tensor to it before the call");
}

}  // namespace detail
}  // namespace tenon
