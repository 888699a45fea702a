// Softmax, log-softmax, layer norm and its gradient, cross entropy and its gradient: rows of f32, bf16 or f16 values.
//
// A row of up to 16 Ki values is held in L1/L2 between its passes, so that memory is read once and, for large results,
// written once past the caches.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "backends/cpu/constraints.h"
#include "backends/cpu/norm/rows.h"
#include "backends/cpu/pointwise/block_ops.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kLongestRow = 16384;
constexpr int64_t kStreamBytes = 8 << 20;

struct NormPlan : Plan {
  int64_t rows = 0, n = 0;
  uint32_t dtype = 0, target_dtype = 0;
  bool log = false, has_scale = false, has_bias = false;
  double epsilon = 0;
  int64_t ignore = -100, groups = 1;
  BlockFn widen = nullptr, narrow = nullptr;
  const RowCode* code = nullptr;
};

// Narrow rows go through f32 buffers; casts want whole granules, so the last few elements take a padded way.
void cast_row(BlockFn f, const char* from, int64_t from_size, char* to, int64_t to_size, int64_t n) {
  const int64_t whole = n / kGranule * kGranule;
  if (whole) f(to, from, nullptr, nullptr, nullptr, whole);
  if (whole == n) return;
  alignas(64) char a[kGranule * 4] = {}, b[kGranule * 4];
  std::memcpy(a, from + whole * from_size, size_t((n - whole) * from_size));
  f(b, a, nullptr, nullptr, nullptr, kGranule);
  std::memcpy(to + whole * to_size, b, size_t((n - whole) * to_size));
}

struct Views {
  const tn_launch* l;
  template <class T> T* at(uint32_t k) const { return static_cast<T*>(l->views[k].host); }
};

// Gives each row as f32 and takes the result back: in place for f32, through buffers for the narrow types.
class RowIo {
 public:
  explicit RowIo(const NormPlan& p) : p_(p), size_(element_size(p.dtype)) {}
  const float* read(const char* base, int64_t row, float* buffer) const {
    const char* from = base + row * p_.n * size_;
    if (!p_.widen) return reinterpret_cast<const float*>(from);
    cast_row(p_.widen, from, size_, reinterpret_cast<char*>(buffer), 4, p_.n);
    return buffer;
  }
  float* target(char* base, int64_t row, float* buffer) const { return p_.narrow ? buffer : reinterpret_cast<float*>(base + row * p_.n * size_); }
  void written(char* base, int64_t row, const float* buffer) const {
    if (p_.narrow) cast_row(p_.narrow, reinterpret_cast<const char*>(buffer), 4, base + row * p_.n * size_, size_, p_.n);
  }

 private:
  const NormPlan& p_;
  int64_t size_;
};

bool may_stream(const NormPlan& p, const void* in, const void* out) {
  return !p.narrow && in != out && p.rows * p.n * 4 >= kStreamBytes && p.n % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0;
}

tn_status launch_softmax(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<NormPlan>(base);
  const Views v{l};
  const RowIo io(p);
  const RowCode& c = *p.code;
  if (p.n == 0) return TN_OK;
  const bool stream = may_stream(p, v.at<char>(0), v.at<char>(1));
  parallel_for(*p.instance, p.rows, double(p.rows) * double(p.n) * 0.9, [&](int64_t b, int64_t e) {
    alignas(64) float in[kLongestRow], work[kLongestRow];
    for (int64_t r = b; r < e; ++r) {
      const float* x = io.read(v.at<char>(0), r, in);
      float* y = io.target(v.at<char>(1), r, work);
      const float top = c.max(x, p.n);
      if (p.log) {
        const double sum = c.exp_sum(x, top, nullptr, p.n);
        const double shift = double(top) + std::log(sum);
        // Two steps keep the result exact where top is large and the sum's logarithm small.
        if (std::isfinite(shift) && std::fabs(top) < 1) c.affine(x, 1, float(-shift), y, p.n, stream);
        else c.affine(x, 1, -top, y, p.n, false), c.affine(y, 1, float(-std::log(sum)), y, p.n, false);
      } else {
        float* exps = p.narrow || p.n > kLongestRow ? y : work;
        const double sum = c.exp_sum(x, top, exps, p.n);
        c.affine(exps, float(1 / sum), 0, y, p.n, stream);
      }
      io.written(v.at<char>(1), r, y);
    }
    if (stream) stream_fence();
  });
  return TN_OK;
}

