// Max and average pooling over H and W with their gradients, f32, any strides.
//
// A window is clipped to the image when the plan is made, so that the inner loops test nothing. Channels next to each
// other go through vectors (last.cpp), a task being a row of windows, or an image where windows may share elements;
// other layouts take plain loops, a task being one image of one channel.
#include <algorithm>
#include <iterator>
#include <limits>

#include "backends/cpu/constraints.h"
#include "backends/cpu/pool/last.h"

namespace tenon::cpu {
namespace {

struct Axis { int64_t in, out, kernel, stride, low, dilation; };
struct Strides { int64_t n, c, h, w; };
struct PoolPlan : Plan {
  int64_t images = 0, channels = 0;
  Axis h{}, w{};
  Strides small[2]{}, large[2]{};  // of operands with pooled dims, and with the image's dims
  bool include_pad = false;
  int64_t large_elements = 0;
  std::vector<Span> rows, cols;    // of the windows
  const LastCode* last = nullptr;  // channels lie next to each other
  bool apart = false, exact = false;  // windows share no element; nor leave one out
  PoolLine line() const {
    return {cols.data(), w.out, channels, h.dilation * large[0].h, w.dilation * large[0].w, large[0].w, small[0].w};
  }
};

Span clip(const Axis& a, int64_t o) {
  const int64_t start = o * a.stride - a.low;
  const int64_t skip = start < 0 ? (-start + a.dilation - 1) / a.dilation : 0;
  const int64_t first = start + skip * a.dilation;
  const int64_t room = first < a.in ? (a.in - first + a.dilation - 1) / a.dilation : 0;
  return {first, std::clamp<int64_t>(room, 0, std::max<int64_t>(a.kernel - skip, 0))};
}
// Calls f(output offset inside a plane of `s`, rows, columns) for every window.
template <class F>
void for_windows(const PoolPlan& p, const Strides& s, F&& f) {
  for (int64_t i = 0; i < p.h.out; ++i)
    for (int64_t j = 0; j < p.w.out; ++j) f(i * s.h + j * s.w, p.rows[size_t(i)], p.cols[size_t(j)]);
}
template <class F>
void for_planes(const PoolPlan& p, F&& f) {
  const double ns = double(p.images * p.channels * p.h.out * p.w.out) * (4 + double(p.h.kernel * p.w.kernel));
  parallel_for(*p.instance, p.images * p.channels, ns, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i / p.channels, i % p.channels);
  });
}
constexpr double kVectorNs = 0.22;  // an element of the image, one thread, data beyond L2
double vector_ns(const PoolPlan& p) { return kVectorNs * double(p.images * p.channels) * double(p.h.in * p.w.in); }
// f(image, row of windows) on the pool.
template <class F>
void for_rows(const PoolPlan& p, F&& f) {
  parallel_for(*p.instance, p.images * p.h.out, vector_ns(p), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i / p.h.out, i % p.h.out);
  });
}
// f(image) on the pool, with the image of dx cleared where windows do not write all of it.
template <class F>
void for_images(const PoolPlan& p, float* dx, F&& f) {
  const Strides& s = p.large[1];
  parallel_for(*p.instance, p.images, 2 * vector_ns(p), [&](int64_t b, int64_t e) {
    for (int64_t n = b; n < e; ++n) {
      for (int64_t i = 0; !p.exact && i < p.h.in; ++i)
        for (int64_t j = 0; j < p.w.in; ++j) std::memset(dx + n * s.n + i * s.h + j * s.w, 0, size_t(p.channels) * 4);
      for (int64_t i = 0; i < p.h.out; ++i) f(n, i);
    }
  });
}
const float* input(const tn_launch* l, uint32_t k) { return static_cast<const float*>(l->views[k].host); }
float* target(const tn_launch* l, uint32_t k) { return static_cast<float*>(l->views[k].host); }
int64_t whole_window(const PoolPlan& p) { return p.include_pad ? p.h.kernel * p.w.kernel : 0; }

