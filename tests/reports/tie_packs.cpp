#include "tests/reports/tie_packs.h"

#include <tenon/ops.h>

#include <vector>

#include "ops/op.h"

namespace {

// f64: cheaper than everybody, so that the tie is about winning. Other types: dearer than everybody.
tn_status supports(tn_instance*, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag*) {
  out->est_ns = op->n_in > 0 && op->type[0].dtype == TN_F64 ? 1e-3 : 1e12;
  return TN_OK;
}
tn_status launch(const tn_kernel_plan*, const tn_launch*) { return TN_E_UNSUPPORTED; }  // chosen, never run
tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag*) {
  auto* plan = new tn_kernel_plan{};
  plan->launch = launch;
  plan->n_views = uint32_t{op->n_in} + op->n_out;
  *out = plan;
  return TN_OK;
}
void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan* plan) { delete plan; }
tn_status open(const tn_host*, tn_instance** out, tn_diag*) {
  static char nothing;
  return *out = reinterpret_cast<tn_instance*>(&nothing), TN_OK;
}
tn_status quiesce(tn_instance*, uint64_t, uint32_t* live, tn_diag*) { return *live = 0, TN_OK; }
void close(tn_instance*) {}

constexpr tn_constraint kNeeds[] = {{TN_ANY_OPERAND, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0}, {TN_ANY_OPERAND, TN_NEED_STATIC, 0, 0, 0, 0}};

tn_kernel_info row_of(const char* name, uint64_t op, int32_t tier) {
  tn_kernel_info row{};
  row.size = sizeof row, row.flags = TN_KERNEL_DETERMINISTIC, row.name = name;
  row.op_id = op, row.op_min = 1, row.op_max = UINT16_MAX, row.tier = tier;
  row.cons = kNeeds, row.n_cons = 2;
  row.supports = supports, row.prepare = prepare, row.retire = retire;
  return row;
}

// A row for every op. Packs 0 and 1: equal in all but their ids. Pack 2: another name. Pack 3: a lower tier.
template <int N>
tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* stride, uint32_t* n, tn_diag*) {
  static const int32_t tier = N == 3 ? TN_TIER_NATIVE - 1 : TN_TIER_NATIVE;
  static const char* const name = N == 2 ? "tie.other" : "tie.same";
  static const std::vector<tn_kernel_info> rows = [] {
    std::vector<tn_kernel_info> all;
    for (const tenon::ops::OpDecl* op : tenon::ops::all_ops()) all.push_back(row_of(name, op->def.op_id, tier));
    return all;
  }();
  return *out = rows.data(), *stride = sizeof rows[0], *n = static_cast<uint32_t>(rows.size()), TN_OK;
}

template <int N>
const tn_plugin* query(uint32_t abi, const tn_host*) {
  static tn_plugin t{};
  t.size = sizeof t, t.abi = abi;
  t.open = open, t.quiesce = quiesce, t.close = close, t.kernels = kernels<N>;
  return &t;
}

constexpr tn_plugin_query_fn kQueries[kTiePacks] = {query<0>, query<1>, query<2>, query<3>};

}  // namespace

std::string tie_pack_id(int pack) { return std::string("org.example.tie_") + static_cast<char>('a' + kTiePacks - 1 - pack); }
tn_plugin_query_fn tie_pack_query(int pack) { return kQueries[pack]; }
