#include "backends/opencl/device.h"

#include <algorithm>
#include <cctype>

namespace tenon::gpu::opencl {
namespace {

// What load() takes: one byte that says which, then the driver's binary, or the text where the driver gives none.
constexpr char kBinary = 'B', kText = 'T';

std::string first_lines(std::string log) {
  size_t begin = 0;
  while (begin < log.size() && std::isspace(static_cast<unsigned char>(log[begin])) != 0) ++begin;
  std::string out;
  int lines = 0;
  for (const char c : log.substr(begin, 400)) {
    if (c == '\n' && ++lines == 3) break;
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

unsigned long long ull(uint64_t x) { return x; }

}  // namespace

tn_status ClDevice::open(const Api& api, const DeviceOf& of, std::unique_ptr<Device>* out, tn_diag* diag) {
  auto context = std::make_shared<Context>(api, of);
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(of.platform), 0};
  cl_int code = CL_SUCCESS;
  context->context = api.clCreateContext(properties, 1, &of.device, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) context->context = nullptr;
  if (tn_status s = context->check(code, "open the device", diag); s != TN_OK) return s;
  std::unique_ptr<ClDevice> device(new ClDevice(context));
  device->memory_queue_ = api.clCreateCommandQueue(context->context, of.device, 0, &code);
  if (code != CL_SUCCESS) device->memory_queue_ = nullptr;
  if (tn_status s = context->check(code, "open a queue", diag); s != TN_OK) return s;
  *out = std::move(device);
  return TN_OK;
}

ClDevice::~ClDevice() {
  if (memory_queue_ != nullptr) context_->api.clReleaseCommandQueue(memory_queue_);
}

tn_status ClDevice::alloc(uint64_t bytes, uint64_t, bool host_visible, Memory* out, tn_diag* diag) {
  if (host_visible) return report(diag, TN_E_UNSUPPORTED, kErrMemory, "opencl: no memory that host and device share\nwhy: OpenCL 1.2 lets only one of them use it at a time\ntry: use device memory");
  const Api& api = context_->api;
  const std::lock_guard lock(mutex_);
  // Drivers promise more than there is, and say so when it is too late.
  const uint64_t total = context_->of.facts.info.mem_total_bytes;
  if (bytes > total - std::min(used_, total))
    return report(diag, TN_E_OOM, kErrMemory, "opencl: out of memory\nwhy: %llu bytes asked, %llu of %llu in use\ntry: use a smaller batch, or release tensors", ull(bytes), ull(used_), ull(total));
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = api.clCreateBuffer(context_->context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  if (tn_status s = context_->check(code, "allocate memory", diag); s != TN_OK) return s;
  // A buffer may get its memory only when first used; here a lack of it is still an answer to this call.
  code = api.clEnqueueMigrateMemObjects(memory_queue_, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = api.clFinish(memory_queue_);
  if (tn_status s = context_->check(code, "allocate memory", diag); s != TN_OK) return api.clReleaseMemObject(buffer), s;
  out->handle = reinterpret_cast<uintptr_t>(buffer);
  bytes_[out->handle] = bytes;
  used_ += bytes;
  return TN_OK;
}

void ClDevice::free(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto it = bytes_.find(handle);
  if (it == bytes_.end()) return;
  used_ -= it->second;
  bytes_.erase(it);
  context_->api.clReleaseMemObject(reinterpret_cast<cl_mem>(static_cast<uintptr_t>(handle)));
}

uint64_t ClDevice::free_bytes() {
  const std::lock_guard lock(mutex_);
  const uint64_t total = context_->of.facts.info.mem_total_bytes;
  return total - std::min(used_, total);
}

tn_status ClDevice::open_stream(int32_t, std::unique_ptr<Stream>* out, tn_diag* diag) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = context_->api.clCreateCommandQueue(context_->context, context_->of.device, 0, &code);
  if (tn_status s = context_->check(code, "open a queue", diag); s != TN_OK) return s;
  *out = std::make_unique<ClStream>(context_, queue);
  return TN_OK;
}

tn_status ClDevice::build(cl_program program, const KernelSpec& spec, tn_diag* diag) {
  const Api& api = context_->api;
  const cl_device_id device = context_->of.device;
  const std::string& options = (spec.needs & kNeedSubgroup) != 0 ? context_->of.subgroup_options : context_->of.build_options;
  const cl_int code = api.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return TN_OK;
  if (code != CL_BUILD_PROGRAM_FAILURE) return context_->check(code, ("compile " + spec.name).c_str(), diag);
  const auto info = [&](cl_program p, cl_uint what, size_t n, void* value, size_t* size) { return api.clGetProgramBuildInfo(p, device, what, n, value, size); };
  report(diag, TN_E_FAILED, kErrCompile, "opencl: kernel %.40s does not compile\nwhy: %.110s\ntry: report this with the driver's version", spec.name.c_str(), first_lines(text_of(info, program, CL_PROGRAM_BUILD_LOG)).c_str());
  if (diag != nullptr) diag->native_code = code, diag->native_domain = TN_KIND_OPENCL;
  return TN_E_FAILED;
}

tn_status ClDevice::compile(const KernelSpec& spec, const std::string& text, const RenderOptions&, std::string* binary, tn_diag* diag) {
  const Api& api = context_->api;
  const char* source = text.c_str();
  const size_t length = text.size();
  cl_int code = CL_SUCCESS;
  const cl_program program = api.clCreateProgramWithSource(context_->context, 1, &source, &length, &code);
  if (tn_status s = context_->check(code, "compile", diag); s != TN_OK) return s;
  const std::unique_ptr<std::remove_pointer_t<cl_program>, std::add_pointer_t<decltype(::clReleaseProgram)>> release(program, api.clReleaseProgram);
  if (tn_status s = build(program, spec, diag); s != TN_OK) return s;
  size_t bytes = 0;
  *binary = kText + text;
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS || bytes == 0) return TN_OK;
  std::string data(bytes, '\0');
  unsigned char* at = reinterpret_cast<unsigned char*>(data.data());
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof at, &at, nullptr) == CL_SUCCESS) *binary = kBinary + data;
  return TN_OK;
}