tn_status launch_max_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_rows(p, [&](int64_t n, int64_t i) {
    const Span rows = p.rows[size_t(i)];
    p.last->max(p.line(), input(l, 0) + n * p.large[0].n + rows.first * p.large[0].h, rows.count, target(l, 1) + n * p.small[0].n + i * p.small[0].h);
  });
  return TN_OK;
}
tn_status launch_max_grad_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_images(p, target(l, 3), [&](int64_t n, int64_t i) {
    const Span rows = p.rows[size_t(i)];
    const int64_t at = n * p.large[0].n + rows.first * p.large[0].h;
    p.last->max_grad(p.line(), input(l, 0) + at, rows.count, input(l, 2) + n * p.small[0].n + i * p.small[0].h, target(l, 3) + at, !p.apart);
  });
  return TN_OK;
}
tn_status launch_average_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_rows(p, [&](int64_t n, int64_t i) {
    const Span rows = p.rows[size_t(i)];
    p.last->average(p.line(), input(l, 0) + n * p.large[0].n + rows.first * p.large[0].h, rows.count, whole_window(p),
                    target(l, 1) + n * p.small[0].n + i * p.small[0].h);
  });
  return TN_OK;
}
tn_status launch_average_grad_last(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_images(p, target(l, 1), [&](int64_t n, int64_t i) {
    const Span rows = p.rows[size_t(i)];
    p.last->average_grad(p.line(), input(l, 0) + n * p.small[0].n + i * p.small[0].h, rows.count, whole_window(p),
                         target(l, 1) + n * p.large[1].n + rows.first * p.large[1].h, !p.apart);
  });
  return TN_OK;
}

int64_t plane(const Strides& s, int64_t n, int64_t c) { return n * s.n + c * s.c; }

tn_status launch_max(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_planes(p, [&](int64_t n, int64_t c) {
    const float* x = static_cast<const float*>(l->views[0].host) + plane(p.large[0], n, c);
    float* y = static_cast<float*>(l->views[1].host) + plane(p.small[0], n, c);
    const Strides& s = p.large[0];
    for_windows(p, p.small[0], [&](int64_t at, Span rows, Span cols) {
      float top = -std::numeric_limits<float>::infinity();
      for (int64_t i = 0; i < rows.count; ++i) {
        const float* row = x + (rows.first + i * p.h.dilation) * s.h + cols.first * s.w;
        for (int64_t j = 0; j < cols.count; ++j) {
          const float v = row[j * p.w.dilation * s.w];
          // A NaN wins and stays; +0 lies above -0.
          if (v > top || v != v || (v == 0 && top == 0 && !__builtin_signbit(v))) top = top != top ? top : v;
        }
      }
      y[at] = top;
    });
  });
  return TN_OK;
}

tn_status launch_max_grad(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  std::memset(l->views[3].host, 0, size_t(p.large_elements) * 4);
  for_planes(p, [&](int64_t n, int64_t c) {
    const float* x = static_cast<const float*>(l->views[0].host) + plane(p.large[0], n, c);
    const float* dy = static_cast<const float*>(l->views[2].host) + plane(p.small[1], n, c);
    float* dx = static_cast<float*>(l->views[3].host) + plane(p.large[1], n, c);
    const Strides& s = p.large[0];
    for_windows(p, p.small[1], [&](int64_t at, Span rows, Span cols) {
      float top = 0;
      int64_t top_row = -1, top_col = 0;
      for (int64_t i = 0; i < rows.count; ++i)
        for (int64_t j = 0; j < cols.count; ++j) {
          const int64_t r = rows.first + i * p.h.dilation, q = cols.first + j * p.w.dilation;
          const float v = x[r * s.h + q * s.w];
          if (top_row >= 0 && (top != top || !(v > top || v != v))) continue;  // the first of equals, the first NaN
          top = v, top_row = r, top_col = q;
        }
      if (top_row >= 0) dx[top_row * p.large[1].h + top_col * p.large[1].w] += dy[at];
    });
  });
  return TN_OK;
}