tn_status launch_layer_norm(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<NormPlan>(base);
  const Views v{l};
  const RowIo io(p);
  const RowCode& c = *p.code;
  constexpr uint32_t first_out = 3;  // absent operands keep their views
  const bool stream = may_stream(p, v.at<char>(0), v.at<char>(first_out));
  auto* means = v.at<float>(first_out + 1);
  auto* rstds = v.at<float>(first_out + 2);
  parallel_for(*p.instance, p.rows, double(p.rows) * double(p.n) * 0.6, [&](int64_t b, int64_t e) {
    alignas(64) float in[kLongestRow], work[kLongestRow], scale_row[kLongestRow], bias_row[kLongestRow];
    const float* scale = p.has_scale ? io.read(v.at<char>(1), 0, scale_row) : nullptr;
    const float* bias = p.has_bias ? io.read(v.at<char>(2), 0, bias_row) : nullptr;
    for (int64_t r = b; r < e; ++r) {
      const float* x = io.read(v.at<char>(0), r, in);
      float* y = io.target(v.at<char>(first_out), r, work);
      const auto mean = float(c.sum(x, p.n) / double(p.n));
      const double variance = c.square_sum(x, mean, p.n) / double(p.n);
      const auto rstd = float(1 / std::sqrt(variance + p.epsilon));
      c.normalise(x, mean, rstd, scale, bias, y, p.n, stream);
      io.written(v.at<char>(first_out), r, y);
      means[r] = mean, rstds[r] = rstd;
    }
    if (stream) stream_fence();
  });
  return TN_OK;
}

// Rows are summed in groups whose number depends on the shape alone; the groups' sums meet in order.
tn_status launch_layer_norm_grad(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<NormPlan>(base);
  const Views v{l};
  const RowCode& c = *p.code;
  const auto* x = v.at<const float>(0);
  const float* scale = p.has_scale ? v.at<const float>(1) : nullptr;
  const auto* means = v.at<const float>(2);
  const auto* rstds = v.at<const float>(3);
  const auto* dy = v.at<const float>(4);
  auto* dx = v.at<float>(5);
  auto* sums = static_cast<double*>(l->views[p.n_views].host);  // [groups][2][n]
  std::memset(sums, 0, size_t(p.groups * 2 * p.n) * sizeof(double));
  parallel_for(*p.instance, p.groups, double(p.rows) * double(p.n), [&](int64_t b, int64_t e) {
    alignas(64) float g[kLongestRow];
    for (int64_t group = b; group < e; ++group) {
      double* dscale = sums + group * 2 * p.n;
      double* dbias = dscale + p.n;
      for (int64_t r = p.rows * group / p.groups; r < p.rows * (group + 1) / p.groups; ++r) {
        const float* xr = x + r * p.n;
        const float* dr = dy + r * p.n;
        const float mean = means[r], rstd = rstds[r];
        for (int64_t i = 0; i < p.n; ++i) g[i] = scale ? dr[i] * scale[i] : dr[i];
        const double g_sum = c.sum(g, p.n);
        const double gx = c.dot(g, xr, p.n) - double(mean) * g_sum;
        for (int64_t i = 0; i < p.n; ++i) {
          dscale[i] += double(dr[i] * ((xr[i] - mean) * rstd));
          dbias[i] += double(dr[i]);
        }
        c.normalise_grad(xr, g, mean, rstd, float(g_sum / double(p.n)), float(gx * rstd / double(p.n)), dx + r * p.n, p.n);
      }
    }
  });
  for (uint32_t which = 0; which < 2; ++which) {
    auto* to = v.at<float>(6 + which);
    for (int64_t i = 0; i < p.n; ++i) {
      double t = 0;
      for (int64_t group = 0; group < p.groups; ++group) t += sums[(group * 2 + which) * p.n + i];
      to[i] = float(t);
    }
  }
  return TN_OK;
}

