#include "kernel/runtime.h"

#include <algorithm>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

uint64_t next_serial() {
  static std::atomic<uint64_t> serial{0};  // names a runtime for thread-local look-ups; never reused
  return ++serial;
}

// This thread's own queues. A runtime that is gone is recognised by its serial and its empty owner.
struct ThreadQueues {
  struct Row {
    uint64_t serial;
    uint32_t device;
    tn_queue* queue;
    std::weak_ptr<Alive> owner;
  };
  std::vector<Row> rows;
  ~ThreadQueues() {
    for (Row& row : rows)
      if (auto owner = row.owner.lock()) {
        std::lock_guard lock(owner->mutex);  // the runtime does not go meanwhile
        if (owner->runtime) owner->runtime->abandon_queue(row.queue->id);
      }
  }
};
thread_local ThreadQueues t_queues;

}  // namespace

Runtime::Runtime(const tn_runtime_options* options)
    : serial_(next_serial()), pool_(options && TN_HAS(tn_runtime_options, options, threads) && options->threads ? options->threads : default_thread_count()) {
  alive_->runtime = this;
  types_.set_epoch(&epoch_);
  if (!options) return;
  if (TN_HAS(tn_runtime_options, options, flags)) flags_ = options->flags;
  if (TN_HAS(tn_runtime_options, options, policy)) policy_ = options->policy;
  if (TN_HAS(tn_runtime_options, options, memory_limit_bytes)) memory_limit_ = options->memory_limit_bytes;
  if (TN_HAS(tn_runtime_options, options, hooks)) set_hooks(options->hooks);
}

Runtime::~Runtime() {
  tn_diag ignored;
  {
    std::lock_guard lock(alive_->mutex);
    alive_->runtime = nullptr;
  }
  alive_.reset();
  shut_down(TN_FOREVER, &ignored);
}

void Runtime::set_hooks(const tn_hooks* hooks) {
  hooks_.set(hooks);
  std::lock_guard lock(queue_mutex_);
  for (auto& q : queues_)
    if (q) q->direct = goes_direct(*q);
}

void Runtime::set_config(const std::string& key, const std::string& value) {
  std::lock_guard lock(plugin_mutex_);
  config_[key] = value;
}

const char* Runtime::config(const char* key) const {
  auto it = config_.find(key);
  return it == config_.end() ? nullptr : it->second.c_str();
}

std::string Runtime::config_text(const std::string& except) const {
  std::string text;
  for (const auto& [key, value] : config_)
    if (!key.starts_with(except)) text += key + '=' + value + ';';
  return text;
}

// ---- plugins ------------------------------------------------------------------------------------------------------

PluginSlot* Runtime::add_slot() {
  std::lock_guard lock(plugin_mutex_);
  auto slot = std::make_unique<PluginSlot>();
  slot->entry.size = sizeof slot->entry;
  slot->entry.index = static_cast<uint32_t>(slots_.size());
  fill_host(slot.get());
  slots_.push_back(std::move(slot));
  return slots_.back().get();
}

tn_status Runtime::define_op(const tn_op_def* def, tn_diag* diag) {
  uint32_t ignored;
  return ops_.define(def, 0, &ignored, diag);
}

tn_status Runtime::attach(PluginSlot* slot, tn_diag* diag) {
  std::lock_guard lock(plugin_mutex_);
  const tn_plugin* table = slot->table;
  if (on_stage) on_stage("open");
  if (tn_status s = call_plugin(table->open, &slot->host, &slot->instance, diag)) return s;
  // A failure, or an exception that a plugin lets out against the rules: nothing of it stays behind.
  struct Abandon {
    Runtime* rt;
    PluginSlot* slot;
    ~Abandon() {
      if (!rt) return;
      rt->candidates_.remove(slot);
      call_plugin(slot->table->close, slot->instance);
      slot->instance = nullptr;
    }
  } abandon{this, slot};
  if (on_stage) on_stage("kernels");
  if (TN_HAS(tn_plugin, table, ops) && table->ops) {
    const tn_op_def* defs = nullptr;
    uint32_t stride = 0, n = 0;
    if (tn_status s = call_plugin(table->ops, slot->instance, &defs, &stride, &n, diag)) return s;
    for (uint32_t i = 0; i < n; ++i) {
      const auto* def = reinterpret_cast<const tn_op_def*>(reinterpret_cast<const char*>(defs) + size_t{i} * stride);
      if (tn_status s = define_op(def, diag)) return s;
    }
  }
  if (tn_status s = candidates_.add(slot, layouts_, diag)) return s;
  if (on_stage) on_stage("devices");
  if (tn_status s = add_devices(slot, diag)) return s;
  abandon.rt = nullptr;
  slot->attached = true;
  drop_plans();  // new candidates: choices are made anew
  epoch_.fetch_add(1);
  return TN_OK;
}