// One over the number of elements that a window is divided by.
float divisor(const PoolPlan& p, Span rows, Span cols) {
  const int64_t n = p.include_pad ? p.h.kernel * p.w.kernel : rows.count * cols.count;
  return n > 0 ? 1.0f / float(n) : 0.0f;
}
tn_status launch_average(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  for_planes(p, [&](int64_t n, int64_t c) {
    const float* x = static_cast<const float*>(l->views[0].host) + plane(p.large[0], n, c);
    float* y = static_cast<float*>(l->views[1].host) + plane(p.small[0], n, c);
    const Strides& s = p.large[0];
    for_windows(p, p.small[0], [&](int64_t at, Span rows, Span cols) {
      double sum = 0;
      for (int64_t i = 0; i < rows.count; ++i)
        for (int64_t j = 0; j < cols.count; ++j) sum += double(x[(rows.first + i * p.h.dilation) * s.h + (cols.first + j * p.w.dilation) * s.w]);
      const int64_t count = p.include_pad ? p.h.kernel * p.w.kernel : rows.count * cols.count;
      y[at] = float(sum / double(count));
    });
  });
  return TN_OK;
}
tn_status launch_average_grad(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<PoolPlan>(base);
  std::memset(l->views[1].host, 0, size_t(p.large_elements) * 4);
  for_planes(p, [&](int64_t n, int64_t c) {
    const float* dy = static_cast<const float*>(l->views[0].host) + plane(p.small[0], n, c);
    float* dx = static_cast<float*>(l->views[1].host) + plane(p.large[0], n, c);
    const Strides& s = p.large[0];
    for_windows(p, p.small[0], [&](int64_t at, Span rows, Span cols) {
      const float g = dy[at] * divisor(p, rows, cols);
      for (int64_t i = 0; i < rows.count; ++i)
        for (int64_t j = 0; j < cols.count; ++j) dx[(rows.first + i * p.h.dilation) * s.h + (cols.first + j * p.w.dilation) * s.w] += g;
    });
  });
  return TN_OK;
}

enum Kind { kMax, kMaxGrad, kAverage, kAverageGrad };
// Operand numbers: those with the pooled dims and those with the image's dims.
struct Roles { uint32_t small[2], large[2]; };
constexpr Roles kRoles[] = {{{1, 1}, {0, 0}}, {{1, 2}, {0, 3}}, {{1, 1}, {0, 0}}, {{0, 0}, {1, 1}}};

bool dense_somehow(const tn_type& t) {
  int64_t reach = 1;
  for (int i = 0; i < t.rank; ++i) {
    if (t.stride[i] < 0) return false;
    reach += (t.dim[i] - 1) * t.stride[i];
  }
  return element_count(t) == 0 || reach == element_count(t);
}

// Channels lie next to each other in every operand, and those of one shape share their strides.
template <Kind kKind>
bool channels_together(const tn_op* op) {
  const Roles& r = kRoles[kKind];
  const auto alike = [&](uint32_t a, uint32_t b) {
    return std::equal(op->type[a].stride, op->type[a].stride + 4, op->type[b].stride);
  };
  if (op->type[r.large[0]].dim[1] < 2 || !alike(r.large[0], r.large[1])) return false;
  for (uint32_t k : {r.small[0], r.small[1], r.large[0]})
    if (op->type[k].stride[1] != 1) return false;
  return kKind != kMaxGrad || alike(r.small[0], r.small[1]);
}

template <Kind kKind>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const Roles& r = kRoles[kKind];
  const tn_type& image = op->type[r.large[0]];
  const tn_type& pooled = op->type[r.small[0]];
  if (image.rank != 4 || pooled.rank != 4) return decline(out, diag, 1, "cpu.pool: rank %u\nwhy: images are [N, C, H, W]\ntry: four axes", image.rank);
  if (attr_ints(*op, TN_KEY_KERNEL).size() != 2) return decline(out, diag, 2, "cpu.pool: attribute kernel\nwhy: two sizes are needed\ntry: kernel = {H, W}");
  const bool average = kKind == kAverage || kKind == kAverageGrad;
  if (average && attr_i64(*op, TN_KEY_INCLUDE_PAD, 0) == 0) {
    // A window that lies wholly in the padding has nothing to average: left to the op's expansion.
    const auto lo = attr_ints(*op, TN_KEY_LO), hi = attr_ints(*op, TN_KEY_HI), kernel = attr_ints(*op, TN_KEY_KERNEL);
    for (size_t i = 0; i < 2; ++i)
      if ((!lo.empty() && lo[i] >= kernel[i]) || (!hi.empty() && hi[i] >= kernel[i]))
        return decline(out, diag, 3, "cpu.avg_pool2d: padding as wide as the window\nwhy: a window may hold no element\ntry: less padding");
  }
  if ((kKind == kMaxGrad || kKind == kAverageGrad) && !dense_somehow(op->type[op->n_in]))
    return decline(out, diag, 4, "cpu.pool: the output is not dense\nwhy: it is cleared as a whole\ntry: a dense output");
  const auto kernel = attr_ints(*op, TN_KEY_KERNEL);
  double ns = double(element_count(pooled)) * (5 + double(kernel[0] * kernel[1]) * 1.2);
  if (channels_together<kKind>(op)) {
    const double lanes = image.dim[1] < 16 ? double(image.dim[1]) : 16, taps = double(kernel[0] * kernel[1]);
    const bool grad = kKind == kMaxGrad || kKind == kAverageGrad;
    ns = std::max(double(element_count(pooled)) * (2 + taps * (grad ? 2.5 : 1)) / lanes, double(element_count(image)) * kVectorNs * (grad ? 2 : 1));
  }
  out->est_ns = 50 + (ns > 60000 ? ns / self_of(self).threads : ns);
  out->confidence = 0.4f;
  return TN_OK;
}

