// tools/tenon/op/captured.h - a runtime whose plugins, devices and kernels are those of a captured machine.
//
// The core itself judges the captured conditions, as it judges live ones: each captured plugin is linked into a runtime of its
// own as a plugin that has the recorded devices and kernels and can run nothing. What only the machine knows - supports(),
// estimates, memory - is not answered here.
// One thread. Owns the runtime; the machine must outlive it.
#pragma once
#include <string>
#include <tenon/runtime.h>
#include <vector>

#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {

class CapturedRuntime {
 public:
  explicit CapturedRuntime(const Machine& machine);  // throws what the core says of a record that it does not take
  ~CapturedRuntime();
  CapturedRuntime(const CapturedRuntime&) = delete;
  CapturedRuntime& operator=(const CapturedRuntime&) = delete;

  tn_runtime* handle() const { return runtime_; }
  uint32_t device(const DeviceRecord& record) const;  // its id in this runtime
  // The record that a row is about; nullptr: an expansion.
  const KernelRecord* kernel_of(const tn_candidate& row) const;
  std::string plugin_of(const tn_candidate& row) const;  // id on the machine

 private:
  const PluginRecord* plugin(uint32_t index) const;
  const Machine& machine_;
  tn_runtime* runtime_ = nullptr;
  std::vector<uint32_t> slots_;  // of machine.plugins: index in the runtime; TN_NONE = has neither devices nor kernels
};

}  // namespace tenon::cli
