// tests/gpu_prims/cl_machine.cpp
#include "tests/gpu_prims/cl_machine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ctime>

#include "ops/gpu/text.h"

namespace tenon::test {
namespace {

constexpr uint64_t bit(uint32_t d) { return uint64_t{1} << d; }
int64_t floor_to(int64_t n, int64_t step) { return n / step * step; }

}  // namespace

gpu::Caps lowered(gpu::Caps c) {
  c.binding_bytes = 65536, c.param_bytes = 64, c.local_bytes = 8192, c.max_threads = 32, c.index64 = false;
  for (uint32_t& n : c.max_group) n = std::min(n, 32u);
  return c;
}

ClMachine* ClMachine::get() {
  static ClMachine machine;
  static const bool there = machine.open();
  return there ? &machine : nullptr;
}

bool ClMachine::open() {
  cl_platform_id platform;
  cl_uint n = 0;
  cl_int e;
  if (clGetPlatformIDs(1, &platform, &n) != CL_SUCCESS || n == 0) return false;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS) return false;
  context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &e);
  queue_ = clCreateCommandQueue(context_, device_, 0, &e);
  cl_uint align = 0, units = 0;
  clGetDeviceInfo(device_, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align, &align, nullptr);
  clGetDeviceInfo(device_, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
  caps_.dialect = gpu::Dialect::OpenCl, caps_.device_class = gpu::DeviceClass::Processor;
  const uint64_t ints = bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) | bit(TN_I64);
  caps_.storage = ints | bit(TN_F16) | bit(TN_BF16) | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F32) | bit(TN_F64);
  caps_.arithmetic = ints | bit(TN_F32) | bit(TN_F64);
  caps_.max_threads = 256, caps_.local_bytes = 32768, caps_.param_bytes = 1024, caps_.max_bindings = 32;
  caps_.binding_align = align / 8, caps_.compute_units = units, caps_.binding_bytes = uint64_t{1} << 30, caps_.vector_bytes = 64;
  return e == CL_SUCCESS;
}

cl_kernel ClMachine::kernel(const gpu::KernelSpec& spec, const gpu::RenderOptions& options) {
  const std::string text = gpu::render(spec, options);
  if (auto it = kernels_.find(text); it != kernels_.end()) return it->second;
  const char* source = text.c_str();
  cl_int e;
  cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &e);
  if (clBuildProgram(program, 1, &device_, "", nullptr, nullptr) != CL_SUCCESS) {
    char log[4096] = "";
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr);
    ADD_FAILURE() << log << "\n" << text;
    return nullptr;
  }
  cl_kernel k = clCreateKernel(program, spec.name.c_str(), &e);
  EXPECT_EQ(e, CL_SUCCESS);
  return kernels_[text] = k;
}

std::vector<ClMachine::Ready> ClMachine::ready(const gpu::Caps& caps, const gpu::Recipe& recipe, const std::vector<cl_mem>& mem, const std::vector<HostView>& views,
                                               const void* push, std::vector<cl_mem>* made) {
  std::vector<Ready> all;
  for (const gpu::Step& step : recipe.steps) {
    const gpu::RenderOptions options = gpu::render_options(*step.spec, caps);
    Ready r{kernel(*step.spec, options), {}, step.params, !options.params_in_buffer && !step.spec->scalars.empty(), step.spec->can_fail, nullptr, {}, {}};
    if (r.kernel == nullptr) return {};
    std::vector<int64_t> start(step.reach.size());
    for (size_t b = 0; b < step.reach.size(); ++b) {
      const gpu::Reach& reach = step.reach[b];
      const int64_t at = (reach.view < views.size() ? views[reach.view].offset : 0) + reach.byte_offset, from = floor_to(at, static_cast<int64_t>(caps.binding_align));
      cl_buffer_region region{static_cast<size_t>(from), static_cast<size_t>(at - from) + reach.bytes};
      EXPECT_GE(at, 0);
      EXPECT_LE(region.size, caps.binding_bytes) << step.spec->name << " buffer " << b;
      start[b] = (at - from) / gpu::element_bytes(step.spec->buffers[b].dtype);
      cl_int e;
      r.args.push_back(clCreateSubBuffer(mem[reach.view], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &e));
      EXPECT_EQ(e, CL_SUCCESS) << step.spec->name << " buffer " << b << " offset " << from << " bytes " << region.size;
      made->push_back(r.args.back());
    }
    for (const gpu::Patch& p : step.patches) {
      const void* value = p.kind == gpu::Patch::Push ? static_cast<const void*>(static_cast<const char*>(push) + p.index * 8) : &start[p.index];
      std::memcpy(&r.params[p.at], value, p.bytes);
    }
    if (options.params_in_buffer && !r.params.empty()) {
      cl_int e;
      r.params_buffer = clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, r.params.size(), r.params.data(), &e);
      made->push_back(r.params_buffer);
    }
    for (int d = 0; d < 3; ++d) {
      EXPECT_LE(step.groups[d], caps.max_groups[d]);
      EXPECT_LE(step.spec->group[d], caps.max_group[d]);
      r.local[d] = step.spec->group[d], r.global[d] = step.groups[d] * step.spec->group[d];
    }
    EXPECT_LE(r.local[0] * r.local[1] * r.local[2], caps.max_threads);
    EXPECT_LE(step.spec->buffers.size() + 1 + (step.spec->can_fail ? 1 : 0), caps.max_bindings);
    all.push_back(std::move(r));
  }
  return all;
}

