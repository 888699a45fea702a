#include "backends/opencl/api.h"

#include <dlfcn.h>

namespace tenon::gpu::opencl {

tn_status open_library(const char* path, Api* out, tn_diag* diag) {
  const char* name = path != nullptr ? path : "libOpenCL.so.1";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return report(diag, TN_E_UNAVAILABLE, kErrNoLibrary, "opencl: no OpenCL here\nwhy: %.90s\ntry: sudo apt install ocl-icd-libopencl1, and the GPU's OpenCL driver", dlerror());
  const char* absent = nullptr;
#define TENON_OPENCL_BIND(call) \
  if (out->call = reinterpret_cast<decltype(out->call)>(dlsym(library, #call)); out->call == nullptr) absent = #call;
  TENON_OPENCL_CALLS(TENON_OPENCL_BIND)
#undef TENON_OPENCL_BIND
  if (absent == nullptr) return TN_OK;
  return report(diag, TN_E_UNAVAILABLE, kErrNoLibrary, "opencl: the library is too old\nwhy: %.90s has no %s, OpenCL 1.2 is needed\ntry: sudo apt install ocl-icd-libopencl1", name, absent);
}

std::string code_text(cl_int code) {
  const char* name = "OpenCL error";
  switch (code) {
#define TENON_OPENCL_CODE(c) \
  case c: name = #c; break;
    TENON_OPENCL_CODE(CL_DEVICE_NOT_FOUND) TENON_OPENCL_CODE(CL_DEVICE_NOT_AVAILABLE) TENON_OPENCL_CODE(CL_COMPILER_NOT_AVAILABLE)
    TENON_OPENCL_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE) TENON_OPENCL_CODE(CL_OUT_OF_RESOURCES) TENON_OPENCL_CODE(CL_OUT_OF_HOST_MEMORY)
    TENON_OPENCL_CODE(CL_MEM_COPY_OVERLAP) TENON_OPENCL_CODE(CL_BUILD_PROGRAM_FAILURE) TENON_OPENCL_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    TENON_OPENCL_CODE(CL_INVALID_VALUE) TENON_OPENCL_CODE(CL_INVALID_DEVICE) TENON_OPENCL_CODE(CL_INVALID_CONTEXT) TENON_OPENCL_CODE(CL_INVALID_COMMAND_QUEUE)
    TENON_OPENCL_CODE(CL_INVALID_MEM_OBJECT) TENON_OPENCL_CODE(CL_INVALID_BINARY) TENON_OPENCL_CODE(CL_INVALID_BUILD_OPTIONS) TENON_OPENCL_CODE(CL_INVALID_PROGRAM)
    TENON_OPENCL_CODE(CL_INVALID_PROGRAM_EXECUTABLE) TENON_OPENCL_CODE(CL_INVALID_KERNEL_NAME) TENON_OPENCL_CODE(CL_INVALID_KERNEL) TENON_OPENCL_CODE(CL_INVALID_ARG_INDEX)
    TENON_OPENCL_CODE(CL_INVALID_ARG_SIZE) TENON_OPENCL_CODE(CL_INVALID_KERNEL_ARGS) TENON_OPENCL_CODE(CL_INVALID_WORK_GROUP_SIZE)
    TENON_OPENCL_CODE(CL_INVALID_WORK_ITEM_SIZE) TENON_OPENCL_CODE(CL_INVALID_BUFFER_SIZE) TENON_OPENCL_CODE(CL_INVALID_GLOBAL_WORK_SIZE)
#undef TENON_OPENCL_CODE
    case -1001: name = "CL_PLATFORM_NOT_FOUND_KHR"; break;
    default: break;
  }
  return std::string(name) + " (" + std::to_string(code) + ")";
}

tn_status failed(cl_int code, const char* what, tn_diag* diag) {
  const std::string said = code_text(code);
  tn_status status = TN_E_FAILED;
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: case CL_OUT_OF_RESOURCES: case CL_OUT_OF_HOST_MEMORY: case CL_INVALID_BUFFER_SIZE:
      status = report(diag, TN_E_OOM, kErrMemory, "opencl: %.60s: out of memory or resources\nwhy: the driver says %s\ntry: use a smaller batch, or release tensors", what, said.c_str());
      break;
    // Our objects are valid while we use them: a driver that calls them invalid has dropped them with its device.
    case CL_DEVICE_NOT_AVAILABLE: case CL_INVALID_CONTEXT: case CL_INVALID_COMMAND_QUEUE: case CL_INVALID_DEVICE:
      status = report(diag, TN_E_DEVICE_LOST, kErrLost, "opencl: the device is lost\nwhy: %.60s: the driver says %s\ntry: look at the kernel's log; go on with another device", what, said.c_str());
      break;
    default: report(diag, TN_E_FAILED, kErrCall, "opencl: %.60s failed\nwhy: the driver says %s\ntry: update the OpenCL driver", what, said.c_str());
  }
  if (diag != nullptr) diag->native_code = code, diag->native_domain = TN_KIND_OPENCL;
  return status;
}

}  // namespace tenon::gpu::opencl