// The class of row r; -1 = ignored, -2 = outside.
int64_t class_of(const NormPlan& p, const void* target, int64_t r) {
  const int64_t t = p.target_dtype == TN_I32 ? static_cast<const int32_t*>(target)[r] : static_cast<const int64_t*>(target)[r];
  if (t == p.ignore) return -1;
  return t < 0 || t >= p.n ? -2 : t;
}
tn_status check_targets(const NormPlan& p, const void* target, tn_diag* diag) {
  for (int64_t r = 0; r < p.rows; ++r)
    if (class_of(p, target, r) == -2)
      return fail(diag, TN_E_FAILED, error_id(6, 62), "cross_entropy: a target is outside\nwhy: row %lld, there are %lld classes\ntry: use targets in 0..classes-1, or ignore_index",
                  static_cast<long long>(r), static_cast<long long>(p.n));
  return TN_OK;
}
tn_status launch_cross_entropy(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<NormPlan>(base);
  const Views v{l};
  if (tn_status s = check_targets(p, v.at<void>(1), l->diag); s != TN_OK) return s;
  parallel_for(*p.instance, p.rows, double(p.rows) * double(p.n) * 0.6, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const float* x = v.at<float>(0) + r * p.n;
      const int64_t t = class_of(p, v.at<void>(1), r);
      const float top = t < 0 ? 0 : p.code->max(x, p.n);
      v.at<float>(2)[r] = t < 0 ? 0 : float(std::log(p.code->exp_sum(x, top, nullptr, p.n)) - (double(x[t]) - double(top)));
    }
  });
  return TN_OK;
}
tn_status launch_cross_entropy_grad(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<NormPlan>(base);
  const Views v{l};
  if (tn_status s = check_targets(p, v.at<void>(1), l->diag); s != TN_OK) return s;
  parallel_for(*p.instance, p.rows, double(p.rows) * double(p.n) * 0.9, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const float* x = v.at<float>(0) + r * p.n;
      float* dx = v.at<float>(3) + r * p.n;
      const int64_t t = class_of(p, v.at<void>(1), r);
      if (t < 0) {
        std::memset(dx, 0, size_t(p.n) * 4);
        continue;
      }
      const float g = v.at<float>(2)[r];
      const double sum = p.code->exp_sum(x, p.code->max(x, p.n), dx, p.n);
      const float own = dx[t];
      p.code->affine(dx, float(double(g) / sum), 0, dx, p.n, false);
      dx[t] = float(double(g) * (double(own) / sum - 1));
    }
  });
  return TN_OK;
}

int64_t last_axes(const tn_op& op, const tn_type& t, int64_t* rows) {
  int64_t axis = attr_i64(op, TN_KEY_AXIS, -1), n = 1;
  if (axis < 0) axis += t.rank;
  *rows = 1;
  for (int64_t i = 0; i < t.rank; ++i) (i < axis ? *rows : n) *= t.dim[i];
  return n;
}
tn_status check_rows(const tn_op& op, bool f32_only, tn_support* out, tn_diag* diag) {
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k)
    if (op.type[k].dtype != 0 && !row_major(op.type[k]))
      return decline(out, diag, 1, "cpu.norm: operand %u is not dense\nwhy: rows are walked in order\ntry: copy it first", k);
  if (f32_only && op.type[0].dtype != TN_F32) return decline(out, diag, 2, "cpu.norm: element type %u\nwhy: this kernel is for f32\ntry: cast to f32", op.type[0].dtype);
  return TN_OK;
}

enum Kind { kSoftmax, kLogSoftmax, kLayerNorm, kLayerNormGrad, kCrossEntropy, kCrossEntropyGrad };
constexpr tn_status (*kLaunch[])(const tn_kernel_plan*, const tn_launch*) = {launch_softmax, launch_softmax, launch_layer_norm, launch_layer_norm_grad, launch_cross_entropy, launch_cross_entropy_grad};

