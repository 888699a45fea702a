// cpu.matmul.amx_bf16_packed and cpu.matmul.amx_u8s8_packed: products on AMX with a b that was stored once.
#include <algorithm>
#include <iterator>

#include "backends/cpu/constraints.h"
#include "backends/cpu/amx/amx.h"
#include "backends/cpu/matmul/packed.h"

namespace tenon::cpu {

int64_t amx_packed_bytes(int64_t k, int64_t n, bool bf16) { return round_up(k * (bf16 ? 2 : 1), 64) * round_up(n, 32); }

void amx_pack(const char* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, bool bf16, int64_t first, int64_t last, char* out) {
  const int64_t size = bf16 ? 2 : 1, group = 4 / size, columns = round_up(n, 32), depth = kAmxDepthBytes / size;
  for (int64_t pc = 0; pc < k; pc += depth) {
    const int64_t steps = (std::min(depth, k - pc) * size + 63) / 64;
    for (int64_t panel = first; panel < last; ++panel) {
      char* to = out + pc * size * columns + panel * steps * 2048;
      for (int64_t lane = 0; lane < steps * 512; ++lane, to += 4) {
        const int64_t column = panel * 32 + lane / 256 % 2 * 16 + lane % 16, row = pc + (lane / 512 * 16 + lane / 16 % 16) * group;
        for (int64_t i = 0; i < group; ++i) {
          if (column < n && row + i < k) std::memcpy(to + i * size, b + (row + i) * b_row + column * b_col, size_t(size));
          else std::memset(to + i * size, 0, size_t(size));
        }
      }
    }
  }
}

namespace {

template <bool kBf16>
constexpr const char* kName = kBf16 ? "cpu.matmul.amx_bf16_packed" : "cpu.matmul.amx_u8s8_packed";
template <bool kBf16>
constexpr int64_t kSize = kBf16 ? 2 : 1;

struct PackedPlan : Plan {
  MatmulShape shape;
  Epilogue post;
  Bands bands;
  bool narrow_out = false;
  double ns = 0;
  int64_t scratch_bytes = 0;
};

template <bool kBf16>
double one_thread_ns(const MatmulShape& s) {
  // Tiles work on 32 x 32 pieces, whatever lies in them. Panels of b are fetched before work on them starts. Measured on
  // Emerald Rapids; with few rows fetching dominates, which oneDNN's blocks do better.
  const double pieces = double(round_up(s.m, 32)) * double(round_up(s.n, 32)) * double(round_up(s.k * kSize<kBf16>, 64));
  const double work = 2 * pieces / (kBf16 ? 3000 : 2700), fetch = double(s.k * s.n * kSize<kBf16>) / 28;
  return double(s.batch) * (work + fetch + 2000);
}

template <bool kBf16>
AmxProduct band(const PackedPlan& p, const tn_launch* l, int64_t i) {
  const MatmulShape& s = p.shape;
  const int64_t out = p.narrow_out ? 2 : 4, first = p.bands.first(i % p.bands.parts), count = p.bands.count(i % p.bands.parts);
  int64_t a = 0, b = 0, c = 0;
  s.offsets(i / p.bands.parts, &a, &b, &c);
  AmxProduct q{nullptr, s.a_row * kSize<kBf16>, nullptr, 0, nullptr, s.c_row * out, s.m, s.n, s.k, kBf16, p.narrow_out};
  q.packed_columns = round_up(s.n, 32);
  if (p.bands.by_columns) q.first_column = first, q.n = count, c += first;
  else q.m = count, a += first * s.a_row, c += first * s.c_row;
  if (!l) return q;
  q.a = static_cast<const char*>(l->views[0].host) + a * kSize<kBf16>;
  q.packed = static_cast<const char*>(l->views[1].host);
  q.c = static_cast<char*>(l->views[p.n_views - 1].host) + c * out;
  return q;
}

template <bool kBf16>
tn_status launch(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PackedPlan>(base);
  const Instance& in = *p.instance;
  struct Ctx { const PackedPlan& p; const tn_launch* l; char* scratch; } ctx{p, l, static_cast<char*>(l->views[p.n_views].host)};
  const auto run = [](void* arg, int64_t b, int64_t e, uint32_t worker) {
    const Ctx& c = *static_cast<Ctx*>(arg);
    for (int64_t i = b; i < e; ++i)
      if (c.p.bands.count(i % c.p.bands.parts) > 0) amx_product(band<kBf16>(c.p, c.l, i), c.scratch + worker * c.p.scratch_bytes);
  };
  const int64_t tasks = p.shape.batch * p.bands.parts;
  if (tasks > 1 && in.threads > 1 && p.ns > kWorthThreads) in.host->parallel(in.host->ctx, tasks, 1, run, &ctx);
  else run(&ctx, 0, tasks, 0);
  if (p.post.present) p.post.run(in, l);
  return TN_OK;
}

template <bool kBf16>
void shape_plan(PackedPlan& p, const Instance& in, const tn_op& op) {
  p.shape = packed_shape(op);
  p.narrow_out = op.type[op.n_in].dtype == TN_BF16;
  p.ns = one_thread_ns<kBf16>(p.shape);
  p.bands = Bands(p.shape, in.threads, p.ns, 32, 64);
  static constexpr char kStored[1] = {};
  AmxProduct first = band<kBf16>(p, nullptr, 0);
  first.packed = kStored;  // room for a packed b is not asked for
  p.scratch_bytes = amx_scratch_bytes(first);
}

template <bool kBf16>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const Instance& in = self_of(self);
  if (!in.amx) return decline(out, diag, 1, "%s: no AMX\nwhy: the processor or the kernel does not offer tiles to this process\ntry: another kernel", kName<kBf16>);
  if (kBf16 && (op->math_flags & TN_MATH_SUBNORMAL)) return decline(out, diag, 5, "%s: subnormals were asked for\nwhy: bf16 tiles take subnormal inputs and sums as zero\ntry: drop TN_MATH_SUBNORMAL", kName<kBf16>);
  if (tn_status s = check_packed(self, *op, kName<kBf16>, kBf16 ? uint32_t{TN_F32} : uint32_t{TN_I32}, kBf16, out, diag); s != TN_OK) return s;
  PackedPlan p;
  shape_plan<kBf16>(p, in, *op);
  if (p.shape.k > 1 && p.shape.a_col != 1) return decline(out, diag, 6, "%s: rows of a are not dense\nwhy: the last stride is %lld\ntry: copy the operand", kName<kBf16>, static_cast<long long>(p.shape.a_col));
  out->est_ns = 400 + (p.ns > kWorthThreads && in.threads > 1 ? p.ns / in.threads + 6000 : p.ns);
  out->confidence = 0.6f;
  out->flops = uint64_t(2.0 * double(p.shape.batch) * double(p.shape.m) * double(p.shape.n) * double(p.shape.k));
  out->workspace_bytes = uint64_t(p.scratch_bytes) * in.threads;
  return TN_OK;
}

template <bool kBf16>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<PackedPlan>(self, op, out, diag, launch<kBf16>, [&](PackedPlan& p) -> tn_status {
    shape_plan<kBf16>(p, *p.instance, *op);
    p.workspace_bytes = uint64_t(p.scratch_bytes) * p.instance->threads;
    if (!p.post.build(*p.instance, *op))
      return fail(diag, TN_E_UNSUPPORTED, error_id(6, 60), "%s: no code for the program\nwhy: supports() would have refused it\ntry: ask supports() before prepare()", kName<kBf16>);
    return TN_OK;
  });
}