void ClMachine::enqueue(const Ready& r, cl_mem error) {
  cl_uint n = 0;
  for (cl_mem m : r.args) clSetKernelArg(r.kernel, n++, sizeof m, &m);
  if (r.params_buffer != nullptr) clSetKernelArg(r.kernel, n++, sizeof r.params_buffer, &r.params_buffer);
  if (r.can_fail) clSetKernelArg(r.kernel, n++, sizeof error, &error);
  if (r.by_value) clSetKernelArg(r.kernel, n++, r.params.size(), r.params.data());
  EXPECT_EQ(clEnqueueNDRangeKernel(queue_, r.kernel, 3, nullptr, r.global, r.local, 0, nullptr, nullptr), CL_SUCCESS);
}

uint32_t ClMachine::run(const gpu::Caps& caps, const gpu::Recipe& recipe, std::vector<HostView> views, const void* push) {
  cl_int e;
  std::vector<cl_mem> mem, made;
  for (const HostView& v : views) {
    mem.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, v.bytes->size(), v.bytes->data(), &e));
    EXPECT_EQ(e, CL_SUCCESS);
  }
  if (recipe.workspace_bytes > 0) {
    std::vector<unsigned char> garbage(recipe.workspace_bytes, 0xA7);
    mem.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, garbage.size(), garbage.data(), &e));
  }
  uint32_t word[4] = {};
  cl_mem error = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof word, word, &e);
  for (const Ready& r : ready(caps, recipe, mem, views, push, &made)) enqueue(r, error);
  for (size_t k = 0; k < views.size(); ++k) clEnqueueReadBuffer(queue_, mem[k], CL_TRUE, 0, views[k].bytes->size(), views[k].bytes->data(), 0, nullptr, nullptr);
  clEnqueueReadBuffer(queue_, error, CL_TRUE, 0, sizeof word, word, 0, nullptr, nullptr);
  made.push_back(error);
  for (cl_mem m : made) clReleaseMemObject(m);
  for (cl_mem m : mem) clReleaseMemObject(m);
  return word[0];
}

double ClMachine::seconds(const gpu::Caps& caps, const gpu::Recipe& recipe, std::vector<HostView> views, int repeats) {
  cl_int e;
  std::vector<cl_mem> mem, made;
  for (const HostView& v : views) mem.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, v.bytes->size(), v.bytes->data(), &e));
  if (recipe.workspace_bytes > 0) mem.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE, recipe.workspace_bytes, nullptr, &e));
  const auto all = ready(caps, recipe, mem, views, nullptr, &made);
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (const Ready& r : all) enqueue(r, nullptr);
    clFinish(queue_);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    best = std::min(best, static_cast<double>(b.tv_sec - a.tv_sec) + 1e-9 * static_cast<double>(b.tv_nsec - a.tv_nsec));
  }
  for (cl_mem m : made) clReleaseMemObject(m);
  for (cl_mem m : mem) clReleaseMemObject(m);
  return best;
}

}  // namespace tenon::test
