// backends/gpu_common/cu_like/library.h - opens the driver's library and the compiler's; nothing is linked.
#pragma once
#include <tenon/plugin.h>

#include <string>
#include <vector>

#include "backends/gpu_common/cu_like/api.h"

namespace tenon::gpu::cu_like {

// A setting of the plugin, or NULL.
const char* setting(const tn_host* host, const char* key);

// A library, open until the process ends: drivers keep threads and exit handlers, so they are never unloaded.
class Library {
 public:
  // The first of `names` that opens, or `instead` alone where it is not NULL (a path from the configuration).
  // False: none opens; tried() says why.
  bool open(const std::vector<std::string>& names, const char* instead);
  void* symbol(const char* name) const;
  const std::string& path() const { return path_; }  // of the file that was opened
  const std::string& tried() const { return tried_; }

 private:
  void* handle_ = nullptr;
  std::string path_, tried_;
};

// Fills the table. errors: TN_E_UNAVAILABLE naming the symbol that an old library lacks.
tn_status bind(const Library&, const Symbol* symbols, size_t n, Api* out, const char* plugin, tn_diag*);

}  // namespace tenon::gpu::cu_like
