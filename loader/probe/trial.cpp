#include "loader/probe/trial.h"

#include <sys/mman.h>
#include <tenon/ops.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace tenon::loader {
namespace {

constexpr uint32_t kElements = 16;  // 64 bytes: the tensor ends exactly where its page ends

// 16 floats at the end of a page; the next page faults, so that one element too far ends the process.
class GuardedFloats {
 public:
  GuardedFloats() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* pages = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    base_ = static_cast<char*>(pages);
    mprotect(base_ + page_, page_, PROT_NONE);
    for (uint32_t i = 0; i < kElements; ++i) data()[i] = 1.0f + static_cast<float>(i);
  }
  ~GuardedFloats() {
    if (base_ != nullptr) munmap(base_, 2 * page_);
  }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;
  float* data() { return base_ == nullptr ? nullptr : reinterpret_cast<float*>(base_ + page_ - kElements * sizeof(float)); }

 private:
  size_t page_;
  char* base_ = nullptr;
};

struct Call {
  const char* op;
  uint32_t n_in;
  uint8_t rank;  // [16] or [4,4]
  const tn_attr* attr;
  uint32_t n_attr;
};

tn_type floats(uint8_t rank) {
  tn_type type{};
  type.dtype = TN_F32;
  type.rank = rank;
  type.align_log2 = 6;
  if (rank == 1) {
    type.dim[0] = kElements, type.stride[0] = 1;
  } else {
    type.dim[0] = type.dim[1] = 4, type.stride[0] = 4, type.stride[1] = 1;
  }
  return type;
}

class Trial {
 public:
  Trial(tn_runtime* runtime, uint32_t plugin, uint32_t device) : runtime_(runtime), plugin_(plugin), device_(device) {}

  // Names of the plugin's kernels that accept the call.
  std::vector<std::string> ask(const Call& call) {
    if (tn_op_find(runtime_, call.op, 0, &op_, nullptr) != TN_OK) return {};
    attrs_ = 0;
    if (call.n_attr != 0 && tn_attr_intern(runtime_, op_, call.attr, call.n_attr, &attrs_, nullptr) != TN_OK) return {};
    const tn_type type = floats(call.rank);
    if (tn_type_intern(runtime_, &type, &type_, nullptr) != TN_OK) return {};
    const std::array<uint32_t, 2> types{type_, type_};
    const tn_spec spec{op_, attrs_, device_, 0, call.n_in, 0, types.data()};
    std::vector<tn_candidate> rows(256);
    for (tn_candidate& row : rows) row.size = sizeof row;
    uint32_t n = 0;
    if (tn_why(runtime_, &spec, rows.data(), sizeof rows[0], static_cast<uint32_t>(rows.size()), &n, nullptr) != TN_OK) return {};
    std::vector<std::string> accepted;
    for (uint32_t i = 0; i < n && i < rows.size(); ++i) {
      const bool takes = rows[i].why <= TN_WHY_NAME;  // won, or lost to another that takes it too
      if (rows[i].kind == TN_ROW_KERNEL && rows[i].plugin == plugin_ && takes) accepted.emplace_back(rows[i].kernel);
    }
    return accepted;
  }

  // One call by that kernel, on the operands of the last ask().
  void launch(const Call& call, const std::string& kernel) {
    tn_queue* queue = nullptr;
    if (tn_queue_get(runtime_, device_, &queue, nullptr) != TN_OK) return;
    GuardedFloats memory[3];
    tn_tensor* tensors[3] = {};
    for (int i = 0; i < 3; ++i) {
      tn_tensor_from_host(runtime_, device_, type_, memory[i].data(), kElements * sizeof(float), nullptr, nullptr, &tensors[i], nullptr);
    }
    tn_pin(runtime_, op_, device_, kernel.c_str(), nullptr);
    tn_tensor* out = tensors[2];
    const tn_call_args args{op_, attrs_, 0, 0, call.n_in, 1, tensors, &out, nullptr};
    if (tensors[0] != nullptr && tensors[1] != nullptr && out != nullptr) tn_call(queue, &args, nullptr);
    tn_pin(runtime_, op_, device_, nullptr, nullptr);
    for (tn_tensor* tensor : tensors) tn_tensor_release(tensor);
  }

 private:
  tn_runtime* runtime_;
  uint32_t plugin_, device_, op_ = 0, attrs_ = 0, type_ = 0;
};

// The CPU device for a kernel pack; of a device plugin its own devices that work inline.
std::vector<uint32_t> places(tn_runtime* runtime, uint32_t plugin) {
  std::vector<tn_device_entry> devices(64);
  for (tn_device_entry& d : devices) d.size = sizeof d;
  uint32_t n = 0;
  if (tn_devices(runtime, devices.data(), sizeof devices[0], static_cast<uint32_t>(devices.size()), &n, nullptr) != TN_OK) return {};
  std::vector<uint32_t> own, others;
  for (uint32_t i = 0; i < n && i < devices.size(); ++i) {
    if (devices[i].verdict != 0 || (devices[i].info.flags & TN_DEVICE_INLINE) == 0) continue;
    (devices[i].plugin == plugin ? own : others).push_back(devices[i].device);
  }
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

}  // namespace

void try_kernels(tn_runtime* runtime, uint32_t plugin, void (*enter)(const char* stage)) {
  const tn_inst add[] = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_INPUT, TN_F32, 1, 0, 0}, {TN_OP_ADD, TN_F32, 0, 1, 0}};
  tn_program program{};
  program.size = sizeof program;
  program.n_inst = 3, program.n_in = 2, program.n_out = 1;
  program.out[0] = 2;
  program.inst = add;
  tn_attr attr{};
  attr.key = TN_KEY_PROGRAM, attr.type = TN_ATTR_PROGRAM, attr.v.p = &program, attr.len = 1;
  const Call calls[] = {{"pointwise", 2, 1, &attr, 1}, {"add", 2, 1, nullptr, 0}, {"copy", 1, 1, nullptr, 0}, {"matmul", 2, 2, nullptr, 0}};
  for (const uint32_t device : places(runtime, plugin)) {
    Trial trial(runtime, plugin, device);
    for (const Call& call : calls) {
      enter("supports");
      for (const std::string& kernel : trial.ask(call)) {
        enter("launch");
        trial.launch(call, kernel);
      }
    }
  }
}

}  // namespace tenon::loader
