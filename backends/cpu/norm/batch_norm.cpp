// Batch norm, its gradient and its inference form: f32, row-major and channels-last.
//
// Channels-last is cut into row blocks that stay in L1 while their moments are taken; blocks are merged in f64, so the
// statistics are as good as two passes in f64 and memory is read once for them. Row-major gives each task whole
// channels. Cuts depend on the shape alone: results do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "backends/cpu/constraints.h"
#include "backends/cpu/norm/batch_rows.h"
#include "backends/cpu/norm/rows.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kParts = 16;             // tasks of a channels-last problem
constexpr int64_t kBlockBytes = 16 << 10;  // of x in L1
constexpr double kForwardNs = 0.65, kGradNs = 1.0, kInferNs = 0.33;  // an element, one thread, data beyond L2

struct BatchPlan : Plan {
  int64_t images = 0, channels = 0, plane = 0;  // plane: elements of one channel of one image
  bool last = false, has_scale = false, has_bias = false;
  double epsilon = 0;
  const BatchCode* code = nullptr;
  const RowCode* rows = nullptr;
  int64_t count() const { return images * plane; }
  int64_t block() const { return std::clamp<int64_t>(kBlockBytes / 4 / std::max<int64_t>(channels, 1), 4, 256); }
  int64_t parts() const { return std::clamp<int64_t>(count() / block(), 1, kParts); }
};
struct Part { int64_t begin, end; };
Part part_of(const BatchPlan& p, int64_t k) { return {p.count() * k / p.parts(), p.count() * (k + 1) / p.parts()}; }

// The workspace: for each part two f64 rows and three f32 rows, then four f32 rows that all parts share.
struct Work {
  double* wide;
  float* narrow;
  int64_t channels, parts;
  Work(const BatchPlan& p, void* base) : wide(static_cast<double*>(base)), channels(p.channels), parts(p.parts()) {
    narrow = reinterpret_cast<float*>(wide + parts * 2 * channels);
  }
  double* sum(int64_t part) const { return wide + part * 2 * channels; }
  double* second(int64_t part) const { return sum(part) + channels; }
  float* scratch(int64_t part, int64_t k) const { return narrow + (part * 3 + k) * channels; }
  float* shared(int64_t k) const { return narrow + (parts * 3 + k) * channels; }
  static uint64_t bytes(const BatchPlan& p) { return uint64_t(p.channels) * uint64_t(p.parts() * 28 + 16); }
};
template <class F>
void for_parts(const BatchPlan& p, double ns_each, F&& f) {
  parallel_for(*p.instance, p.parts(), ns_each * double(p.count()) * double(p.channels), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) f(k, part_of(p, k));
  });
}
template <class F>
void for_blocks(const BatchPlan& p, Part part, F&& f) {
  for (int64_t r = part.begin; r < part.end; r += p.block()) f(r, std::min(p.block(), part.end - r));
}
template <class F>
void for_channel_tasks(const BatchPlan& p, double ns_each, F&& f) {
  parallel_for(*p.instance, p.channels, ns_each * double(p.count()) * double(p.channels), [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) f(c);
  });
}
const float* input(const tn_launch* l, uint32_t k) { return static_cast<const float*>(l->views[k].host); }
float* target(const tn_launch* l, uint32_t k) { return static_cast<float*>(l->views[k].host); }
const float* plane_of(const BatchPlan& p, const float* x, int64_t n, int64_t c) { return x + (n * p.channels + c) * p.plane; }

// Moments of two sets joined: sums, and squared distances from the mean.
struct Moments { double n = 0, sum = 0, square = 0; };
void join(Moments& a, const Moments& b) {
  if (b.n == 0) return;
  if (a.n > 0) {
    const double apart = b.sum / b.n - a.sum / a.n;
    a.square += apart * apart * a.n * b.n / (a.n + b.n);
  }
  a.n += b.n, a.sum += b.sum, a.square += b.square;
}
struct Affine { float mean, factor, add; };
Affine affine_of(const BatchPlan& p, const tn_launch* l, int64_t c, double mean, double variance) {
  const double rstd = 1 / std::sqrt(variance + p.epsilon);
  const double factor = p.has_scale ? rstd * double(input(l, 1)[c]) : rstd;
  const double lost = std::isfinite(mean) ? double(float(mean)) - mean : 0;  // by rounding the mean
  return {float(mean), float(factor), float((p.has_bias ? double(input(l, 2)[c]) : 0.0) + lost * factor)};
}

