#include "tools/tenon/op/spec.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/names.h"

namespace tenon::cli {
namespace {

[[noreturn]] void bad_spec(const std::string& text, const std::string& why) {
  throw Failure(kUsage, "TN-CLI-004", "operand \"" + text + "\" is not understood", "", why, "write it like f32[512,512], or - for an absent one");
}

// "1,2,3" up to `close`; nothing when it is malformed. An empty list is a list.
std::optional<std::vector<int64_t>> integers(const std::string& text) {
  std::vector<int64_t> list;
  const char *at = text.data(), *end = at + text.size();
  if (at == end) return list;
  for (;;) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || stop == at) return std::nullopt;
    list.push_back(value);
    if (stop == end) return list;
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
}

void row_major(tn_type* type) {
  int64_t stride = 1;
  for (int k = type->rank - 1; k >= 0; --k) {
    type->stride[k] = stride;
    if (type->dim[k] > 1 && __builtin_mul_overflow(stride, type->dim[k], &stride)) stride = INT64_MAX;
  }
}

}  // namespace

tn_type parse_spec(const std::string& text) {
  tn_type type{};
  if (text == "-") return type;
  const size_t open = text.find('[');
  const std::string name = text.substr(0, open);
  const uint32_t dtype = dtype_number(name);
  if (dtype == 0) bad_spec(text, "\"" + name + "\" is no element type; bool u8 i8 i32 i64 f16 bf16 f32 f64 are some");
  type.dtype = static_cast<uint8_t>(dtype);
  type.align_log2 = 6;  // what the core's own memory gives
  if (open == std::string::npos) bad_spec(text, "the dims in brackets are missing; f32[] is a scalar");
  const size_t close = text.find(']', open);
  if (close == std::string::npos) bad_spec(text, "the bracket is not closed");
  const auto dims = integers(text.substr(open + 1, close - open - 1));
  if (!dims) bad_spec(text, "the dims must be whole numbers with commas between");
  if (dims->size() > TN_MAX_RANK) bad_spec(text, std::to_string(dims->size()) + " dims are given, at most " + std::to_string(TN_MAX_RANK) + " are possible");
  type.rank = static_cast<uint8_t>(dims->size());
  for (size_t k = 0; k < dims->size(); ++k) {
    if ((*dims)[k] < 0) bad_spec(text, "dim " + std::to_string(k) + " is " + std::to_string((*dims)[k]) + "; it must be 0 or more");
    type.dim[k] = (*dims)[k];
  }
  row_major(&type);
  const std::string rest = text.substr(close + 1);
  if (rest.empty()) return type;
  const auto strides = rest.front() == '{' && rest.back() == '}' ? integers(rest.substr(1, rest.size() - 2)) : std::nullopt;
  if (!strides || strides->size() != dims->size()) bad_spec(text, "\"" + rest + "\" behind the dims must be one stride a dim in braces, like {1,512}");
  std::copy(strides->begin(), strides->end(), type.stride);
  return type;
}

std::string spec_text(const tn_type& type) {
  if (type.dtype == 0) return "-";
  auto list = [&](const int64_t* values) {
    std::string text;
    for (int k = 0; k < type.rank; ++k) text += (k ? "," : "") + std::to_string(values[k]);
    return text;
  };
  tn_type dense = type;
  row_major(&dense);
  bool strided = false;
  for (int k = 0; k < type.rank; ++k) strided |= type.dim[k] > 1 && type.stride[k] != dense.stride[k];
  return dtype_name(type.dtype) + "[" + list(type.dim) + "]" + (strided ? "{" + list(type.stride) + "}" : "");
}

}  // namespace tenon::cli
