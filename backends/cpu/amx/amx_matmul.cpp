// cpu.matmul.amx_bf16 and cpu.matmul.amx_u8s8: the matmul op on AMX.
#include <algorithm>
#include <iterator>

#include "backends/cpu/constraints.h"
#include "backends/cpu/amx/amx.h"
#include "backends/cpu/matmul/matmul.h"

namespace tenon::cpu {
namespace {

struct AmxPlan : Plan {
  MatmulShape shape;
  Epilogue post;
  bool bf16 = false, narrow_out = false, by_columns = false;
  int64_t parts = 1, per_part = 0, side = 0, scratch_bytes = 0;
};

AmxProduct product_of(const AmxPlan& p, const tn_launch* l, int64_t batch) {
  int64_t a = 0, b = 0, c = 0;
  if (p.shape.rank) p.shape.offsets(batch, &a, &b, &c);
  const int64_t size = p.bf16 ? 2 : 1, out = p.narrow_out ? 2 : 4;
  const MatmulShape& s = p.shape;
  const auto at = [&](uint32_t k, int64_t offset) { return l ? static_cast<char*>(l->views[k].host) + offset : nullptr; };
  return {at(0, a * size), s.a_row * size, at(1, b * size), s.b_row * size, at(p.n_views - 1, c * out), s.c_row * out, s.m, s.n, s.k, p.bf16, p.narrow_out};
}
// Part i of the output: a band of columns or of rows.
bool cut(const AmxPlan& p, int64_t i, AmxProduct* q) {
  const int64_t first = i * p.per_part, count = std::min(p.per_part, p.side - first);
  if (count <= 0) return false;
  const int64_t size = p.bf16 ? 2 : 1, out = p.narrow_out ? 2 : 4;
  if (p.by_columns) {
    if (q->b) q->b += first * size, q->c += first * out;
    q->n = count;
  } else {
    if (q->a) q->a += first * q->a_row, q->c += first * q->c_row;
    q->m = count;
  }
  return true;
}

tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<AmxPlan>(base);
  struct Ctx { const AmxPlan& p; const tn_launch* l; char* scratch; };
  Ctx ctx{p, l, static_cast<char*>(l->views[p.n_views].host)};
  const auto run = [](void* arg, int64_t b, int64_t e, uint32_t worker) {
    const Ctx& c = *static_cast<Ctx*>(arg);
    for (int64_t i = b; i < e; ++i) {
      AmxProduct q = product_of(c.p, c.l, i / c.p.parts);
      if (cut(c.p, i % c.p.parts, &q)) amx_product(q, c.scratch + worker * c.p.scratch_bytes);
    }
  };
  const int64_t tasks = p.shape.batch * p.parts;
  const Instance& in = *p.instance;
  const double ns = double(p.shape.batch) * double(p.shape.m) * double(p.shape.n) * double(p.shape.k) / 400;
  if (tasks > 1 && in.threads > 1 && ns > 60000) in.host->parallel(in.host->ctx, tasks, 1, run, &ctx);
  else run(&ctx, 0, tasks, 0);
  if (p.post.present) p.post.run(in, l);
  return TN_OK;
}

template <bool kBf16>
void shape_plan(AmxPlan& p, const Instance& in, const tn_op& op) {
  p.shape = matmul_shape(op);
  const MatmulShape& s = p.shape;
  p.bf16 = kBf16;
  p.narrow_out = op.type[op.n_in].dtype == TN_BF16;
  const double ns = double(s.batch) * double(s.m) * double(s.n) * double(s.k) / 400;
  p.parts = ns > 60000 && s.batch < in.threads ? in.threads : 1;
  p.by_columns = s.n >= s.m;
  p.side = p.by_columns ? s.n : s.m;
  p.per_part = ((p.side + p.parts - 1) / p.parts + 63) / 64 * 64;
  uint32_t views = 0;
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) views += op.type[k].dtype != 0;
  p.n_views = views;
  AmxProduct whole = product_of(p, nullptr, 0);
  if (!cut(p, 0, &whole)) whole.m = whole.n = 0;
  p.scratch_bytes = amx_scratch_bytes(whole);
}