// Waits until the plugin has nothing left. Opened devices are live objects of it as well: they are closed once nothing else
// can be.
tn_status Runtime::quiesce(PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag) {
  std::vector<Device*> open;
  for (Device* d : devices())
    if (d->plugin == slot && d->handle) open.push_back(d);
  uint32_t live = 0;
  if (tn_status s = slot->table->quiesce(slot->instance, open.empty() ? timeout_ns : 0, &live, diag)) return s;
  if (live <= open.size()) {
    for (Device* d : open) slot->table->device_close(d->handle), d->handle = nullptr;
    if (!open.empty())
      if (tn_status s = slot->table->quiesce(slot->instance, timeout_ns, &live, diag)) return s;
  }
  if (live == 0) return TN_OK;
  return fail(diag, TN_E_BUSY, id(kState, 8), "plugin %s is in use\nwhy: it counts %u live objects\ntry: release tensors and plans first", slot->entry.id, live);
}

tn_status Runtime::detach(PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag) {
  std::lock_guard lock(plugin_mutex_);
  if (!slot->attached) return TN_OK;
  for (Device* d : devices())
    if (d->plugin == slot && d->handle) {
      if (still_working(timeout_ns, d))  // queues hold what their work still uses
        return fail(diag, TN_E_BUSY, id(kState, 8), "plugin %s is in use\nwhy: work on %s is still running after %.3g ms\ntry: wait for it first, or give a longer timeout", slot->entry.id, d->name, static_cast<double>(timeout_ns) / 1e6);
      tn_memory_info info{};
      d->memory.stats(&info);
      if (info.in_use) return fail(diag, TN_E_BUSY, id(kState, 8), "plugin %s is in use\nwhy: %llu bytes of tensors live on %s\ntry: release them first", slot->entry.id, static_cast<unsigned long long>(info.in_use), d->name);
    }
  epoch_.fetch_add(1);
  drop_plans();
  std::vector<tn_queue*> queues;
  {
    std::lock_guard lock(queue_mutex_);
    for (auto& q : queues_)
      if (q && q->dev_queue) queues.push_back(q.get());
  }
  for (tn_queue* q : queues) clear_cache(q);  // other threads must not use the plugin any more: the caller's promise
  if (slot->live_kernels.load())
    return fail(diag, TN_E_BUSY, id(kState, 8), "plugin %s is in use\nwhy: %lld prepared kernels are held by plans\ntry: release the plans first", slot->entry.id, static_cast<long long>(slot->live_kernels.load()));
  for (tn_queue* q : queues)
    if (q->device->plugin == slot) {
      close_queue(q);
      q->pool->trim();
    }
  if (tn_status s = quiesce(slot, timeout_ns, diag)) return s;
  candidates_.remove(slot);
  give_up(slot, "its plugin was unloaded");
  slot->table->close(slot->instance);
  slot->instance = nullptr;
  slot->attached = false;
  return TN_OK;
}

// ---- devices ------------------------------------------------------------------------------------------------------

void Runtime::count_fallback(const OpEntry& op, const Device* asked, const Device* used, const char* cause) {
  n_fallbacks_.fetch_add(1);
  const Hooks::Use hooks(hooks_);
  if (hooks->log) {
    char text[320];
    const int n = std::snprintf(text, sizeof text, "%s ran on %s instead of %s because: %s", op.name.c_str(), used->name, asked->name, cause);
    hooks->log(hooks->ctx, TN_LOG_WARN, text, static_cast<uint32_t>(std::min<int>(n, sizeof text - 1)));
  }
  if (!hooks_.wants(TN_EVENT_FALLBACK)) return;
  tn_event event{};
  event.size = sizeof event;
  event.kind = TN_EVENT_FALLBACK;
  event.device = used->index;
  event.op = op.id;
  event.name = op.name.c_str();
  event.where = cause;
  event.begin_ns = event.end_ns = now_ns();
  hooks_.send(event);
}

// ---- plans --------------------------------------------------------------------------------------------------------

std::string Runtime::pinned(uint32_t op, uint32_t device) {
  std::lock_guard lock(plan_mutex_);
  for (uint32_t d : {device, 0u})
    if (auto it = pins_.find({op, d}); it != pins_.end()) return it->second;
  return {};
}

void Runtime::pin(uint32_t op, uint32_t device, const char* kernel) {
  {
    std::lock_guard lock(plan_mutex_);
    if (kernel) pins_[{op, device}] = kernel;
    else pins_.erase({op, device});
  }
  drop_plans();
  epoch_.fetch_add(1);
}

