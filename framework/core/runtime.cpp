// Runtime, devices and per-thread queues.
#include <tenon/core/runtime.hpp>

#include "framework/core/state.h"

#include <cstdio>

namespace tenon {
namespace detail {
namespace {

std::atomic<uint64_t> next_serial{1};
std::atomic<uint32_t> next_slot{0};

struct OpName { uint32_t number; const char* name; };
#define TN_OP_NAME_(NAME, name, id, n_in, n_out, family) {id, #name},
constexpr OpName kOps[] = {TN_OPS(TN_OP_NAME_)};
#undef TN_OP_NAME_

}  // namespace

namespace {
struct NameTable {
  const char* name[kOpTable] = {};
  constexpr NameTable() {
    for (const char*& n : name) n = "op";
    for (const OpName& o : kOps) name[o.number] = o.name;
  }
};
constexpr NameTable kNames;
}  // namespace

const char* op_name(uint32_t number) { return kNames.name[number < kOpTable ? number : 0]; }

RuntimeState::RuntimeState(tn_runtime* h, bool owns) : handle(h), serial(next_serial++), owned(owns) {
  for (const OpName& o : kOps) tn_op_find(handle, o.name, 0, &op[o.number], nullptr);
}

RuntimeState::~RuntimeState() {
  // Work on its way is waited for. TN_E_BUSY: tensors still use it. It then stays, since memory in use is never taken away.
  if (owned && handle != nullptr) tn_runtime_destroy(handle, TN_FOREVER, nullptr);
}

DeviceState* RuntimeState::device(uint32_t id, Where where) {
  std::lock_guard lock(mutex);
  for (auto& d : devices) if (d->id == id) return d.get();
  uint32_t n = 0;
  tn_diag diag{sizeof diag};
  tn_status s = tn_devices(handle, nullptr, sizeof(tn_device_entry), 0, &n, &diag);
  if (s != TN_OK) raise(diag, s, where, "device", nullptr);
  std::vector<tn_device_entry> list(n);
  for (auto& e : list) e.size = sizeof e, e.info.size = sizeof e.info;
  s = tn_devices(handle, list.data(), sizeof(tn_device_entry), n, &n, &diag);
  if (s != TN_OK) raise(diag, s, where, "device", nullptr);
  auto d = std::make_unique<DeviceState>();
  d->runtime = this;
  d->id = id;
  d->serial = next_serial++;
  d->slot = next_slot++;
  for (auto& e : list) {
    if (e.device != id) continue;
    std::snprintf(d->name, sizeof d->name, "%s", e.name);
    d->kind = e.info.kind;
  }
  devices.push_back(std::move(d));
  return devices.back().get();
}

DeviceState* RuntimeState::find(const char* spec, uint32_t policy, Where where) {
  tn_diag diag{sizeof diag};
  uint32_t id = 0;
  const tn_status s = tn_device_find(handle, spec, policy, &id, &diag);
  if (s != TN_OK) raise(diag, s, where, "device", nullptr);
  return device(id, where);
}

tn_queue* queue_slow(ThreadState& ts, DeviceState* d, Where where) {
  tn_diag diag{sizeof diag};
  tn_queue* q = nullptr;
  const tn_status s = tn_queue_get(d->runtime->handle, d->id, &q, &diag);
  if (s != TN_OK) raise(diag, s, where, "queue", d);
  ts.queues[d->slot % ThreadState::kQueues] = {d->serial, q};
  return q;
}

// One text per source line that ever made a call: bounded by the program's size, and never freed, as notes must be static.
void note_slow(ThreadState& ts, tn_queue* q, Where where) {
  static std::mutex mutex;
  static auto* texts = new std::vector<std::pair<Where, std::unique_ptr<char[]>>>();
  struct Recent { Where where; const char* text; };
  static thread_local Recent recent[64] = {};
  Recent& r = recent[(reinterpret_cast<uintptr_t>(where.file) * 31 + where.line) % 64];
  if (r.where.file != where.file || r.where.line != where.line || r.text == nullptr) {
    std::lock_guard lock(mutex);
    const char* found = nullptr;
    for (auto& [w, t] : *texts) if (w.file == where.file && w.line == where.line) found = t.get();
    if (found == nullptr) {
      const std::string s = tenon::to_string(where);
      auto copy = std::make_unique<char[]>(s.size() + 1);
      std::memcpy(copy.get(), s.c_str(), s.size() + 1);
      found = copy.get();
      texts->emplace_back(where, std::move(copy));
    }
    r = {where, found};
  }
  tn_queue_note(q, r.text);
  ts.noted = where;
  ts.noted_queue = q;
}

namespace {

struct Defaults {
  std::mutex mutex;
  std::unique_ptr<Runtime> runtime;
  std::atomic<DeviceState*> device{nullptr};
};
// The one replaceable global of the framework. Never destroyed: nothing runs at exit.
Defaults& defaults() {
  static Defaults* d = new Defaults;
  return *d;
}

std::vector<const char*> pointers(const std::vector<std::string>& v) {
  std::vector<const char*> out;
  for (const auto& s : v) out.push_back(s.c_str());
  return out;
}

}  // namespace

DeviceState* pick_device(const TensorOptions& o, Where) {
  return state_of(o.device ? o.device : default_device());
}

}  // namespace detail

detail::DeviceState* state_of(Device d) { return d.state_; }
Device device_of(detail::DeviceState* s) { Device d; d.state_ = s; return d; }
const char* Device::name() const { return state_ ? state_->name : "none"; }
uint32_t Device::id() const { return state_->id; }
uint32_t Device::kind() const { return state_->kind; }
tn_runtime* Device::runtime() const { return state_->runtime->handle; }
void Device::synchronize() const {
  tn_point p;
  tn_queue_point(detail::queue(detail::thread(), state_, here()), &p);
  tn_diag diag{sizeof diag};
  const tn_status s = tn_wait(state_->runtime->handle, &p, 1, TN_FOREVER, &diag);
  if (s != TN_OK) detail::raise(diag, s, here(), "synchronize", state_);
}

Runtime::Runtime(const RuntimeOptions& options, Where where) {
  const auto paths = detail::pointers(options.paths), allow = detail::pointers(options.allow);
  tn_runtime_options o{};
  o.size = sizeof o;
  o.flags = options.flags;
  o.policy = options.policy;
  o.threads = options.threads;
  o.memory_limit_bytes = options.memory_limit_bytes;
  o.paths = paths.empty() ? nullptr : paths.data();
  o.n_paths = static_cast<uint32_t>(paths.size());
  o.allow = allow.empty() ? nullptr : allow.data();
  o.n_allow = static_cast<uint32_t>(allow.size());
  o.cache_dir = options.cache_dir.empty() ? nullptr : options.cache_dir.c_str();
  tn_runtime* handle = nullptr;
  tn_diag diag{sizeof diag};
  const tn_status s = tn_runtime_create(&o, &handle, &diag);
  if (s != TN_OK) detail::raise(diag, s, where, "runtime", nullptr);
  state_ = std::make_shared<detail::RuntimeState>(handle, true);
}

Runtime Runtime::borrow(tn_runtime* handle, Where) { return Runtime(std::make_shared<detail::RuntimeState>(handle, false)); }
tn_runtime* Runtime::get() const { return state_->handle; }
Generator& Runtime::generator() const { return state_->generator; }
Device Runtime::device(const std::string& spec, uint32_t policy, Where where) const {
  return device_of(state_->find(spec.c_str(), policy, where));
}
void Runtime::close(uint64_t timeout_ns, Where where) {
  tn_diag diag{sizeof diag};
  const tn_status s = tn_runtime_destroy(state_->handle, timeout_ns, &diag);
  if (s != TN_OK) detail::raise(diag, s, where, "runtime", nullptr);
  state_->handle = nullptr;
}

Runtime& default_runtime() {
  detail::Defaults& d = detail::defaults();
  std::lock_guard lock(d.mutex);
  if (!d.runtime) d.runtime = std::make_unique<Runtime>();
  return *d.runtime;
}
void set_default_runtime(const Runtime& rt) {
  detail::Defaults& d = detail::defaults();
  std::lock_guard lock(d.mutex);
  d.runtime = std::make_unique<Runtime>(rt);
  d.device = nullptr;
}
Device device(const char* spec, Where where) { return default_runtime().device(spec, TN_POLICY_PREFER, where); }
Device default_device() {
  detail::Defaults& d = detail::defaults();
  detail::DeviceState* s = d.device.load(std::memory_order_acquire);
  if (s == nullptr) {
    // A device that another thread set meanwhile stands.
    detail::DeviceState* const fallback = state_of(device("cpu:0"));
    if (d.device.compare_exchange_strong(s, fallback, std::memory_order_acq_rel)) s = fallback;
  }
  return device_of(s);
}
void set_default_device(Device dev) { detail::defaults().device.store(state_of(dev), std::memory_order_release); }
Generator& default_generator() { return default_runtime().generator(); }
void manual_seed(uint64_t seed) { default_generator().seed(seed); }

}  // namespace tenon