tn_status ClDevice::load(const KernelSpec& spec, const RenderOptions& options, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag* diag) {
  const Api& api = context_->api;
  const cl_device_id device = context_->of.device;
  const std::string what = "load kernel " + spec.name;
  auto k = std::make_unique<ClKernel>(context_);
  const size_t length = binary.empty() ? 0 : binary.size() - 1;
  const char* data = binary.c_str() + 1;
  cl_int code = CL_SUCCESS, state = CL_SUCCESS;
  if (length == 0) return context_->check(CL_INVALID_BINARY, what.c_str(), diag);
  if (binary[0] == kText) k->program = api.clCreateProgramWithSource(context_->context, 1, &data, &length, &code);
  else {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data);
    k->program = api.clCreateProgramWithBinary(context_->context, 1, &device, &length, &bytes, &state, &code);
  }
  if (code == CL_SUCCESS) code = state;
  if (tn_status s = context_->check(code, what.c_str(), diag); s != TN_OK) return s;
  if (tn_status s = build(k->program, spec, diag); s != TN_OK) return s;
  k->kernel = api.clCreateKernel(k->program, spec.name.c_str(), &code);
  if (tn_status s = context_->check(code, what.c_str(), diag); s != TN_OK) return s;
  k->name = spec.name, k->n_buffers = static_cast<uint32_t>(spec.buffers.size()), k->can_fail = spec.can_fail;
  k->param_bytes = param_layout(spec).bytes, k->params_in_buffer = options.params_in_buffer;
  size_t most = 0;
  const size_t group = size_t{spec.group[0]} * spec.group[1] * spec.group[2];
  if (api.clGetKernelWorkGroupInfo(k->kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr) == CL_SUCCESS && most < group)
    return report(diag, TN_E_FAILED, kErrKernel, "opencl: kernel %.60s needs too much of the device\nwhy: it is written for groups of %zu threads, the driver allows it %zu\ntry: set opencl.limit.threads=%zu",
                spec.name.c_str(), group, most, most);
  *out = std::move(k);
  return TN_OK;
}

tn_status ClDevice::health(tn_diag* diag) {
  if (context_->lost.load()) return failed(CL_DEVICE_NOT_AVAILABLE, "an earlier call", diag);
  if (number_of<cl_bool>(context_->api, context_->of.device, CL_DEVICE_AVAILABLE, CL_FALSE) == CL_TRUE) return TN_OK;
  return context_->check(CL_DEVICE_NOT_AVAILABLE, "ask whether it is available", diag);
}

}  // namespace tenon::gpu::opencl
