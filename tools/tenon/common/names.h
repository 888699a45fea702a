// tools/tenon/common/names.h - words for the numbers of the ABI.
#pragma once
#include <cstdint>
#include <string>
#include <tenon/types.h>
#include <vector>

namespace tenon::cli {

std::string dtype_name(uint32_t dtype);          // "f32"; "dtype 77" when unknown
uint32_t dtype_number(const std::string& name);  // 0 when unknown
std::vector<std::string> dtype_names(uint64_t mask);
std::string kind_name(uint32_t kind);            // "cpu", "cuda", ...; "kind 0x80001234" of a vendor
std::string load_code_name(uint32_t code);       // "in-use", "not-a-plugin"; what tn_plugin_entry.code stands for
std::string stage_name(uint32_t stage);          // "find" ... "start"
std::vector<std::string> isa_names(const uint64_t words[4]);  // "avx2", ... of TN_CAPKEY_ISA_0..3

// A capability as shown: key, value with its unit, where it comes from.
struct CapText {
  std::string key, value, unit, source;
  bool is_number = false;
  double number = 0;
};
CapText cap_text(const tn_cap& cap);

}  // namespace tenon::cli