template <bool kBf16>
tn_status bytes(tn_instance*, const tn_device_ref*, const tn_op* op, uint64_t* out, tn_diag* diag) {
  if (tn_status s = check_packable(*op, kName<kBf16>, diag); s != TN_OK) return s;
  *out = uint64_t(amx_packed_bytes(op->type[1].dim[0], op->type[1].dim[1], kBf16));
  return TN_OK;
}

template <bool kBf16>
tn_status pack(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue*, tn_diag*) {
  const tn_type& b = op->type[1];
  const int64_t size = kSize<kBf16>;
  parallel_for(self_of(self), (b.dim[1] + 31) / 32, double(b.dim[0] * b.dim[1]) * 2, [&](int64_t first, int64_t last) {
    amx_pack(static_cast<const char*>(src->host), b.stride[0] * size, b.stride[1] * size, b.dim[0], b.dim[1], kBf16, first, last, static_cast<char*>(dst->host));
  });
  return TN_OK;
}

constexpr tn_constraint kBf16Cons[] = {kOnCpu, dtype_in(0, bit(TN_BF16)), dtype_in(1, bit(TN_BF16)), dtype_in(TN_ANY_OPERAND, kAllMask)};
constexpr tn_constraint kU8Cons[] = {kOnCpu, dtype_in(0, bit(TN_U8)), dtype_in(1, bit(TN_I8)), dtype_in(TN_ANY_OPERAND, kAllMask)};
constexpr PackedRow kBf16Row{kName<true>, "cpu.amx.bf16.k512n32", TN_KERNEL_DETERMINISTIC | TN_KERNEL_FTZ, kBf16Cons, std::size(kBf16Cons),
                             within<kBf16Cons, supports<true>>, prepare<true>, retire_plan<PackedPlan>, bytes<true>, pack<true>};
constexpr PackedRow kU8Row{kName<false>, "cpu.amx.i8.k1024n32", TN_KERNEL_DETERMINISTIC, kU8Cons, std::size(kU8Cons),
                           within<kU8Cons, supports<false>>, prepare<false>, retire_plan<PackedPlan>, bytes<false>, pack<false>};
constexpr tn_kernel_packed kBf16Ext = packed_ext(kBf16Row), kU8Ext = packed_ext(kU8Row);
static_assert(kAmxDepthBytes == 1024, "the layouts' names say so");

}  // namespace

void add_amx_packed_rows(Rows& rows) {
  add_packed_row(rows, kBf16Row, &kBf16Ext);
  add_packed_row(rows, kU8Row, &kU8Ext);
}

}  // namespace tenon::cpu
