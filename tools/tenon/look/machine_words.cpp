// Machine files: the words of the format.
#include <iterator>

#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {

const char* need_name(uint32_t kind) {
  static constexpr const char* kNames[] = {nullptr, "dtype", "rank", "layout", "contiguous", "dim", "dim-multiple", "align", "space", "same-type", "attr", "cap", "device-kind",
                                           "program-opcodes", "program-limits", "static", "bytes"};
  return kind < std::size(kNames) ? kNames[kind] : nullptr;
}

const char* cap_type_name(uint32_t type) {
  static constexpr const char* kNames[] = {"u64", "i64", "f64", "text"};
  return type < std::size(kNames) ? kNames[type] : nullptr;
}

const char* source_name(uint32_t provenance) {
  static constexpr const char* kNames[] = {nullptr, "measured", "driver", "table", "guess"};
  return provenance < std::size(kNames) ? kNames[provenance] : nullptr;
}

}  // namespace tenon::cli