void Runtime::drop_plans() {
  std::unordered_map<std::string, tn_plan*> plans;  // released outside the lock: the last reference retires kernels
  std::unordered_map<std::string, KernelRef> kernels;
  {
    std::lock_guard lock(plan_mutex_);
    plans.swap(plans_);
    kernels.swap(kernels_);
  }
  for (auto& [key, plan] : plans) release_plan(plan);
  class_plans_.clear();
}

std::string Runtime::tune_key(const Request& request, const char* kernel) {
  std::string key = request.device->info.name;
  key += '|';
  key += request.device->info.driver;
  key += '|';
  key += kernel;
  key += '|';
  key += request.op->name;
  for (const tn_type& t : request.in) {
    char text[128];
    key += '|';
    key += t.dtype ? type_text(t, text, sizeof text) : "-";
  }
  return key;
}

tn_status Runtime::prepare_kernel(const KernelRow& row, Device* device, const Request& request, const KernelOp& op, KernelRef* out, tn_diag* diag) {
  std::string key;
  const void* head[3] = {row.info, device, request.attrs.get()};
  key.append(reinterpret_cast<const char*>(head), sizeof head);
  const uint32_t numbers[4] = {request.push_bytes, request.flags, op.n_in, op.n_out};
  key.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  for (const tn_type& t : op.types) key.append(reinterpret_cast<const char*>(&t), sizeof t);
  {
    std::lock_guard lock(plan_mutex_);
    if (auto it = kernels_.find(key); it != kernels_.end()) {
      *out = it->second;
      return TN_OK;
    }
  }
  const uint32_t math = (request.flags & TN_CALL_DETERMINISTIC ? uint32_t{TN_MATH_DETERMINISTIC} : 0u) | (request.flags & TN_CALL_TF32 ? uint32_t{TN_MATH_TF32} : 0u);
  OpView view(*request.op, *request.attrs, std::span(op.types).first(op.n_in), std::span(op.types).subspan(op.n_in), request.push_bytes, math);
  auto use = std::make_shared<KernelUse>();
  use->info = row.info;
  use->plugin = row.plugin;
  use->device = device;
  TraceSpan span(hooks_, TN_EVENT_COMPILE);
  if (span.on()) {
    span.event().device = device->index;
    span.event().op = request.op->id;
    span.event().plugin = row.plugin_index;
    span.event().name = row.info->name;
  }
  if (tn_status s = call_plugin(row.info->prepare, row.plugin->instance, &device->ref_for(row.plugin), &view.op(), &use->plan, diag)) {
    use->plan = nullptr;
    return s;
  }
  row.plugin->live_kernels.fetch_add(1, std::memory_order_relaxed);
  std::unordered_map<std::string, KernelRef> old;  // retired outside the lock
  {
    std::lock_guard lock(plan_mutex_);
    if (kernels_.size() >= kKernelLimit) old.swap(kernels_);
    // The key holds the attribute set's address: keep the set alive with the entry.
    kernels_.emplace(key, KernelRef(use.get(), [use, attrs = request.attrs](KernelUse*) {}));
    *out = kernels_[key];
  }
  return TN_OK;
}

tn_plan* Runtime::find_plan(const std::string& key) {
  std::lock_guard lock(plan_mutex_);
  auto it = plans_.find(key);
  if (it == plans_.end()) return nullptr;
  retain_plan(it->second);
  return it->second;
}

void Runtime::keep_plan(const std::string& key, tn_plan* plan) {
  std::vector<tn_plan*> old;  // released outside the lock: the last reference may retire kernels
  {
    std::lock_guard lock(plan_mutex_);
    if (plans_.size() >= kPlanLimit) {
      uint32_t n = kPlanLimit / 4;
      for (auto it = plans_.begin(); n && it != plans_.end(); --n) {
        old.push_back(it->second);
        it = plans_.erase(it);
      }
    }
    if (plans_.emplace(key, plan).second) retain_plan(plan);
  }
  for (tn_plan* p : old) release_plan(p);
}

size_t Runtime::plan_count() {
  std::lock_guard lock(plan_mutex_);
  return plans_.size();
}

// ---- queues -------------------------------------------------------------------------------------------------------

tn_queue* Runtime::queue(uint32_t id) {
  std::lock_guard lock(queue_mutex_);
  return id >= 1 && id <= queues_.size() ? queues_[id - 1].get() : nullptr;
}

