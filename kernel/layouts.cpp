#include "kernel/layouts.h"

#include <algorithm>
#include <cctype>

#include "kernel/status.h"

namespace tenon::kernel {
namespace {

constexpr size_t kMaxName = 63;

bool well_formed(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_'; });
}

}  // namespace

tn_status LayoutTable::intern(const char* text, uint8_t* out, tn_diag* diag) {
  const std::string name = text;
  if (!well_formed(name))
    return fail(diag, TN_E_BUG, id(kAbi, 8), "malformed layout name\nwhy: \"%.70s\" is empty, longer than %zu bytes, or has other characters\ntry: letters, digits, '.' and '_'", text, kMaxName);
  std::lock_guard lock(mutex_);
  const auto end = names_.begin() + count_, at = std::find(names_.begin(), end, name);
  if (at == end && count_ == kLimit)
    return fail(diag, TN_E_LIMIT, id(kState, 13), "too many layouts\nwhy: %u names are known, %s would be one more\ntry: load fewer plugins, or make a new runtime", kLimit, text);
  if (at == end) names_[count_++] = name;
  *out = static_cast<uint8_t>(TN_LAYOUT_OPAQUE + (at - names_.begin()));
  return TN_OK;
}

const char* LayoutTable::find(uint32_t layout) const {
  if (layout == TN_LAYOUT_STRIDED) return "strided";
  std::lock_guard lock(mutex_);
  return layout >= TN_LAYOUT_OPAQUE && layout - TN_LAYOUT_OPAQUE < count_ ? names_[layout - TN_LAYOUT_OPAQUE].c_str() : nullptr;
}

}  // namespace tenon::kernel
