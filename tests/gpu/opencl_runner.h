// tests/gpu/opencl_runner.h - runs a recipe on the machine's first OpenCL device, in as little host code as it takes.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ops/gpu/recipe.h"
#include "ops/gpu/render.h"

namespace tenon::gpu::testing {

// A view: all bytes of its buffer, and the byte offset of element [0,...,0].
struct HostView { std::vector<char> bytes; int64_t offset = 0; };

class OpenClRunner {
 public:
  OpenClRunner() {
    cl_platform_id platform = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS) return;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    queue_ = clCreateCommandQueue(context_, device_, 0, nullptr);
  }
  ~OpenClRunner() {
    if (context_ != nullptr) clReleaseCommandQueue(queue_), clReleaseContext(context_);
  }
  bool usable() const { return context_ != nullptr; }

  // Views as in the plan; results are written back. Returns "" or what went wrong.
  std::string run(const Recipe& recipe, const Caps& caps, std::vector<HostView*> views, const void* push) {
    HostView workspace{std::vector<char>(recipe.workspace_bytes), 0};
    if (recipe.workspace_bytes > 0) views.push_back(&workspace);
    std::vector<cl_mem> memory;
    for (HostView* v : views) memory.push_back(clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, std::max<size_t>(v->bytes.size(), 1), v->bytes.empty() ? &zero_ : v->bytes.data(), nullptr));
    std::string wrong;
    for (const Step& step : recipe.steps)
      if (wrong.empty()) wrong = run_step(step, caps, views, memory, push);
    for (size_t k = 0; k < views.size(); ++k) {
      if (!views[k]->bytes.empty()) clEnqueueReadBuffer(queue_, memory[k], CL_TRUE, 0, views[k]->bytes.size(), views[k]->bytes.data(), 0, nullptr, nullptr);
      clReleaseMemObject(memory[k]);
    }
    return wrong;
  }
  uint32_t error_word[4] = {};

 private:
  std::string run_step(const Step& step, const Caps& caps, const std::vector<HostView*>& views, const std::vector<cl_mem>& memory, const void* push) {
    const RenderOptions options = render_options(*step.spec, caps);
    const std::string text = render(*step.spec, options);
    const char* source = text.c_str();
    cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, nullptr);
    if (clBuildProgram(program, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS) {
      std::vector<char> log(20000);
      clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
      return std::string(log.data()) + text;
    }
    cl_kernel kernel = clCreateKernel(program, step.spec->name.c_str(), nullptr);
    std::vector<uint8_t> params = step.params;
    for (const Patch& p : step.patches) {  // whole buffers are bound: the start is the reach's place in its buffer
      const Reach& r = step.reach[p.kind == Patch::ElementStart ? p.index : 0];
      const uint64_t width = p.kind == Patch::ElementStart ? element_size(step.spec->buffers[p.index].dtype) : 1;
      const uint64_t start = static_cast<uint64_t>(views[r.view]->offset + r.byte_offset) / width;
      std::memcpy(&params[p.at], p.kind == Patch::Push ? static_cast<const char*>(push) + 8 * p.index : reinterpret_cast<const char*>(&start), p.bytes);
    }
    cl_uint n = 0;
    for (const Reach& r : step.reach) clSetKernelArg(kernel, n++, sizeof(cl_mem), &memory[r.view]);
    cl_mem block = nullptr, error = nullptr;
    if (options.params_in_buffer && !params.empty()) {
      block = clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, params.size(), params.data(), nullptr);
      clSetKernelArg(kernel, n++, sizeof block, &block);
    }
    if (step.spec->can_fail) {
      error = clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, sizeof error_word, error_word, nullptr);
      clSetKernelArg(kernel, n++, sizeof error, &error);
    }
    if (!options.params_in_buffer && !params.empty()) clSetKernelArg(kernel, n++, params.size(), params.data());
    size_t global[3], local[3];
    for (int d = 0; d < 3; ++d) local[d] = step.spec->group[d], global[d] = local[d] * step.groups[d];
    const cl_int status = clEnqueueNDRangeKernel(queue_, kernel, 3, nullptr, global, local, 0, nullptr, nullptr);
    clFinish(queue_);
    if (error != nullptr) clEnqueueReadBuffer(queue_, error, CL_TRUE, 0, sizeof error_word, error_word, 0, nullptr, nullptr), clReleaseMemObject(error);
    if (block != nullptr) clReleaseMemObject(block);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    return status == CL_SUCCESS ? "" : "launch failed: " + std::to_string(status);
  }
  static uint64_t element_size(uint32_t dtype) {
#define TENON_SIZE_(name, id, bits) case id: return bits / 8;
    switch (dtype) { TN_DTYPES(TENON_SIZE_) default: return 1; }
#undef TENON_SIZE_
  }
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  char zero_ = 0;
};

}  // namespace tenon::gpu::testing
