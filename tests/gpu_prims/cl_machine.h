// tests/gpu_prims/cl_machine.h - runs recipes on an OpenCL device, step by step, with the bindings that a recipe promises.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <tenon/ops.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/gpu/recipe.h"
#include "ops/gpu/render.h"

namespace tenon::test {

// A view of a plan: the bytes of a whole buffer, and where the view's first element lies in it.
struct HostView { std::vector<unsigned char>* bytes; int64_t offset; };

class ClMachine {
 public:
  static ClMachine* get();  // NULL where there is no OpenCL device; made once
  gpu::Caps caps() const { return caps_; }
  // Runs a recipe; returns the error word's code (0 = none). Fails the running test on any error of OpenCL.
  uint32_t run(const gpu::Caps&, const gpu::Recipe&, std::vector<HostView> views, const void* push);
  // Processor time per run of a recipe whose buffers stay on the device, in seconds; the least of several.
  double seconds(const gpu::Caps&, const gpu::Recipe&, std::vector<HostView> views, int repeats);
  size_t kernels() const { return kernels_.size(); }

 private:
  ClMachine() = default;
  bool open();
  cl_kernel kernel(const gpu::KernelSpec&, const gpu::RenderOptions&);
  struct Ready { cl_kernel kernel; std::vector<cl_mem> args; std::vector<unsigned char> params; bool by_value, can_fail; cl_mem params_buffer; size_t global[3], local[3]; };
  std::vector<Ready> ready(const gpu::Caps&, const gpu::Recipe&, const std::vector<cl_mem>&, const std::vector<HostView>&, const void* push, std::vector<cl_mem>* made);
  void enqueue(const Ready&, cl_mem error);
  cl_context context_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_command_queue queue_ = nullptr;
  gpu::Caps caps_;
  std::map<std::string, cl_kernel> kernels_;
};

// 64 KiB bindings, 64 bytes of parameters, 8 KiB of local memory, 32 threads, 32-bit indices.
gpu::Caps lowered(gpu::Caps);

}  // namespace tenon::test
