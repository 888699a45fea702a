// backends/opencl/api.h - libOpenCL.so.1, opened at run time, and what its numbers mean.
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue: the one that every version has
#include <CL/cl.h>
#include <tenon/plugin.h>

#include <string>
#include <type_traits>

#include "ops/gpu/diag.h"

namespace tenon::gpu::opencl {

constexpr uint32_t error_id(uint32_t number) { return 7u << 16 | number; }  // docs/errors/TN-DEVICE-opencl.md
inline constexpr uint32_t kErrNoLibrary = error_id(160), kErrNoDriver = error_id(161), kErrCall = error_id(162), kErrLost = error_id(163), kErrMemory = error_id(164),
                          kErrCompile = error_id(165), kErrKernel = error_id(166), kErrNotDone = error_id(167), kErrOtherDevice = error_id(168);

#define TENON_OPENCL_CALLS(X) \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) \
  X(clReleaseCommandQueue) X(clCreateBuffer) X(clReleaseMemObject) X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram) \
  X(clGetProgramBuildInfo) X(clGetProgramInfo) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clGetKernelInfo) \
  X(clGetKernelWorkGroupInfo) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer) \
  X(clEnqueueMigrateMemObjects) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) X(clFlush) X(clFinish) X(clWaitForEvents) \
  X(clGetEventInfo) X(clReleaseEvent)

struct Api {
#define TENON_OPENCL_MEMBER(name) std::add_pointer_t<decltype(::name)> name = nullptr;
  TENON_OPENCL_CALLS(TENON_OPENCL_MEMBER)
#undef TENON_OPENCL_MEMBER
};

// Opens the library, which stays open: drivers run threads of their own. errors: TN_E_UNAVAILABLE with the loader's words.
tn_status open_library(const char* path, Api* out, tn_diag*);

// "CL_OUT_OF_RESOURCES (-5)"
std::string code_text(cl_int code);
// Fills `diag` for a failed call and returns its status: TN_E_OOM, TN_E_DEVICE_LOST or TN_E_FAILED. what: "launch add".
tn_status failed(cl_int code, const char* what, tn_diag* diag);

// A text of a platform, device, program: any clGet*Info. Empty where it has none.
template <class Get, class Object>
std::string text_of(Get get, Object object, cl_uint what) {
  size_t n = 0;
  if (get(object, what, 0, nullptr, &n) != CL_SUCCESS || n == 0 || n > (size_t{1} << 20)) return {};
  std::string text(n, '\0');
  if (get(object, what, n, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(text.find('\0') == std::string::npos ? n : text.find('\0'));
  return text;
}
// A number of a device; `fallback` where the driver does not say it.
template <class T>
T number_of(const Api& api, cl_device_id device, cl_uint what, T fallback = {}) {
  T value{};
  return api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : fallback;
}

}  // namespace tenon::gpu::opencl