template <bool kBf16>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const Instance& in = self_of(self);
  if (!in.amx) return decline(out, diag, 1, "cpu.matmul.amx: no AMX\nwhy: the processor or the kernel does not offer tiles to this process\ntry: another kernel");
  const tn_type& c = op->type[op->n_in];
  const uint32_t accumulator = kBf16 ? TN_F32 : TN_I32;
  if (op->type[0].rank < 2 || op->type[1].rank < 2 || c.rank < 2) return decline(out, diag, 2, "cpu.matmul.amx: rank\nwhy: operands have ranks %u and %u\ntry: matrices", op->type[0].rank, op->type[1].rank);
  if (c.dtype != accumulator && !(kBf16 && c.dtype == TN_BF16 && op->n_in == 2 && !attr_program(*op, TN_KEY_POST)))
    return decline(out, diag, 3, "cpu.matmul.amx: output type %u\nwhy: sums are f32 or i32 (bf16 without a program after)\ntry: the accumulator's type", c.dtype);
  if (kBf16 && (op->math_flags & TN_MATH_SUBNORMAL)) return decline(out, diag, 4, "cpu.matmul.amx: subnormals were asked for\nwhy: bf16 tiles take subnormal inputs and sums as zero\ntry: drop TN_MATH_SUBNORMAL");
  const MatmulShape s = matmul_shape(*op);
  if ((s.k > 1 && s.a_col != 1) || (s.n > 1 && s.b_col != 1) || (s.n > 1 && c.stride[c.rank - 1] != 1))
    return decline(out, diag, 5, "cpu.matmul.amx: an operand's rows are not dense\nwhy: last strides are %lld and %lld\ntry: copy the operand", static_cast<long long>(s.a_col), static_cast<long long>(s.b_col));
  if (tn_status st = op->n_in == 2 && !attr_program(*op, TN_KEY_POST) ? TN_OK : check_post(self, *op, accumulator, out, diag); st != TN_OK) return st;
  const double flops = 2.0 * double(s.batch) * double(s.m) * double(s.n) * double(s.k);
  const double ns = flops / (kBf16 ? 1100 : 2200) + double(s.batch) * double(s.k) * (double(s.n) + double(s.m)) * 0.15;
  out->est_ns = 400 + (ns > 60000 ? ns / in.threads : ns);
  out->confidence = 0.6f;
  out->flops = uint64_t(flops);
  AmxPlan p;
  shape_plan<kBf16>(p, in, *op);
  out->workspace_bytes = uint64_t(p.scratch_bytes) * in.threads;
  return TN_OK;
}

template <bool kBf16>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<AmxPlan>(self, op, out, diag, launch, [&](AmxPlan& p) -> tn_status {
    shape_plan<kBf16>(p, *p.instance, *op);
    p.workspace_bytes = uint64_t(p.scratch_bytes) * p.instance->threads;
    if (!p.post.build(*p.instance, *op))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "cpu.matmul.amx: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()");
    return TN_OK;
  });
}

constexpr tn_constraint kBf16Cons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(0, bit(TN_BF16)), dtype_in(1, bit(TN_BF16)), dtype_in(TN_ANY_OPERAND, kAllMask)};
constexpr tn_constraint kU8Cons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(0, bit(TN_U8)), dtype_in(1, bit(TN_I8)), dtype_in(TN_ANY_OPERAND, kAllMask)};

}  // namespace

void add_amx_rows(Rows& rows) {
  tn_kernel_info k = kernel_row("cpu.matmul.amx_bf16", TN_OPID_MATMUL, TN_KERNEL_DETERMINISTIC | TN_KERNEL_FTZ, kBf16Cons, std::size(kBf16Cons));
  k.supports = within<kBf16Cons, supports<true>>, k.prepare = prepare<true>, k.retire = retire_plan<AmxPlan>;
  rows.push_back(k);
  tn_kernel_info i = kernel_row("cpu.matmul.amx_u8s8", TN_OPID_MATMUL, TN_KERNEL_DETERMINISTIC, kU8Cons, std::size(kU8Cons));
  i.supports = within<kU8Cons, supports<false>>, i.prepare = prepare<false>, i.retire = retire_plan<AmxPlan>;
  rows.push_back(i);
}

}  // namespace tenon::cpu