// ---- forward -----------------------------------------------------------------------------------------------------------
void part_moments(const BatchPlan& p, const Work& w, const float* x, int64_t k, Part part) {
  std::fill_n(w.sum(k), 2 * p.channels, 0.0);
  double n = 0;
  for_blocks(p, part, [&](int64_t r, int64_t rows) {
    float *pivot = w.scratch(k, 0), *drift = w.scratch(k, 1), *square = w.scratch(k, 2);
    p.code->rows_moments(x + r * p.channels, rows, p.channels, pivot, drift, square);
    // Moments joined as in join(), with the quotients taken out of the loop.
    const double m = double(rows), by_m = 1 / m, by_n = n > 0 ? 1 / n : 0, weight = n * m / (n + m);
    double *sum = w.sum(k), *second = w.second(k);
    for (int64_t c = 0; c < p.channels; ++c) {
      // Distances from an infinite pivot are NaN: they spoil the squares, as they should, but not the sum.
      const double d = std::isinf(pivot[c]) ? 0 : drift[c], here = double(pivot[c]) * m + d, apart = here * by_m - sum[c] * by_n;
      second[c] += double(square[c]) - d * d * by_m + apart * apart * weight;
      sum[c] += here;
    }
    n += double(rows);
  });
}
void affine_rows(const BatchPlan& p, const Work& w, const float* x, float* y, double ns) {
  for_parts(p, ns, [&](int64_t, Part part) {
    for_blocks(p, part, [&](int64_t r, int64_t rows) {
      p.code->rows_affine(x + r * p.channels, rows, p.channels, w.shared(0), w.shared(1), w.shared(2), y + r * p.channels);
    });
  });
}
void set_affine(const Work& w, int64_t c, Affine a) { w.shared(0)[c] = a.mean, w.shared(1)[c] = a.factor, w.shared(2)[c] = a.add; }

tn_status launch_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<BatchPlan>(base);
  const Work w(p, l->views[6].host);
  for_parts(p, kForwardNs / 2, [&](int64_t k, Part part) { part_moments(p, w, input(l, 0), k, part); });
  for (int64_t c = 0; c < p.channels; ++c) {
    Moments all;
    for (int64_t k = 0; k < w.parts; ++k) join(all, {double(part_of(p, k).end - part_of(p, k).begin), w.sum(k)[c], w.second(k)[c]});
    const double mean = all.sum / all.n, variance = all.square / all.n;
    target(l, 4)[c] = float(mean), target(l, 5)[c] = float(variance);
    set_affine(w, c, affine_of(p, l, c, mean, variance));
  }
  affine_rows(p, w, input(l, 0), target(l, 3), kForwardNs / 2);
  return TN_OK;
}
tn_status launch_first(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<BatchPlan>(base);
  for_channel_tasks(p, kForwardNs, [&](int64_t c) {
    double sum = 0, square = 0;
    for (int64_t n = 0; n < p.images; ++n) sum += p.rows->sum(plane_of(p, input(l, 0), n, c), p.plane);
    const double all = double(p.count()), mean = sum / all, off = double(float(mean)) - mean;
    for (int64_t n = 0; n < p.images; ++n) square += p.rows->square_sum(plane_of(p, input(l, 0), n, c), float(mean), p.plane);
    const double variance = square / all - off * off;
    target(l, 4)[c] = float(mean), target(l, 5)[c] = float(variance);
    const Affine a = affine_of(p, l, c, mean, variance);
    for (int64_t n = 0; n < p.images; ++n) {
      const int64_t at = (n * p.channels + c) * p.plane;
      p.code->plane_affine(input(l, 0) + at, p.plane, a.mean, a.factor, a.add, target(l, 3) + at);
    }
  });
  return TN_OK;
}

