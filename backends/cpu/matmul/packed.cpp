// cpu.matmul.f32_packed: products with a b that was stored once in the panels of the register tile.
#include "backends/cpu/constraints.h"
#include "backends/cpu/matmul/packed.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/matmul/tile.h"

namespace tenon::cpu {

MatmulShape packed_shape(const tn_op& op) {
  MatmulShape s = matmul_shape(op);
  while (s.rank > 0 && s.batch > 0) {  // no batch at all: nothing to fold, nothing to do
    const int last = s.rank - 1;
    const bool one_row = s.m == 1;
    const bool folds = s.a_step[last] > 0 && (one_row || (s.a_step[last] == s.m * s.a_row && s.c_step[last] == s.m * s.c_row));
    if (!folds && s.dim[last] != 1) return s;
    if (s.dim[last] != 1) {
      if (one_row) s.a_row = s.a_step[last], s.c_row = s.c_step[last];
      s.m *= s.dim[last], s.batch /= s.dim[last];
    }
    --s.rank;
  }
  return s;
}

tn_status check_packed(tn_instance* self, const tn_op& op, const char* name, uint32_t accumulator, bool narrow, tn_support* out, tn_diag* diag) {
  const tn_type &a = op.type[0], &b = op.type[1], &c = op.type[op.n_in];
  if (a.rank < 2 || b.rank != 2 || c.rank < 2) return decline(out, diag, 1, "%s: rank\nwhy: operands have ranks %u and %u\ntry: a matrix as b, at least one as a", name, a.rank, b.rank);
  if (c.dtype != accumulator && !(narrow && c.dtype == TN_BF16 && !attr_program(op, TN_KEY_POST)))
    return decline(out, diag, 2, "%s: output type %u\nwhy: sums are of type %u\ntry: the accumulator's type", name, c.dtype, accumulator);
  if (!row_major(c)) return decline(out, diag, 3, "%s: the output is not row-major\nwhy: its last stride is %lld\ntry: a dense output", name, static_cast<long long>(c.stride[c.rank - 1]));
  if (tn_status s = check_packable(op, name, diag); s != TN_OK) return out->reason = 4, s;
  return op.n_in == 2 && !attr_program(op, TN_KEY_POST) ? TN_OK : check_post(self, op, accumulator, out, diag);
}

tn_status check_packable(const tn_op& op, const char* name, tn_diag* diag) {
  const tn_type& b = op.type[1];
  if (b.rank != 2) return decline(nullptr, diag, 1, "%s: rank\nwhy: b has rank %u\ntry: a matrix", name, b.rank);
  if (b.dim[0] > 0 && b.dim[1] > 0) return TN_OK;
  return decline(nullptr, diag, 4, "%s: nothing to store\nwhy: b is %lld x %lld\ntry: use it as it is", name, static_cast<long long>(b.dim[0]), static_cast<long long>(b.dim[1]));
}

Bands::Bands(const MatmulShape& s, uint32_t threads, double ns, int64_t row_grain, int64_t column_grain) {
  parts = ns > kWorthThreads && s.batch < threads ? threads : 1;
  by_columns = s.n >= s.m;
  side = by_columns ? s.n : s.m;
  per_part = round_up((side + parts - 1) / parts, by_columns ? column_grain : row_grain);
}

void add_packed_row(Rows& rows, const PackedRow& r, const tn_kernel_packed* ext) {
  tn_kernel_info k = kernel_row(r.name, TN_OPID_MATMUL, r.flags, r.cons, r.n_cons);
  k.supports = r.supports, k.prepare = r.prepare, k.retire = r.retire;
  k.next = &ext->ext;
  rows.push_back(k);
}

namespace {

constexpr char kName[] = "cpu.matmul.f32_packed";
constexpr int64_t kColumns = 64;  // of a panel

struct PackedPlan : Plan {
  MatmulShape shape;
  Epilogue post;
  Bands bands;
  const MatmulCode* code = nullptr;
  double ns = 0;
};

double one_thread_ns(const MatmulShape& s) { return 2.0 * double(s.batch) * double(s.m) * double(s.n) * double(s.k) / (s.m < 4 ? 20 : 130); }

void run_band(const PackedPlan& p, const tn_launch* l, int64_t i) {
  const MatmulShape& s = p.shape;
  int64_t a = 0, b = 0, c = 0;
  s.offsets(i / p.bands.parts, &a, &b, &c);
  const int64_t first = p.bands.first(i % p.bands.parts), count = p.bands.count(i % p.bands.parts);
  if (count <= 0) return;
  Product q{static_cast<const float*>(l->views[0].host) + a, s.a_row, s.a_col, nullptr, 0, 0, static_cast<float*>(l->views[p.n_views - 1].host) + c, s.c_row, s.m, s.n, s.k};
  q.packed = static_cast<const float*>(l->views[1].host);
  q.packed_columns = round_up(s.n, kColumns);
  if (p.bands.by_columns) q.first_column = first, q.c += first, q.n = count;
  else q.a += first * q.a_row, q.c += first * q.c_row, q.m = count;
  p.code->large(q, nullptr);
}

tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PackedPlan>(base);
  const Instance& in = *p.instance;
  struct Ctx { const PackedPlan& p; const tn_launch* l; } ctx{p, l};
  const auto run = [](void* arg, int64_t b, int64_t e, uint32_t) {
    for (int64_t i = b; i < e; ++i) run_band(static_cast<Ctx*>(arg)->p, static_cast<Ctx*>(arg)->l, i);
  };
  const int64_t tasks = p.shape.batch * p.bands.parts;
  if (tasks > 1 && in.threads > 1 && p.ns > kWorthThreads) in.host->parallel(in.host->ctx, tasks, 1, run, &ctx);
  else run(&ctx, 0, tasks, 0);
  if (p.post.present) p.post.run(in, l);
  return TN_OK;
}

tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (tn_status s = check_packed(self, *op, kName, TN_F32, false, out, diag); s != TN_OK) return s;
  const MatmulShape s = packed_shape(*op);
  const double ns = self_of(self).isa == Isa::Baseline ? one_thread_ns(s) * 20 : one_thread_ns(s);
  out->est_ns = 200 + (ns > kWorthThreads ? ns / self_of(self).threads : ns);
  out->confidence = 0.6f;
  out->flops = uint64_t(2.0 * double(s.batch) * double(s.m) * double(s.n) * double(s.k));
  return TN_OK;
}

tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<PackedPlan>(self, op, out, diag, launch, [&](PackedPlan& p) -> tn_status {
    p.shape = packed_shape(*op);
    p.code = &matmul_code(p.instance->isa);
    p.ns = one_thread_ns(p.shape);
    p.bands = Bands(p.shape, p.instance->threads, p.ns, 6, kColumns);
    if (!p.post.build(*p.instance, *op))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "%s: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()", kName);
    return TN_OK;
  });
}

tn_status bytes(tn_instance*, const tn_device_ref*, const tn_op* op, uint64_t* out, tn_diag* diag) {
  if (tn_status s = check_packable(*op, kName, diag); s != TN_OK) return s;
  *out = uint64_t(op->type[1].dim[0] * round_up(op->type[1].dim[1], kColumns)) * 4;
  return TN_OK;
}

tn_status pack(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue*, tn_diag*) {
  const tn_type& b = op->type[1];
  matmul_code(self_of(self).isa).pack(static_cast<const float*>(src->host), b.stride[0], b.stride[1], b.dim[0], b.dim[1], static_cast<float*>(dst->host));
  return TN_OK;
}

constexpr tn_constraint kCons[] = {kOnCpu, dtype_in(0, bit(TN_F32)), dtype_in(1, bit(TN_F32)), dtype_in(TN_ANY_OPERAND, kAllMask)};
constexpr PackedRow kRow{kName, "cpu.f32.k256n64", TN_KERNEL_DETERMINISTIC, kCons, std::size(kCons), within<kCons, supports>, prepare, retire_plan<PackedPlan>, bytes, pack};
constexpr tn_kernel_packed kExt = packed_ext(kRow);
static_assert(kDepth == 256 && kColumns == 64, "the layout's name says so");

}  // namespace

void add_packed_rows(Rows& rows) { add_packed_row(rows, kRow, &kExt); }

}  // namespace tenon::cpu
