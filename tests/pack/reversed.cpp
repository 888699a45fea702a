#include "tests/pack/reversed.h"

#include <tenon/ops.h>

#include <cstring>
#include <utility>

namespace tenon::test {
namespace {

Reversed g_packs[kReversed];

struct Plan {
  tn_kernel_plan head;
  int64_t m, n, k;
  Reversed* pack;
};

tn_status refuse(tn_diag* diag, const char* text) {
  if (diag) std::snprintf(diag->msg, sizeof diag->msg, "%s", text), diag->len = static_cast<uint32_t>(std::strlen(text)), diag->status = TN_E_UNSUPPORTED;
  return TN_E_UNSUPPORTED;
}

template <int i>
struct Pack {
  static tn_status supports(tn_instance*, const tn_device_ref*, const tn_op*, tn_support* out, tn_diag* diag) {
    if (g_packs[i].refuse_supports) return refuse(diag, "reversed: not today");
    out->est_ns = g_packs[i].est_ns;
    return TN_OK;
  }
  static tn_status launch(const tn_kernel_plan* head, const tn_launch* l) {
    const auto& p = *static_cast<const Plan*>(head->self);
    ++p.pack->n_launch;
    const auto *a = static_cast<const float*>(l->views[0].host), *b = reinterpret_cast<const float*>(static_cast<const char*>(l->views[1].host) + 8);
    auto* c = static_cast<float*>(l->views[2].host);
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        for (int64_t q = 0; q < p.k; ++q) sum += a[r * p.k + q] * b[(p.k - 1 - q) * p.n + j];
        c[r * p.n + j] = sum;
      }
    return TN_OK;
  }
  static tn_status prepare(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag*) {
    auto* p = new Plan{{launch, nullptr, 0, 3, 0, 0, 0}, op->type[0].dim[0], op->type[1].dim[1], op->type[1].dim[0], &g_packs[i]};
    p->head.self = p;
    *out = &p->head;
    return TN_OK;
  }
  static void retire(tn_instance*, const tn_device_ref*, const tn_kernel_plan* p) { delete static_cast<const Plan*>(p->self); }
  static tn_status bytes(tn_instance*, const tn_device_ref*, const tn_op* op, uint64_t* out, tn_diag* diag) {
    ++g_packs[i].n_bytes;
    if (g_packs[i].refuse_bytes) return refuse(diag, "reversed: too large for it");
    *out = g_packs[i].bytes ? g_packs[i].bytes : static_cast<uint64_t>(op->type[1].dim[0] * op->type[1].dim[1]) * 4 + 8;
    return TN_OK;
  }
  static tn_status pack(tn_instance*, const tn_device_ref*, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue*, tn_diag*) {
    ++g_packs[i].n_pack;
    if (g_packs[i].fail_pack) return TN_E_FAILED;
    const tn_type& b = op->type[1];
    const auto* from = static_cast<const float*>(src->host);
    auto* to = reinterpret_cast<float*>(static_cast<char*>(dst->host) + 8);
    for (int64_t q = 0; q < b.dim[0]; ++q)
      for (int64_t j = 0; j < b.dim[1]; ++j) to[(b.dim[0] - 1 - q) * b.dim[1] + j] = from[q * b.stride[0] + j * b.stride[1]];
    return TN_OK;
  }
  static tn_status open(const tn_host*, tn_instance** out, tn_diag*) {
    *out = reinterpret_cast<tn_instance*>(&g_packs[i]);
    return TN_OK;
  }
  static tn_status quiesce(tn_instance*, uint64_t, uint32_t* live, tn_diag*) {
    *live = 0;
    return TN_OK;
  }
  static void close(tn_instance*) {}
  static tn_status kernels(tn_instance*, const tn_kernel_info** out, uint32_t* stride, uint32_t* n, tn_diag*) {
    static tn_constraint cons[2];
    static tn_kernel_packed ext;
    static tn_kernel_info info;
    cons[0] = {0, TN_NEED_DEVICE_KIND, TN_KIND_CPU, 0, 0, 0};
    cons[1] = {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, uint64_t{1} << TN_F32, 0, 0};
    Reversed& r = g_packs[i];
    ext = {{sizeof ext, TN_EXT_KERNEL_PACKED, nullptr}, r.operand, 0, r.layout.c_str(), bytes, pack};
    r.other.next = &ext.ext;
    info = {sizeof info, TN_KERNEL_DETERMINISTIC, &r.other, r.row.c_str(), TN_OPID_MATMUL, 1, 1, TN_TIER_NATIVE, cons, 2, 0, supports, prepare, retire};
    *out = &info, *stride = sizeof info, *n = 1;
    return TN_OK;
  }
  static const tn_plugin* query(uint32_t abi, const tn_host*) {
    static tn_plugin t;
    t = {};
    t.size = sizeof t, t.abi = abi, t.open = open, t.quiesce = quiesce, t.close = close, t.kernels = kernels;
    return &t;
  }
};

}  // namespace

Reversed& reversed(int plugin) { return g_packs[plugin]; }

void reset_reversed() {
  for (int i = 0; i < kReversed; ++i) {
    Reversed& r = g_packs[i];
    r.row = "test.matmul.reversed" + std::to_string(i), r.layout = "test.reversed", r.est_ns = 1 + i, r.operand = 1, r.bytes = 0;
    r.refuse_bytes = r.refuse_supports = r.fail_pack = false;
    r.other = {sizeof(tn_ext), 77, nullptr};
    r.n_bytes = r.n_pack = r.n_launch = 0;
  }
}

tn_plugin_query_fn reversed_query(int plugin) {
  static constexpr tn_plugin_query_fn kAll[kReversed] = {Pack<0>::query, Pack<1>::query, Pack<2>::query, Pack<3>::query};
  return kAll[plugin];
}

}  // namespace tenon::test
