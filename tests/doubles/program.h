// tests/doubles/program.h - kernel texts to libraries of the host, and libraries to kernels.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/doubles/device_abi.h"

namespace tenon_double {

// What a compiler double hands out as "code": this head, then the bytes of a shared library.
struct ImageHead { char magic[16], target[32]; unsigned long long bytes; };

// False with the log. target: "sm_90", "compute_80", "gfx90a:xnack-". Compiled ones are kept in the cache's folder.
bool compile(const std::string& text, const std::string& target, const std::string& more_flags, std::string* image, std::string* log);

// A loaded image.
class Module {
 public:
  // NULL when `image` is none of ours.
  static std::shared_ptr<Module> load(const void* image, std::string* target);
  ~Module();
  const TenonKernel* kernel(const std::string& name) const;

 private:
  void* library_ = nullptr;
};

}  // namespace tenon_double