// ---- inference ---------------------------------------------------------------------------------------------------------
tn_status launch_infer(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<BatchPlan>(base);
  const Work w(p, l->views[6].host);
  for (int64_t c = 0; c < p.channels; ++c) set_affine(w, c, affine_of(p, l, c, input(l, 3)[c], input(l, 4)[c]));
  if (p.last) {
    affine_rows(p, w, input(l, 0), target(l, 5), kInferNs);
    return TN_OK;
  }
  parallel_for(*p.instance, p.images * p.channels, kInferNs * double(p.count() * p.channels), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t c = i % p.channels;
      p.code->plane_affine(input(l, 0) + i * p.plane, p.plane, w.shared(0)[c], w.shared(1)[c], w.shared(2)[c], target(l, 5) + i * p.plane);
    }
  });
  return TN_OK;
}

// ---- gradient: views x, scale, mean, variance, dy, dx, dscale, dbias -----------------------------------------------------
struct Slopes { float factor, dy_mean, slope; };
// From sum dy and sum dy * (x - mean); writes dscale and dbias.
Slopes slopes_of(const BatchPlan& p, const tn_launch* l, int64_t c, double sum, double dot) {
  const double rstd = 1 / std::sqrt(double(input(l, 3)[c]) + p.epsilon), n = double(p.count());
  target(l, 6)[c] = float(dot * rstd), target(l, 7)[c] = float(sum);
  return {float(p.has_scale ? rstd * double(input(l, 1)[c]) : rstd), float(sum / n), float(dot / n * rstd * rstd)};
}
tn_status launch_grad_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<BatchPlan>(base);
  const Work w(p, l->views[8].host);
  const float *x = input(l, 0), *dy = input(l, 4), *mean = input(l, 2);
  for_parts(p, kGradNs / 2, [&](int64_t k, Part part) {
    std::fill_n(w.sum(k), 2 * p.channels, 0.0);
    for_blocks(p, part, [&](int64_t r, int64_t rows) {
      p.code->rows_grad_sums(x + r * p.channels, dy + r * p.channels, rows, p.channels, mean, w.scratch(k, 0), w.scratch(k, 1));
      for (int64_t c = 0; c < p.channels; ++c) w.sum(k)[c] += double(w.scratch(k, 0)[c]), w.second(k)[c] += double(w.scratch(k, 1)[c]);
    });
  });
  for (int64_t c = 0; c < p.channels; ++c) {
    double sum = 0, dot = 0;
    for (int64_t k = 0; k < w.parts; ++k) sum += w.sum(k)[c], dot += w.second(k)[c];
    const Slopes s = slopes_of(p, l, c, sum, dot);
    w.shared(1)[c] = s.factor, w.shared(2)[c] = s.dy_mean, w.shared(3)[c] = s.slope;
  }
  for_parts(p, kGradNs / 2, [&](int64_t, Part part) {
    for_blocks(p, part, [&](int64_t r, int64_t rows) {
      const int64_t at = r * p.channels;
      p.code->rows_grad(x + at, dy + at, rows, p.channels, mean, w.shared(1), w.shared(2), w.shared(3), target(l, 5) + at);
    });
  });
  return TN_OK;
}
tn_status launch_grad_first(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<BatchPlan>(base);
  const float *x = input(l, 0), *dy = input(l, 4);
  for_channel_tasks(p, kGradNs, [&](int64_t c) {
    double sum = 0, dot = 0;
    const float mean = input(l, 2)[c];
    for (int64_t n = 0; n < p.images; ++n) {
      const int64_t at = (n * p.channels + c) * p.plane;
      sum += p.rows->sum(dy + at, p.plane), dot += p.code->plane_dot(x + at, dy + at, p.plane, mean);
    }
    const Slopes s = slopes_of(p, l, c, sum, dot);
    for (int64_t n = 0; n < p.images; ++n) {
      const int64_t at = (n * p.channels + c) * p.plane;
      p.code->plane_grad(x + at, dy + at, p.plane, mean, s.factor, s.dy_mean, s.slope, target(l, 5) + at);
    }
  });
  return TN_OK;
}

// ---- rows of the table -------------------------------------------------------------------------------------------------
enum Form { kForward, kInfer, kGrad };

