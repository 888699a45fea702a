// kernel/runtime.h - the runtime object: plugins, devices, tables, caches, queues. The loader boots it.
//
// Threads: any, except as noted. Locks are taken in this order: plugins, queues, plans, device memory.
#pragma once
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/attr_table.h"
#include "kernel/candidates.h"
#include "kernel/class_plans.h"
#include "kernel/device.h"
#include "kernel/hooks.h"
#include "kernel/layouts.h"
#include "kernel/op_table.h"
#include "kernel/plan.h"
#include "kernel/plugin_slot.h"
#include "kernel/queue.h"
#include "kernel/select.h"
#include "kernel/thread_pool.h"
#include "kernel/type_table.h"
#include "kernel/visible.h"

namespace tenon::kernel {

// What a thread that ends looks through: the runtime, or nullptr once it began to go.
struct Alive {
  std::mutex mutex;
  class Runtime* runtime = nullptr;
};

class Runtime {
 public:
  static constexpr uint32_t kPlanLimit = 16 * 1024;    // documented bound of the shared plan cache
  static constexpr uint32_t kKernelLimit = 8 * 1024;   // prepared kernels kept for reuse
  explicit Runtime(const tn_runtime_options* options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // ---- for the loader ----
  PluginSlot* add_slot();                                                  // host filled; entry.index set
  tn_status attach(PluginSlot* slot, tn_diag* diag);                       // open(), then ops, kernels, devices
  // Lists the devices of a plugin that is not opened; slot->wake opens it when one of them is asked for.
  void add_known(PluginSlot* slot, const std::vector<tn_device_info>& infos);
  void forget_known(PluginSlot* slot, const char* cause);  // takes that back: its devices cannot be used any more
  // Opens the device's plugin, and the others that are only known and offer devices of its kind: kernels of one may serve
  // the other's. What fails is the verdict of slot and devices. Nothing when another thread was first.
  void wake(const Device* device);
  tn_status detach(PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag);  // TN_E_BUSY while anything of it lives; attached
  // Which devices may be used; those that may not stay in the list, with the reason as verdict.
  void set_filter(const VisibleFilter& filter);
  void hide(const HiddenDevice& device);           // its own driver does not let it through: its other routes are hidden too
  bool filter_means(const PluginSlot* slot, const std::vector<tn_device_info>& infos);  // any of these devices of the plugin
  tn_status check_filter(tn_diag* diag);           // every entry means a device
  std::recursive_mutex& plugin_lock() { return plugin_mutex_; }
  std::span<const std::unique_ptr<PluginSlot>> slots() const { return slots_; }
  tn_status define_op(const tn_op_def* def, tn_diag* diag);
  void set_op_roles(uint64_t accumulate_op, uint64_t copy_op) { ops_.set_roles(accumulate_op, copy_op); }
  // Configuration text for plugins ("sim.devices"): set before attach. Keys also come from TENON_CONFIG by the loader.
  void set_config(const std::string& key, const std::string& value);
  const char* config(const char* key) const;
  std::string config_text(const std::string& except) const;  // all settings as key=value;... but those whose key begins so
  std::function<void(const char* stage)> on_stage;           // told before attach calls the plugin: "open", "kernels", "devices"

  std::unique_ptr<RateStore> rate_store;                     // measured rates of devices; set before a device is opened

  // ---- tables ----
  TypeTable& types() { return types_; }
  AttrTable& attrs() { return attrs_; }
  OpTable& ops() { return ops_; }
  const OpTable& ops() const { return ops_; }
  CandidateTable& candidates() { return candidates_; }
  LayoutTable& layouts() { return layouts_; }
  Hooks& hooks() { return hooks_; }
  void set_hooks(const tn_hooks* hooks);
  ThreadPool& pool() { return pool_; }
  uint32_t policy() const { return policy_; }
  uint32_t flags() const { return flags_; }
  // What the runtime's own options demand of every call: TN_CALL_*.
  uint32_t call_flags() const {
    return (policy_ == TN_POLICY_NO_EXPAND ? uint32_t{TN_CALL_NO_EXPAND} : 0u) | (flags_ & TN_RT_DETERMINISTIC ? uint32_t{TN_CALL_DETERMINISTIC} : 0u);
  }
  uint64_t memory_limit() const { return memory_limit_; }
  std::atomic<uint32_t>& epoch() { return epoch_; }
  uint64_t serial() const { return serial_; }

  // ---- devices ----
  Device* device(uint32_t index);                  // nullptr when unknown
  std::vector<Device*> devices();
  std::vector<tn_device_entry> device_entries();   // all in one state, with the pieces of hardware they lead to
  void wait_device(Device* device) { still_working(TN_FOREVER, device); }
  void count_fallback(const OpEntry& op, const Device* asked, const Device* used, const char* cause);
  uint64_t n_fallbacks() const { return n_fallbacks_.load(); }

  // ---- choosing and plans ----
  std::string pinned(uint32_t op, uint32_t device);
  void pin(uint32_t op, uint32_t device, const char* kernel);
  void drop_plans();                               // empties the shared caches
  std::string tune_key(const Request& request, const char* kernel);
  tn_status prepare_kernel(const KernelRow& row, Device* device, const Request& request, const KernelOp& op, KernelRef* out, tn_diag* diag);
  tn_plan* find_plan(const std::string& key);      // one reference, or nullptr
  void keep_plan(const std::string& key, tn_plan* plan);
  size_t plan_count();
  ClassPlans& class_plans() { return class_plans_; }

  // ---- queues ----
  tn_queue* queue(uint32_t id);                     // nullptr when gone
  tn_status thread_queue(Device* device, tn_queue** out, tn_diag* diag);
  tn_status new_queue(Device* device, int32_t priority, tn_queue** out, tn_diag* diag);
  void drop_queue(tn_queue* q);
  void abandon_queue(uint32_t id);                  // its thread ended: another may take it over
  // Waits for all work, or that of one device; the device of what is not done in time, else nullptr.
  Device* still_working(uint64_t timeout_ns, const Device* only = nullptr);
  tn_status shut_down(uint64_t timeout_ns, tn_diag* diag);

 private:
  tn_status add_devices(PluginSlot* slot, tn_diag* diag);
  void place_devices(PluginSlot* slot, const std::vector<tn_device_info>& infos);
  void place_device(PluginSlot* slot, uint32_t i, const tn_device_info& info);
  void give_up(PluginSlot* slot, const char* cause);  // the verdict of all its devices
  void judge(Device* device);                      // what the runtime's options say of it
  void apply_filters();
  std::vector<tn_device_entry> list_devices();     // the caller holds the device lock
  void wake(PluginSlot* slot);
  void fill_host(PluginSlot* slot);
  tn_status quiesce(PluginSlot* slot, uint64_t timeout_ns, tn_diag* diag);

  const uint64_t serial_;
  std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
  std::recursive_mutex plugin_mutex_;
  std::vector<std::unique_ptr<PluginSlot>> slots_;
  std::map<std::string, std::string> config_;
  TypeTable types_;
  AttrTable attrs_;
  OpTable ops_;
  LayoutTable layouts_;
  CandidateTable candidates_;
  Hooks hooks_;
  ThreadPool pool_;
  uint32_t policy_ = TN_POLICY_PREFER, flags_ = 0;
  uint64_t memory_limit_ = 0;
  std::atomic<uint32_t> epoch_{1};
  std::atomic<uint64_t> n_fallbacks_{0};

  std::mutex device_mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
  VisibleFilter filter_;
  std::vector<HiddenDevice> hidden_;

  std::mutex plan_mutex_;
  std::unordered_map<std::string, tn_plan*> plans_;
  std::unordered_map<std::string, KernelRef> kernels_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> pins_;
  ClassPlans class_plans_;

  std::mutex queue_mutex_;
  std::vector<std::unique_ptr<tn_queue>> queues_;   // index = id - 1; empty slots are reused
  std::vector<uint32_t> orphans_;
};

}  // namespace tenon::kernel

// The opaque type of the C API.
struct tn_runtime {
  explicit tn_runtime(const tn_runtime_options* options) : core(options) {}
  tenon::kernel::Runtime core;
};