tn_status Runtime::thread_queue(Device* device, tn_queue** out, tn_diag* diag) {
  if (device->verdict) return device->refuse(diag);
  for (const ThreadQueues::Row& row : t_queues.rows)
    if (row.serial == serial_ && row.device == device->index && !row.owner.expired()) {
      if (!row.queue->dev_queue)
        if (tn_status s = connect_queue(row.queue, 0, diag)) return s;
      *out = row.queue;
      return TN_OK;
    }
  std::erase_if(t_queues.rows, [](const ThreadQueues::Row& row) { return row.owner.expired(); });
  tn_queue* q = nullptr;
  {
    std::lock_guard lock(queue_mutex_);
    for (size_t i = 0; i < orphans_.size(); ++i) {
      tn_queue* orphan = queues_[orphans_[i] - 1].get();
      if (!orphan || orphan->device != device) continue;
      q = orphan;
      orphans_.erase(orphans_.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  }
  if (q) {
    if (!q->dev_queue)
      if (tn_status s = connect_queue(q, 0, diag)) return s;
    q->pool->adopt();
  } else {
    std::unique_ptr<tn_queue> fresh;
    if (tn_status s = open_queue(*this, device, 0, true, &fresh, diag)) return s;
    std::lock_guard lock(queue_mutex_);
    fresh->id = static_cast<uint32_t>(queues_.size()) + 1;
    fresh->direct = goes_direct(*fresh);
    q = fresh.get();
    queues_.push_back(std::move(fresh));
  }
  t_queues.rows.push_back({serial_, device->index, q, alive_});
  *out = q;
  return TN_OK;
}

tn_status Runtime::new_queue(Device* device, int32_t priority, tn_queue** out, tn_diag* diag) {
  std::unique_ptr<tn_queue> fresh;
  if (tn_status s = open_queue(*this, device, priority, false, &fresh, diag)) return s;
  std::lock_guard lock(queue_mutex_);
  fresh->id = static_cast<uint32_t>(queues_.size()) + 1;
  fresh->direct = goes_direct(*fresh);
  *out = fresh.get();
  queues_.push_back(std::move(fresh));
  return TN_OK;
}

void Runtime::abandon_queue(uint32_t id) {
  std::lock_guard lock(queue_mutex_);
  tn_queue* q = id <= queues_.size() ? queues_[id - 1].get() : nullptr;
  if (!q) return;
  q->pool->abandon();
  orphans_.push_back(id);
}

void Runtime::drop_queue(tn_queue* q) {
  close_queue(q);
  // Storages still alive return to this queue's pool: it stays until the runtime ends, without its cache.
  q->cache = std::make_unique<CacheEntry[]>(kCacheEntries);
}

Device* Runtime::still_working(uint64_t timeout_ns, const Device* only) {
  std::vector<tn_queue*> queues;
  {
    std::lock_guard lock(queue_mutex_);
    for (auto& q : queues_)
      if (q && q->dev_queue && !q->inline_work && (!only || q->device == only)) queues.push_back(q.get());
  }
  const uint64_t begin = now_ns();
  for (tn_queue* q : queues) {
    const uint64_t spent = now_ns() - begin;
    const uint64_t left = timeout_ns == TN_FOREVER ? TN_FOREVER : timeout_ns > spent ? timeout_ns - spent : 0;
    tn_diag ignored{};
    ignored.size = sizeof ignored;
    if (wait_queue(q, q->submitted.load(), left, &ignored) == TN_E_TIMEOUT) return q->device;
  }
  return nullptr;
}

tn_status Runtime::shut_down(uint64_t timeout_ns, tn_diag* diag) {
  std::lock_guard lock(plugin_mutex_);
  std::vector<std::unique_ptr<tn_queue>> queues;
  {
    std::lock_guard ql(queue_mutex_);
    queues.swap(queues_);
  }
  for (auto& q : queues)
    if (q && q->dev_queue) {
      // Plans first: retiring their kernels needs nothing of the queue but that its work, which runs them, is done. Whatever
      // the timeout: the queues are off the list already, so that retiring itself waits for none of them.
      tn_diag ignored;
      if (!q->inline_work) wait_queue(q.get(), q->submitted.load(), TN_FOREVER, &ignored);
      clear_cache(q.get());
    }
  drop_plans();
  for (auto& q : queues)
    if (q && q->dev_queue) close_queue(q.get());
  for (auto& q : queues)  // only now: queues hold memory of each other's pools
    if (q) q->pool.reset();
  queues.clear();
  for (auto& slot : slots_) {
    if (!slot->attached) continue;
    for (auto& d : devices_)
      if (d->plugin == slot.get() && d->handle) call_plugin(slot->table->device_close, d->handle), d->handle = nullptr;
    uint32_t live = 0;
    call_plugin(slot->table->quiesce, slot->instance, timeout_ns, &live, diag);
    candidates_.remove(slot.get());
    call_plugin(slot->table->close, slot->instance);
    slot->attached = false;
  }
  return TN_OK;
}

}  // namespace tenon::kernel
