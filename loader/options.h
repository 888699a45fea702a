// loader/options.h - what a caller of tn_runtime_create may ask for, checked before anything is built.
#pragma once
#include <tenon/runtime.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loader/search.h"

namespace tenon::loader {

// The loader's part of tn_runtime_options; the kernel reads its own.
struct BootOptions {
  bool search = true;                          // false: TN_RT_NO_SEARCH
  std::optional<std::vector<Folder>> folders;  // given by the caller: they replace the standard ones
  std::vector<std::string> allow;              // ids and sha256:...; empty = the setting's
  uint32_t trust = 0;                          // TN_TRUST_*; off = the setting's
  std::string cache_dir;                       // empty = the setting's
};
tn_status read_options(const tn_runtime_options* options, BootOptions* out, tn_diag* diag);

// Refuses chains with an unknown critical extension (this version knows none), a repeat, or more than 16 links.
tn_status check_extensions(const tn_ext* first, const char* owner, tn_diag* diag);

// "sim.devices=2;cpu.isa=avx2", the text of TENON_CONFIG. TN_E_ARG names the entry that is not key=value.
tn_status parse_config(const std::string& text, std::map<std::string, std::string>* out, tn_diag* diag);

}  // namespace tenon::loader
