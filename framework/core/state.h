// framework/core/state.h - private: what stands behind handles, and this thread's pools and caches.
//
// Lifetimes: RuntimeState and its DeviceStates live until the runtime is closed; a TensorImpl is counted and pooled per
// thread; ThreadState lives as long as its thread.
#pragma once
#include <tenon/core/ops.hpp>
#include <tenon/core/random.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/ops.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon::detail {

struct Node;  // autograd/node.h
inline constexpr uint32_t kOpTable = 512;  // core op numbers are below this

struct DeviceState {
  RuntimeState* runtime = nullptr;
  uint64_t serial = 0;  // unique in the process, never used again
  uint32_t id = 0, slot = 0, kind = 0, reserved = 0;
  char name[16] = {};
};

struct RuntimeState {
  tn_runtime* handle = nullptr;
  uint64_t serial = 0;
  bool owned = true;
  uint32_t op[kOpTable] = {};  // op ids by core number; 0 = this runtime lacks it
  Generator generator{0};
  std::mutex mutex;            // guards devices
  std::vector<std::unique_ptr<DeviceState>> devices;

  explicit RuntimeState(tn_runtime* h, bool owns);
  ~RuntimeState();
  DeviceState* device(uint32_t id, Where where);
  DeviceState* find(const char* spec, uint32_t policy, Where where);
};

// A tensor. `type` names dims and element type; `meta` is filled on first use because results are often never asked.
struct TensorImpl : Counted {
  uint32_t type = 0;
  tn_tensor* handle = nullptr;
  DeviceState* device = nullptr;
  Node* node = nullptr;       // what made it, for gradients; NULL = constant
  uint32_t output = 0;        // which output of node
  std::atomic<uint8_t> meta_state{0};  // 0 empty, 1 being filled, 2 ready
  bool is_view = false;
  tn_type meta;
};

// One operand of a call, by value: tensors, operands known by type alone, and absent ones (handle NULL).
struct In {
  tn_tensor* handle = nullptr;
  uint32_t type = 0;
  uint32_t output = 0;
  Node* node = nullptr;
};

// Attributes of a call as words, in order of key: the look-up key of the attribute cache.
class Attrs {
 public:
  static constexpr uint32_t kWords = 60;
  Attrs& i64(uint32_t key, int64_t v) { head(key, TN_ATTR_I64, 1); return word(static_cast<uint64_t>(v)); }
  Attrs& f64(uint32_t key, double v) { head(key, TN_ATTR_F64, 1); uint64_t w; std::memcpy(&w, &v, 8); return word(w); }
  Attrs& ints(uint32_t key, std::span<const int64_t> v) {
    head(key, TN_ATTR_I64S, v.size());
    for (int64_t e : v) word(static_cast<uint64_t>(e));
    return *this;
  }
  uint32_t size() const { return n_; }
  const uint64_t* words() const { return words_; }

 private:
  void head(uint32_t key, uint32_t type, size_t len) { word(uint64_t{key} | uint64_t{type} << 32 | uint64_t{len} << 40); }
  Attrs& word(uint64_t w) { if (n_ < kWords) words_[n_++] = w; return *this; }
  uint64_t words_[kWords];
  uint32_t n_ = 0;
};

struct AttrEntry { uint64_t runtime = 0; uint32_t op = 0, id = 0, n = 0, reserved = 0; uint64_t words[28]; };
struct QueueEntry { uint64_t serial = 0; tn_queue* queue = nullptr; };
struct DtypeEntry { uint64_t runtime = 0; uint32_t type = 0; uint8_t dtype = 0, rank = 0; };
// What a tape must keep of one call: see autograd/record.cpp.
struct VjpEntry {
  uint64_t runtime = 0, need = 0, keep = 0;  // keep: bit per input, then per output
  uint32_t op = 0, attr = 0, n_in = 0, derived = 0, differentiable = 0, push_bytes = 0;
  uint32_t in[8] = {};
};
struct DeriveEntry { uint64_t runtime = 0, seeds = 0, need = 0; uint32_t op = 0, id = 0; };