// Rows of C values without gaps: channels fastest, the other axes in their order.
bool channels_fastest(const tn_type& t) {
  int64_t expect = 1;
  if (t.dim[1] != 1 && t.stride[1] != 1) return false;
  expect = t.dim[1];
  for (int i = int(t.rank) - 1; i >= 0; --i) {
    if (i == 1) continue;
    if (t.dim[i] != 1 && t.stride[i] != expect) return false;
    expect *= t.dim[i];
  }
  return true;
}
template <Form kForm>
bool shares_layout(const tn_op* op, bool (*layout)(const tn_type&)) {
  return layout(op->type[0]) && layout(op->type[op->n_in]) && (kForm != kGrad || layout(op->type[4]));
}

template <Form kForm>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const tn_type& x = op->type[0];
  if (x.rank < 2) return decline(out, diag, 1, "cpu.batch_norm: rank %u\nwhy: channels are axis 1\ntry: two or more axes", x.rank);
  if (!shares_layout<kForm>(op, row_major) && !shares_layout<kForm>(op, channels_fastest))
    return decline(out, diag, 2, "cpu.batch_norm: layout\nwhy: the images are neither all row-major nor all channels-last\ntry: copy them first");
  for (uint32_t i = 1; i < uint32_t{op->n_in} + op->n_out; ++i)
    if (i != op->n_in && !(kForm == kGrad && i == 4) && op->type[i].dtype != 0 && !row_major(op->type[i]))
      return decline(out, diag, 3, "cpu.batch_norm: operand %u has gaps\nwhy: rows of channels are read whole\ntry: copy it first", i);
  const double each = kForm == kForward ? kForwardNs : kForm == kGrad ? kGradNs : kInferNs;
  const double ns = each * double(element_count(x));
  out->est_ns = 150 + 4 * double(x.dim[1]) + (ns > 60000 ? ns / self_of(self).threads + 5000 : ns);
  out->confidence = 0.5f;
  return TN_OK;
}
template <Form kForm>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  // With one channel both layouts are one: the planes' code has no part vectors then.
  const bool last = !shares_layout<kForm>(op, row_major) || (op->type[0].dim[1] > 1 && shares_layout<kForm>(op, channels_fastest));
  const auto launch = kForm == kInfer ? launch_infer
                      : kForm == kGrad ? (last ? launch_grad_last : launch_grad_first)
                                       : (last ? launch_last : launch_first);
  return make_plan<BatchPlan>(self, op, out, diag, launch, [&](BatchPlan& p) -> tn_status {
    const tn_type& x = op->type[0];
    p.images = x.dim[0], p.channels = x.dim[1], p.plane = 1, p.last = last;
    for (uint32_t i = 2; i < x.rank; ++i) p.plane *= x.dim[i];
    p.has_scale = op->type[1].dtype != 0, p.has_bias = kForm != kGrad && op->type[2].dtype != 0;
    p.epsilon = attr_f64(*op, TN_KEY_EPSILON, 1e-5);
    p.code = &batch_code(p.instance->isa), p.rows = &row_code(p.instance->isa);
    p.n_views = uint32_t{op->n_in} + op->n_out;  // absent operands keep their views
    p.workspace_bytes = std::max<uint64_t>(Work::bytes(p), 64);
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(TN_ANY_OPERAND, bit(TN_F32))};

template <Form kForm>
void add(Rows& rows, const char* name, uint64_t op_id) {
  tn_kernel_info k = kernel_row(name, op_id, TN_KERNEL_DETERMINISTIC, kCons, std::size(kCons));
  k.supports = within<kCons, supports<kForm>>, k.prepare = prepare<kForm>, k.retire = retire_plan<BatchPlan>;
  rows.push_back(k);
}

}  // namespace

void add_batch_norm_rows(Rows& rows) {
  add<kForward>(rows, "cpu.batch_norm", TN_OPID_BATCH_NORM);
  add<kInfer>(rows, "cpu.batch_norm_infer", TN_OPID_BATCH_NORM_INFER);
  add<kGrad>(rows, "cpu.batch_norm_grad", TN_OPID_BATCH_NORM_GRAD);
}

}  // namespace tenon::cpu