template <Kind kKind>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  if (tn_status s = check_rows(*op, kKind >= kLayerNormGrad, out, diag); s != TN_OK) return s;
  int64_t rows = 1, n = last_axes(*op, x, &rows);
  if (x.rank == 0) return decline(out, diag, 3, "cpu.norm: a 0-d operand\nwhy: there is no row\ntry: another kernel");
  if (kKind == kSoftmax || kKind == kLogSoftmax) {
    const int64_t axis = attr_i64(*op, TN_KEY_AXIS, -1);
    if (axis != -1 && axis != x.rank - 1) return decline(out, diag, 4, "cpu.softmax: axis %lld\nwhy: rows along the last axis are walked\ntry: the last axis", static_cast<long long>(axis));
  }
  if (kKind >= kCrossEntropy && (x.rank != 2 || (op->type[1].dtype != TN_I32 && op->type[1].dtype != TN_I64)))
    return decline(out, diag, 5, "cpu.cross_entropy: operands\nwhy: logits of rank %u\ntry: logits [n, classes] and integer targets", x.rank);
  const bool buffered = x.dtype != TN_F32 || kKind == kLayerNormGrad || kKind == kSoftmax;
  if (buffered && n > kLongestRow && !(kKind == kSoftmax && x.dtype == TN_F32))
    return decline(out, diag, 6, "cpu.norm: a row of %lld values\nwhy: at most %lld are held at once\ntry: another kernel", static_cast<long long>(n), static_cast<long long>(kLongestRow));
  if (n == 0) return decline(out, diag, 7, "cpu.norm: an empty row\nwhy: nothing to normalise\ntry: another kernel");
  if (kKind == kLayerNorm || kKind == kLayerNormGrad)
    for (uint32_t k = 1; k < 3; ++k) {
      const bool row_operand = k == 1 || kKind == kLayerNorm;
      if (row_operand && op->type[k].dtype != 0 && (op->type[k].dtype != x.dtype || element_count(op->type[k]) != n))
        return decline(out, diag, 8, "cpu.layer_norm: scale or bias\nwhy: operand %u has another type or size than a row\ntry: x's type and the normalised dims", k);
    }
  const double bytes = double(rows * n) * double(element_size(x.dtype)) * 2;
  const double ns = std::max(double(rows * n) * (kKind == kLayerNorm ? 0.15 : 0.4), bytes > 4e6 ? bytes / 12 : 0);
  out->est_ns = 30 + double(rows) * 6 + (ns > 60000 ? ns / self_of(self).threads : ns);
  out->confidence = 0.6f;
  if (kKind == kLayerNormGrad) out->workspace_bytes = uint64_t(16 * 2 * n * 8);
  return TN_OK;
}

template <Kind kKind>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  return make_plan<NormPlan>(self, op, out, diag, kLaunch[kKind], [&](NormPlan& p) -> tn_status {
    const tn_type& x = op->type[0];
    p.n_views = uint32_t{op->n_in} + op->n_out;
    p.dtype = x.dtype;
    p.n = last_axes(*op, x, &p.rows);
    p.code = &row_code(p.instance->isa);
    p.log = kKind == kLogSoftmax;
    p.has_scale = (kKind == kLayerNorm || kKind == kLayerNormGrad) && op->type[1].dtype != 0;
    p.has_bias = kKind == kLayerNorm && op->type[2].dtype != 0;
    p.epsilon = attr_f64(*op, TN_KEY_EPSILON, 1e-5);
    p.ignore = attr_i64(*op, TN_KEY_IGNORE_INDEX, -100);
    if (kKind >= kCrossEntropy) p.target_dtype = op->type[1].dtype;
    if (x.dtype != TN_F32) {
      p.widen = find_cast(p.instance->isa, x.dtype, TN_F32);
      p.narrow = find_cast(p.instance->isa, TN_F32, x.dtype);
    }
    if (kKind == kLayerNormGrad) {
      p.groups = std::clamp<int64_t>(p.rows / 64, 1, 16);
      p.workspace_bytes = uint64_t(p.groups * 2 * p.n) * sizeof(double);
    }
    return TN_OK;
  });
}

constexpr uint64_t kTypes = bit(TN_F32) | bit(TN_BF16) | bit(TN_F16);
constexpr tn_constraint kCons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(0, kTypes)};

template <Kind kKind>
void add(Rows& rows, const char* name, uint64_t op_id, uint32_t flags) {
  tn_kernel_info k = kernel_row(name, op_id, TN_KERNEL_DETERMINISTIC | flags, kCons, std::size(kCons));
  k.supports = within<kCons, supports<kKind>>;
  k.prepare = prepare<kKind>;
  k.retire = retire_plan<NormPlan>;
  rows.push_back(k);
}

}  // namespace

void add_norm_rows(Rows& rows) {
  add<kSoftmax>(rows, "cpu.softmax", TN_OPID_SOFTMAX, 0);
  add<kLogSoftmax>(rows, "cpu.log_softmax", TN_OPID_LOG_SOFTMAX, 0);
  add<kLayerNorm>(rows, "cpu.layer_norm", TN_OPID_LAYER_NORM, 0);
  add<kLayerNormGrad>(rows, "cpu.layer_norm_grad", TN_OPID_LAYER_NORM_GRAD, 0);
  add<kCrossEntropy>(rows, "cpu.cross_entropy", TN_OPID_CROSS_ENTROPY, 0);
  add<kCrossEntropyGrad>(rows, "cpu.cross_entropy_grad", TN_OPID_CROSS_ENTROPY_GRAD, 0);
}

}  // namespace tenon::cpu