struct ThreadState {
  static constexpr uint32_t kQueues = 32, kAttrs = 128, kDtypes = 256, kVjps = 256, kDerives = 256, kPool = 4096;
  bool grad_enabled = true;
  Where noted{nullptr, 0};
  tn_queue* noted_queue = nullptr;
  QueueEntry queues[kQueues];
  TensorImpl* impls[256]; uint32_t n_impls = 0;
  Node* nodes = nullptr; uint32_t n_nodes = 0;
  std::vector<Node*> dying;  // nodes waiting for their turn, so that long chains end without recursion
  bool burying = false;
  std::atomic<int64_t> live_tensors{0}, live_nodes{0};  // made minus ended by this thread; summed over threads
  DtypeEntry dtypes[kDtypes];
  AttrEntry attrs[kAttrs];
  VjpEntry vjps[kVjps];
  DeriveEntry derives[kDerives];
  ThreadState();
  ~ThreadState();
};
inline void count(std::atomic<int64_t>& n, int64_t by) {  // written by its thread alone
  n.store(n.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

extern thread_local ThreadState* current_thread __attribute__((tls_model("initial-exec")));
ThreadState& make_thread();
inline ThreadState& thread() {
  ThreadState* t = current_thread;
  return __builtin_expect(t != nullptr, 1) ? *t : make_thread();
}
int64_t live_total(std::atomic<int64_t> ThreadState::*counter);

// ---- errors
[[noreturn]] void raise(tn_status status, uint32_t id, Where where, const char* op, const char* summary, std::string why, std::string advice);
[[noreturn]] void raise(const tn_diag& diag, tn_status status, Where where, const char* op, const DeviceState* device);
std::string format(const char* f, ...) __attribute__((format(printf, 1, 2)));
void refuse_packed_gradient(const Tensor& a, const Tensor& b, Where where);  // b is packed
void require_defined(const Tensor& t, const char* op, const char* operand, Where where);

// ---- tensors
TensorImpl* new_impl(ThreadState& ts, tn_tensor* handle, DeviceState* device);
const tn_type& meta(TensorImpl* impl);
DType dtype_of_type(ThreadState& ts, RuntimeState* rt, uint32_t type);
inline DType dtype(ThreadState& ts, TensorImpl* impl) { return dtype_of_type(ts, impl->device->runtime, impl->type); }
uint32_t intern(RuntimeState* rt, const tn_type& type, Where where);
tn_type dense_type(DType t, const Shape& dims);
bool is_row_major(const tn_type& t);
std::string text(const tn_type& t);  // "f32[2,3]"
std::string type_text(RuntimeState* rt, uint32_t type);
tn_queue* queue_slow(ThreadState& ts, DeviceState* d, Where where);
inline tn_queue* queue(ThreadState& ts, DeviceState* d, Where where) {
  QueueEntry& e = ts.queues[d->slot % ThreadState::kQueues];
  return __builtin_expect(e.serial == d->serial, 1) ? e.queue : queue_slow(ts, d, where);
}
void note_slow(ThreadState& ts, tn_queue* q, Where where);
inline void note(ThreadState& ts, tn_queue* q, Where where) {  // errors that surface later quote the line of the call
  if (__builtin_expect(ts.noted.line != where.line || ts.noted.file != where.file || ts.noted_queue != q, 0)) note_slow(ts, q, where);
}
DeviceState* pick_device(const TensorOptions& o, Where where);
const char* op_name(uint32_t number);

// ---- calls
uint64_t scalar_bits(DType compute, const Operand& v, const char* op);
uint64_t scalar_bits(DType compute, double v);
uint32_t attr_id(ThreadState& ts, RuntimeState* rt, uint32_t op, const Attrs& attrs, Where where);

// One op call. `out` receives owned impls; entries that are not NULL on entry are written in place (and not retained).
struct Call {
  uint32_t number = 0;            // core op number, or 0 with `op` given
  uint32_t op = 0;                // interned id; 0 = from number
  uint32_t n_in = 0, n_out = 1, push_bytes = 0;
  uint32_t attr = 0;              // interned; or attrs
  const Attrs* attrs = nullptr;
  const char* name = nullptr;
  const In* in = nullptr;
  const void* push = nullptr;
  DeviceState* device = nullptr;
  Where where{"", 0};
  bool in_place = false;          // some out entries are given
  bool view = false;              // the result shares memory with input 0
};
void run(ThreadState& ts, Call& call, TensorImpl** out);

inline In in(const Tensor& t) {
  TensorImpl* i = t.impl();
  return i == nullptr ? In{} : In{i->handle, i->type, i->output, i->node};
}
inline Tensor adopt(TensorImpl* impl) { return Tensor(Adopt{}, impl); }

// ---- the seam to autograd, which defines these
void record(ThreadState& ts, const Call& call, uint32_t op, uint32_t attr, TensorImpl** out, const uint64_t* writes_before);
void release_node(Node* node);
void record_transfer(ThreadState& ts, const Tensor& from, Tensor& to, Where where);
void drop_node_pool(ThreadState& ts);

}  // namespace tenon::detail
