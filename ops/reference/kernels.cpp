// ops/reference/kernels.cpp - rows, constraints and plans of the six primitives.
#include "ops/reference/kernels.h"

#include <cstdio>
#include <new>

#include "ops/reference/diag.h"
#include "ops/reference/dtype.h"

namespace tenon::reference {
namespace {

struct RowSpec { uint64_t op_id; const char* name; uint64_t any_mask, first_mask, second_mask; uint32_t flags, inplace_mask; };

constexpr uint64_t kMatmulMask = kIntMask | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64) | bit(TN_F8E4M3) | bit(TN_F8E5M2);
constexpr uint64_t kIndexMask = bit(TN_I32) | bit(TN_I64);
constexpr RowSpec kRows[KernelTable::kCount] = {
    {TN_OPID_POINTWISE, "pointwise", kScalarMask, 0, 0, TN_KERNEL_DETERMINISTIC | TN_KERNEL_INPLACE, 0xFFFF},
    {TN_OPID_REDUCE, "reduce", kScalarMask, 0, 0, TN_KERNEL_DETERMINISTIC, 0},
    {TN_OPID_MATMUL, "matmul", kScalarMask, kMatmulMask, kMatmulMask, TN_KERNEL_DETERMINISTIC, 0},
    {TN_OPID_COPY, "copy", kMoveMask, 0, 0, TN_KERNEL_DETERMINISTIC, 0},
    {TN_OPID_GATHER, "gather", kMoveMask, 0, kIndexMask, TN_KERNEL_DETERMINISTIC, 0},
    {TN_OPID_SCATTER, "scatter", kMoveMask, 0, kIndexMask, TN_KERNEL_DETERMINISTIC, 0},
};

tn_status supports(tn_instance*, const tn_device_ref*, const tn_op* op, tn_support*, tn_diag* diag) { return check(*op, diag); }

// Bytes a view of this type can touch, relative to its first element.
void extent(const tn_type& t, int64_t* low, int64_t* high) {
  const int64_t bytes = dtype_bytes(t.dtype);
  *low = 0, *high = bytes;
  for (int d = 0; d < t.rank; ++d) {
    if (t.dim[d] == 0) { *low = *high = 0; return; }
    const int64_t reach = (t.dim[d] - 1) * t.stride[d] * bytes;
    (reach < 0 ? *low : *high) += reach;
  }
}

}  // namespace

tn_status make_plan(const tn_op& op, uint32_t row, void* self, const tn_host* host, LaunchFn launch, const tn_kernel_plan** out, tn_diag* diag) {
  const uint32_t n_views = uint32_t{op.n_in} + op.n_out;
  if (n_views > kMaxViews)
    return fail(diag, TN_E_LIMIT, kErrViewCount, "reference: too many operands\nwhy: %u operands, at most %u are taken\ntry: split the op", n_views, kMaxViews);
  auto* plan = new (std::nothrow) Plan{};
  if (plan == nullptr) return fail(diag, TN_E_OOM, kErrOutOfMemory, "reference: no memory for a plan\nwhy: the heap is exhausted\ntry: free memory");
  tn_status status = TN_OK;
  plan->prepared = prepare(op, &status, diag);
  if (plan->prepared == nullptr) {
    delete plan;
    return status;
  }
  plan->head = {launch, self, 0, n_views, op.push_bytes, 0, row};
  plan->host = host;
  for (uint32_t k = 0; k < n_views; ++k) extent(op.type[k], &plan->low[k], &plan->high[k]);
  *out = &plan->head;
  return TN_OK;
}

void drop_plan(const tn_kernel_plan* plan) { delete plan_of(plan); }

void KernelTable::init(const char* prefix, uint32_t device_kind, decltype(tn_kernel_info::prepare) prepare_fn, decltype(tn_kernel_info::retire) retire_fn) {
  for (int i = 0; i < kCount; ++i) {
    const RowSpec& spec = kRows[i];
    tn_constraint* c = constraint[i];
    uint32_t n = 0;
    c[n++] = {0, TN_NEED_DEVICE_KIND, device_kind, 0, 0, 0};
    c[n++] = {TN_ANY_OPERAND, TN_NEED_LAYOUT, 0, uint64_t{1} << TN_LAYOUT_STRIDED, 0, 0};
    c[n++] = {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, spec.any_mask, 0, 0};
    if (spec.first_mask != 0) c[n++] = {0, TN_NEED_DTYPE, 0, spec.first_mask, 0, 0};
    if (spec.second_mask != 0) c[n++] = {1, TN_NEED_DTYPE, 0, spec.second_mask, 0, 0};
    std::snprintf(name[i], sizeof name[i], "%s.%s", prefix, spec.name);
    row[i] = tn_kernel_info{};
    row[i].size = sizeof row[i];
    row[i].flags = spec.flags;
    row[i].name = name[i];
    row[i].op_id = spec.op_id;
    row[i].op_min = 1, row[i].op_max = 1;
    row[i].tier = TN_TIER_REFERENCE;
    row[i].cons = c, row[i].n_cons = n;
    row[i].inplace_mask = spec.inplace_mask;
    row[i].supports = supports, row[i].prepare = prepare_fn, row[i].retire = retire_fn;
  }
}

}  // namespace tenon::reference