template <Kind kKind>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  constexpr tn_status (*kLaunch[])(const tn_kernel_plan*, const tn_launch*) = {launch_max, launch_max_grad, launch_average, launch_average_grad};
  constexpr tn_status (*kLaunchLast[])(const tn_kernel_plan*, const tn_launch*) = {launch_max_last, launch_max_grad_last, launch_average_last, launch_average_grad_last};
  const bool together = channels_together<kKind>(op);
  return make_plan<PoolPlan>(self, op, out, diag, (together ? kLaunchLast : kLaunch)[kKind], [&](PoolPlan& p) -> tn_status {
    const Roles& r = kRoles[kKind];
    const tn_type& image = op->type[r.large[0]];
    const tn_type& pooled = op->type[r.small[0]];
    const auto kernel = attr_ints(*op, TN_KEY_KERNEL), strides = attr_ints(*op, TN_KEY_STRIDES), lo = attr_ints(*op, TN_KEY_LO), dilations = attr_ints(*op, TN_KEY_DILATIONS);
    const auto axis = [&](size_t i) {
      return Axis{image.dim[2 + i], pooled.dim[2 + i], kernel[i], strides.empty() ? 1 : strides[i], lo.empty() ? 0 : lo[i], dilations.empty() ? 1 : dilations[i]};
    };
    p.images = image.dim[0], p.channels = image.dim[1];
    p.h = axis(0), p.w = axis(1);
    for (int i = 0; i < 2; ++i) {
      const tn_type& s = op->type[r.small[i]];
      const tn_type& g = op->type[r.large[i]];
      p.small[i] = {s.stride[0], s.stride[1], s.stride[2], s.stride[3]};
      p.large[i] = {g.stride[0], g.stride[1], g.stride[2], g.stride[3]};
    }
    p.include_pad = attr_i64(*op, TN_KEY_INCLUDE_PAD, 0) != 0;
    for (int64_t i = 0; i < p.h.out; ++i) p.rows.push_back(clip(p.h, i));
    for (int64_t i = 0; i < p.w.out; ++i) p.cols.push_back(clip(p.w, i));
    if (together) p.last = &last_code(p.instance->isa);
    const auto tiles = [](const Axis& a) { return a.dilation == 1 && a.stride == a.kernel && a.low == 0 && a.out * a.kernel == a.in; };
    p.exact = tiles(p.h) && tiles(p.w);
    p.apart = (p.h.kernel - 1) * p.h.dilation < p.h.stride && (p.w.kernel - 1) * p.w.dilation < p.w.stride;
    p.large_elements = element_count(op->type[r.large[1]]);
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(TN_ANY_OPERAND, bit(TN_F32))};

template <Kind kKind>
void add(Rows& rows, const char* name, uint64_t op_id) {
  tn_kernel_info k = kernel_row(name, op_id, TN_KERNEL_DETERMINISTIC, kCons, std::size(kCons));
  k.supports = within<kCons, supports<kKind>>, k.prepare = prepare<kKind>, k.retire = retire_plan<PoolPlan>;
  rows.push_back(k);
}

}  // namespace

void add_pool_rows(Rows& rows) {
  add<kMax>(rows, "cpu.max_pool2d", TN_OPID_MAX_POOL2D);
  add<kMaxGrad>(rows, "cpu.max_pool2d_grad", TN_OPID_MAX_POOL2D_GRAD);
  add<kAverage>(rows, "cpu.avg_pool2d", TN_OPID_AVG_POOL2D);
  add<kAverageGrad>(rows, "cpu.avg_pool2d_grad", TN_OPID_AVG_POOL2D_GRAD);
}

}  // namespace tenon::cpu
