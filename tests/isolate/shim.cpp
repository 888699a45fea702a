// A plugin that is another one in a worker process: what the loader puts in the place of an isolated plugin, with an exported
// symbol, so that the conformance kit can look at it. SHIM_ID, SHIM_PLUGIN and SHIM_WORKER name what is behind it.
#include "loader/isolate/proxy.h"

using namespace tenon::loader;

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, SHIM_ID, "0.1.0", SHIM_TARGET, {0, 0, 0, 0}, TN_COLD_EMULATED, 0, {""}});

namespace {

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  isolate::Job job;
  job.program = SHIM_WORKER, job.plugin = SHIM_PLUGIN, job.id = SHIM_ID;
  job.threads = 2;
  std::shared_ptr<isolate::WorkerProcess> worker;
  isolate::Facts facts;
  if (const auto bad = isolate::start_worker(job, &worker, &facts)) {
    diag->len = static_cast<uint32_t>(bad->cause.copy(diag->msg, sizeof diag->msg - 1));
    return diag->status = TN_E_UNAVAILABLE;
  }
  return isolate::open_proxy(std::move(worker), host, out, diag);
}

}  // namespace

extern "C" TN_EXPORT const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) {
  static const tn_plugin table = isolate::proxy_table({true, true, true}, open);
  return abi == TN_ABI_CURRENT ? &table : nullptr;
}
