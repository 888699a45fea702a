// The exported symbol, the cold record and the kernel table of the CPU kernel pack.
#include "backends/cpu/conv/conv.h"
#include "backends/cpu/core.h"

#if defined(__x86_64__)
#define TENON_CPU_TARGET "x86_64-linux-gnu"
#else
#define TENON_CPU_TARGET "aarch64-linux-gnu"
#endif

TN_COLD({sizeof(tn_cold), 1, TN_ABI_CURRENT, TN_ABI_CURRENT, "dev.tenon.cpu-kernels", "0.1.0", TENON_CPU_TARGET, {0, 0, 0, 0},
         TN_COLD_UNLOADABLE | TN_COLD_PACK_ONLY, 0, {""}});

namespace tenon::cpu {
namespace {

struct Pack : Instance {
  Rows rows;
};

tn_status open(const tn_host* host, tn_instance** out, tn_diag* diag) {
  try {
    Pack* pack = new Pack();
    pack->host = host;
    pack->isa = detect_isa(host->config(host->ctx, "cpu.isa"));
    pack->amx = detect_amx(pack->isa);
    pack->threads = host->threads(host->ctx);
    add_pointwise_rows(pack->rows);
    add_reduce_rows(pack->rows);
    add_copy_rows(pack->rows);
    add_matmul_rows(pack->rows);
    add_norm_rows(pack->rows);
    add_index_rows(pack->rows);
    add_amx_rows(pack->rows);
    add_packed_rows(pack->rows);
    add_amx_packed_rows(pack->rows);
    add_pool_rows(pack->rows);
    add_batch_norm_rows(pack->rows);
    add_conv_rows(pack->rows);
    *out = reinterpret_cast<tn_instance*>(static_cast<Instance*>(pack));
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, error_id(5, 1), "cpu: no memory\nwhy: the kernel table could not be allocated\ntry: free memory");
  }
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* live, tn_diag*) {
  if (live) *live = 0;  // plans are the core's to retire; nothing runs between launches
  return TN_OK;
}
void close(tn_instance* self) { delete static_cast<Pack*>(&self_of(self)); }
tn_status kernels(tn_instance* self, const tn_kernel_info** out, uint32_t* stride, uint32_t* n, tn_diag*) {
  const Rows& rows = static_cast<Pack&>(self_of(self)).rows;
  *out = rows.data();
  *stride = sizeof(tn_kernel_info);
  *n = uint32_t(rows.size());
  return TN_OK;
}

constexpr tn_plugin make_table() {
  tn_plugin t{};
  t.size = sizeof t;
  t.abi = TN_ABI_CURRENT;
  t.open = open;
  t.quiesce = quiesce;
  t.close = close;
  t.kernels = kernels;
  return t;
}
constexpr tn_plugin kTable = make_table();

}  // namespace
}  // namespace tenon::cpu

const tn_plugin* tn_plugin_query(uint32_t abi, const tn_host*) { return abi == TN_ABI_CURRENT ? &tenon::cpu::kTable : nullptr; }
