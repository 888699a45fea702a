// Per-thread pools, and the life of a TensorImpl.
#include "framework/core/state.h"

namespace tenon::detail {

thread_local ThreadState* current_thread = nullptr;

namespace {

// All threads' counters, and what ended threads left.
struct Registry {
  std::mutex mutex;
  std::vector<ThreadState*> threads;
  int64_t ended_tensors = 0, ended_nodes = 0;
};
Registry& registry() {
  static Registry* r = new Registry;  // outlives every thread
  return *r;
}

struct Owner {
  ThreadState* state = nullptr;
  ~Owner() {
    current_thread = nullptr;
    delete state;
  }
};

}  // namespace

ThreadState::ThreadState() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.threads.push_back(this);
}

ThreadState::~ThreadState() {
  for (uint32_t i = 0; i < n_impls; ++i) delete impls[i];
  drop_node_pool(*this);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::erase(r.threads, this);
  r.ended_tensors += live_tensors.load(std::memory_order_relaxed);
  r.ended_nodes += live_nodes.load(std::memory_order_relaxed);
}

ThreadState& make_thread() {
  static thread_local Owner owner;
  // A thread whose state is gone (its last destructors run) gets a fresh one that stays: small, once, at exit.
  owner.state = new ThreadState;
  current_thread = owner.state;
  return *current_thread;
}

int64_t live_total(std::atomic<int64_t> ThreadState::*counter) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  int64_t n = counter == &ThreadState::live_tensors ? r.ended_tensors : r.ended_nodes;
  for (ThreadState* t : r.threads) n += (t->*counter).load(std::memory_order_relaxed);
  return n;
}

TensorImpl* new_impl(ThreadState& ts, tn_tensor* handle, DeviceState* device) {
  TensorImpl* i;
  if (ts.n_impls > 0) {
    i = ts.impls[--ts.n_impls];
    i->refs.store(1, std::memory_order_relaxed);
    i->meta_state.store(0, std::memory_order_relaxed);
    i->node = nullptr;
    i->is_view = false;
  } else {
    i = new TensorImpl;
  }
  i->handle = handle;
  i->type = tn_tensor_type(handle);
  i->device = device;
  count(ts.live_tensors, 1);
  return i;
}

void destroy(TensorImpl* impl) {
  ThreadState& ts = thread();
  tn_tensor_release(impl->handle);
  if (impl->node != nullptr) release_node(impl->node);
  count(ts.live_tensors, -1);
  if (ts.n_impls < std::size(ts.impls)) ts.impls[ts.n_impls++] = impl;
  else delete impl;
}

const tn_type& meta(TensorImpl* impl) {
  if (impl->meta_state.load(std::memory_order_acquire) == 2) return impl->meta;
  uint8_t empty = 0;
  if (impl->meta_state.compare_exchange_strong(empty, 1, std::memory_order_acquire)) {
    tn_tensor_describe(impl->handle, &impl->meta);  // never fails: whoever waits below would wait for ever
    impl->meta_state.store(2, std::memory_order_release);
  }
  while (impl->meta_state.load(std::memory_order_acquire) != 2) {}  // another thread copies 136 bytes
  return impl->meta;
}

DType dtype_of_type(ThreadState& ts, RuntimeState* rt, uint32_t type) {
  DtypeEntry& e = ts.dtypes[type % ThreadState::kDtypes];
  if (e.type != type || e.runtime != rt->serial) {
    tn_type t;
    tn_diag diag{sizeof diag};
    const tn_status s = tn_type_get(rt->handle, type, &t, &diag);
    if (s != TN_OK) raise(diag, s, Where{"", 0}, "type", nullptr);
    e = {rt->serial, type, t.dtype, t.rank};
  }
  return static_cast<DType>(e.dtype);
}

}  // namespace tenon::detail

namespace tenon {
int64_t live_tensors() { return detail::live_total(&detail::ThreadState::live_tensors); }
}  // namespace tenon
