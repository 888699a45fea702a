// Direct convolution of f32 images and its two gradients: dilation 1, one group; vectors run over output channels.
//
// An image is brought, padded, into scratch of the worker where it is not there already in the right form; then a window
// row of all channels is one run of memory, and a row of outputs is a small matrix product with the repacked weights.
// The input gradient (stride 1) is the same product with dy for x and turned weights; where x has few channels, vectors
// run over a whole window row of x instead, and windows are added up ("scatter"). The weight gradient adds products
// of x's taps and dy, an image at a time, in a few sums of fixed cut: results do not depend on the number of threads.
#include "backends/cpu/constraints.h"
#include "backends/cpu/conv/conv.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/conv/tiles.h"

namespace tenon::cpu {
namespace {

enum Form { kForward, kInputGrad, kWeightGrad };
constexpr int64_t kParts = 8;                  // sums of the weight gradient
constexpr int64_t kWeightBytes = 24 << 10;     // of L1

// Images in memory, and as the loops read them: [height][width][channels], channels padded to `pitch`.
struct Image {
  int64_t channels = 0, height = 0, width = 0;                         // in memory
  int64_t n_step = 0, c_step = 0, h_step = 0, w_step = 0;              // strides in memory
  int64_t top = 0, left = 0, full_height = 0, full_width = 0, pitch = 0;  // as read
  bool copied = false;
  int64_t scratch() const { return copied ? full_height * full_width * pitch : 0; }
};
struct ConvPlan : Plan {
  Form form = kForward;
  Image in, dy;  // in: x, or dy of the input gradient
  int64_t images = 0, outputs = 0, kernel_h = 0, kernel_w = 0, out_h = 0, out_w = 0, stride_h = 1, stride_w = 1;
  int64_t y_n = 0, y_h = 0, y_w = 0;                 // strides of the written image
  int64_t w_o = 0, w_c = 0, w_h = 0, w_w = 0;        // strides of the weights, in terms of this product
  bool bias = false, turned = false;
  bool scatter = false;
  int64_t x_height = 0, x_width = 0, x_top = 0, x_left = 0, sum_height = 0, sum_width = 0;  // of scatter: dx, and what windows reach
  bool x_dense = false;
  double ns = 0;
  const ConvCode* code = nullptr;
  int64_t run() const { return kernel_w * in.pitch; }  // elements of a window row
  int64_t taps() const { return kernel_h * run(); }
  int64_t padded() const { return (outputs + code->lanes - 1) / code->lanes * code->lanes; }
  int64_t parts() const { return std::clamp<int64_t>(images, 1, kParts); }
  // dy of an image by groups of vectors: rows apart by more would crowd into a few sets of the cache.
  int64_t block() const { return form == kWeightGrad && padded() > kMostVectors * code->lanes ? out_h * out_w * kMostVectors * code->lanes : 0; }
  bool sums_apart() const { return !x_dense || x_top || x_left || sum_height != x_height || sum_width != x_width; }
  int64_t sum_line() const { return sum_width * outputs; }
  int64_t reach() const { return kernel_w * outputs; }  // elements of dx that one window row touches
  int64_t reach_padded() const { return (reach() + code->lanes - 1) / code->lanes * code->lanes; }
  int64_t scratch() const { return in.scratch() + dy.scratch() + block() + (scatter ? sum_height * sum_line() : 0) + 16; }
  int64_t packed() const { return scatter ? kernel_h * in.channels * reach_padded() : form == kWeightGrad ? parts() * taps() * padded() : (taps() + 1) * padded(); }
};

// The image in the form that the loops read: in place or in scratch.
const float* bring(const Image& m, const float* base, int64_t n, float* scratch) {
  const float* from = base + n * m.n_step;
  if (!m.copied) return from;
  std::memset(scratch, 0, size_t(m.scratch()) * 4);
  for (int64_t i = 0; i < m.height; ++i) {
    float* row = scratch + ((m.top + i) * m.full_width + m.left) * m.pitch;
    if ((m.c_step == 1 || m.channels == 1) && m.w_step == m.channels && m.pitch == m.channels) {
      std::memcpy(row, from + i * m.h_step, size_t(m.width * m.channels) * 4);
      continue;
    }
    for (int64_t j = 0; j < m.width; ++j)
      for (int64_t c = 0; c < m.channels; ++c) row[j * m.pitch + c] = from[i * m.h_step + j * m.w_step + c * m.c_step];
  }
  return scratch;
}
template <class F>
void for_pieces(const ConvPlan& p, int64_t n, F&& f) {
  const Instance& in = *p.instance;
  if (n <= 1 || p.ns < 40000 || in.threads < 2) {
    if (n > 0) f(int64_t{0}, n, uint32_t{0});
    return;
  }
  const int64_t grain = std::max<int64_t>(1, int64_t(double(n) * 15000 / p.ns));
  using Fn = std::remove_reference_t<F>;
  in.host->parallel(in.host->ctx, n, grain, [](void* arg, int64_t b, int64_t e, uint32_t worker) { (*static_cast<Fn*>(arg))(b, e, worker); },
                    const_cast<void*>(static_cast<const void*>(&f)));
}
// f(first, count) over [0, n) in the fewest pieces of at most `most`, of nearly equal size.
template <class F>
void for_even(int64_t n, int64_t most, F f) {
  const int64_t pieces = (n + most - 1) / most;
  for (int64_t k = 0; k < pieces; ++k) {
    const int64_t first = n * k / pieces;
    f(first, n * (k + 1) / pieces - first);
  }
}
// f(first, vectors) over [0, padded), a multiple of the vector's length.
template <class F>
void for_vectors(const ConvPlan& p, int64_t padded, F f) {
  const int64_t lanes = p.code->lanes;
  for (int64_t o = 0; o < padded;) {
    const int64_t vectors = std::min<int64_t>(kMostVectors, (padded - o) / lanes);
    f(o, vectors);
    o += vectors * lanes;
  }
}
template <class F>
void for_outputs(const ConvPlan& p, F f) { for_vectors(p, p.padded(), f); }

// Weights as blocks of [kernel_h][kernel_w][channels][vectors * lanes], then the bias.
void pack_weights(const ConvPlan& p, const float* w, const float* bias, float* to) {
  float* start = to + p.taps() * p.padded();
  for (int64_t o = 0; o < p.padded(); ++o) start[o] = bias && o < p.outputs ? bias[o] : 0;
  for_outputs(p, [&](int64_t first, int64_t vectors) {
    const int64_t width = vectors * p.code->lanes;
    for (int64_t k = 0; k < p.kernel_h; ++k)
      for (int64_t l = 0; l < p.kernel_w; ++l)
        for (int64_t c = 0; c < p.in.channels; ++c) {
          const int64_t kh = p.turned ? p.kernel_h - 1 - k : k, kw = p.turned ? p.kernel_w - 1 - l : l;
          const float* from = w + kh * p.w_h + kw * p.w_w + c * p.w_c;
          for (int64_t o = first; o < first + width; ++o) *to++ = o < p.outputs ? from[o * p.w_o] : 0;
        }
  });
}
void image_product(const ConvPlan& p, const float* x, const float* packed, float* y) {
  const int64_t line = p.in.full_width * p.in.pitch, lanes = p.code->lanes;
  const float* start = packed + p.taps() * p.padded();
  for_outputs(p, [&](int64_t o, int64_t vectors) {
    const int64_t width = vectors * lanes, step = p.stride_w * p.in.pitch, slice = p.run() * width;
    ConvTile t{p.kernel_h, p.run(), line, 1, kRowGroup * step, step, slice, width, p.y_w, std::min(width, p.outputs - o), start + o, false};
    // Weights that do not stay in L1 beside the image are taken a kernel row at a time.
    const bool cut = p.kernel_h * slice * 4 > kWeightBytes;
    if (cut) t.outer = 1;
    for (int64_t k = 0; k < (cut ? p.kernel_h : 1); ++k) {
      if (k > 0) t.start = nullptr, t.add = true;
      for (int64_t i = 0; i < p.out_h; ++i)
        for_even(p.out_w, p.code->rows[vectors], [&](int64_t j, int64_t rows) {
          p.code->tile[vectors][rows](t, x + (i * p.stride_h + k) * line + j * step, packed + p.taps() * o + k * slice, y + i * p.y_h + j * p.y_w + o);
        });
    }
  });
}
// Views x, w, bias?, y, or dy, w, dx.
tn_status launch_product(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<ConvPlan>(base);
  const auto view = [&](uint32_t k) { return static_cast<float*>(l->views[k].host); };
  float* work = view(p.n_views);
  pack_weights(p, view(1), p.bias ? view(2) : nullptr, work);
  for_pieces(p, p.images, [&](int64_t b, int64_t e, uint32_t worker) {
    float* scratch = work + p.packed() + worker * p.scratch();
    for (int64_t n = b; n < e; ++n) image_product(p, bring(p.in, view(0), n, scratch), work, view(p.n_views - 1) + n * p.y_n);
  });
  return TN_OK;
}

// ---- input gradient by scatter: here `outputs` are x's channels, `in` is dy -------------------------------------------------
// Weights as [kernel_h] blocks of [dy's channels][vectors * lanes] over the elements of a window row.
void pack_reach(const ConvPlan& p, const float* w, float* to) {
  for (int64_t k = 0; k < p.kernel_h; ++k)
    for_vectors(p, p.reach_padded(), [&](int64_t first, int64_t vectors) {
      for (int64_t c = 0; c < p.in.channels; ++c)
        for (int64_t e = first; e < first + vectors * p.code->lanes; ++e)
          *to++ = e < p.reach() ? w[c * p.w_c + (e % p.outputs) * p.w_o + k * p.w_h + (e / p.outputs) * p.w_w] : 0;
    });
}
// A tile's rows are windows below each other, which share no element of one kernel row: none waits for another's store.
void image_scatter(const ConvPlan& p, const float* dy, const float* packed, float* sum) {
  const int64_t line = p.in.full_width * p.in.pitch, out = p.sum_line();
  std::memset(sum, 0, size_t(p.sum_height * out) * 4);
  for (int64_t k = 0; k < p.kernel_h; ++k)
    for_vectors(p, p.reach_padded(), [&](int64_t first, int64_t vectors) {
      const int64_t width = vectors * p.code->lanes;
      const ConvTile t{1, p.in.channels, 0, 1, kRowGroup * line, line, 0, width, p.stride_h * out, std::min(width, p.reach() - first), nullptr, true};
      const float* w = packed + p.in.channels * (k * p.reach_padded() + first);
      for (int64_t j = 0; j < p.in.width; ++j)
        for_even(p.in.height, p.code->rows[vectors], [&](int64_t i, int64_t rows) {
          p.code->tile[vectors][rows](t, dy + i * line + j * p.in.pitch, w, sum + (i * p.stride_h + k) * out + j * p.stride_w * p.outputs + first);
        });
    });
}
// Views dy, w, dx.
tn_status launch_scatter(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<ConvPlan>(base);
  const auto view = [&](uint32_t k) { return static_cast<float*>(l->views[k].host); };
  float* work = view(p.n_views);
  pack_reach(p, view(1), work);
  for_pieces(p, p.images, [&](int64_t b, int64_t e, uint32_t worker) {
    float* scratch = work + p.packed() + worker * p.scratch();
    float* own = scratch + p.in.scratch();
    for (int64_t n = b; n < e; ++n) {
      float* dx = view(2) + n * p.y_n;
      float* sum = p.sums_apart() ? own : dx;
      image_scatter(p, bring(p.in, view(0), n, scratch), work, sum);
      for (int64_t i = 0; sum != dx && i < p.x_height; ++i)
        for (int64_t j = 0; j < p.x_width; ++j)
          std::memcpy(dx + i * p.y_h + j * p.y_w, sum + (i + p.x_top) * p.sum_line() + (j + p.x_left) * p.outputs, size_t(p.outputs) * 4);
    }
  });
  return TN_OK;
}

// ---- weight gradient ---------------------------------------------------------------------------------------------------
const float* bring_block(const ConvPlan& p, const float* dy, int64_t dy_h, int64_t dy_w, int64_t width, float* block) {
  for (int64_t i = 0; i < p.out_h; ++i)
    for (int64_t j = 0; j < p.out_w; ++j) std::memcpy(block + (i * p.out_w + j) * width, dy + i * dy_h + j * dy_w, size_t(width) * 4);
  return block;
}
// sum[taps][padded] += taps of one image times dy.
void image_weight_grad(const ConvPlan& p, const float* x, const float* dy, float* block, float* sum) {
  const int64_t line = p.in.full_width * p.in.pitch, lanes = p.code->lanes, padded = p.padded();
  const int64_t dy_w = p.dy.pitch, dy_h = p.dy.copied ? p.dy.full_width * dy_w : p.dy.h_step;
  for_outputs(p, [&](int64_t o, int64_t vectors) {
    const int64_t width = vectors * lanes;
    ConvTile t{p.out_h, p.out_w, p.stride_h * line, p.stride_w * p.in.pitch, kRowGroup, 1, dy_h, dy_w, padded, width, nullptr, true};
    const float* b = dy + o;
    if (p.block()) b = bring_block(p, b, dy_h, dy_w, width, block), t.b_outer = p.out_w * width, t.b_inner = width;
    // Where the taps of a row are few, all rows are one tile: more sums hide the latency of an addition.
    const bool three = p.run() == kRowGroup && p.kernel_h == 3 && p.code->rows[vectors] >= 9, five = p.run() == 5 && p.kernel_h == 5 && vectors == 1 && p.code->five;
    if (three || five) {
      t.a_group = line;
      return three ? p.code->tile[vectors][9](t, x, b, sum + o) : p.code->five(t, x, b, sum + o);
    }
    for (int64_t k = 0; k < p.kernel_h; ++k)
      for_even(p.run(), p.code->rows[vectors], [&](int64_t first, int64_t rows) {
        p.code->tile[vectors][rows](t, x + k * line + first, b, sum + (k * p.run() + first) * padded + o);
      });
  });
}
void write_weight_grad(const ConvPlan& p, const float* sums, float* dw) {
  const int64_t size = p.taps() * p.padded();
  for (int64_t k = 0; k < p.kernel_h; ++k)
    for (int64_t l = 0; l < p.kernel_w; ++l)
      for (int64_t c = 0; c < p.in.channels; ++c)
        for (int64_t o = 0; o < p.outputs; ++o) {
          const float* from = sums + (k * p.run() + l * p.in.pitch + c) * p.padded() + o;
          float total = 0;
          for (int64_t part = 0; part < p.parts(); ++part) total += from[part * size];
          dw[o * p.w_o + c * p.w_c + k * p.w_h + l * p.w_w] = total;
        }
}
// Views x, dy, dw.
tn_status launch_weight_grad(const tn_kernel_plan* base, const tn_launch* l) {
  const auto& p = plan_of<ConvPlan>(base);
  const auto view = [&](uint32_t k) { return static_cast<float*>(l->views[k].host); };
  float* work = view(p.n_views);
  for_pieces(p, p.parts(), [&](int64_t b, int64_t e, uint32_t worker) {
    float* scratch = work + p.packed() + worker * p.scratch();
    for (int64_t part = b; part < e; ++part) {
      float* sum = work + part * p.taps() * p.padded();
      std::memset(sum, 0, size_t(p.taps() * p.padded()) * 4);
      for (int64_t n = p.images * part / p.parts(); n < p.images * (part + 1) / p.parts(); ++n)
        image_weight_grad(p, bring(p.in, view(0), n, scratch), bring(p.dy, view(1), n, scratch + p.in.scratch()), scratch + p.in.scratch() + p.dy.scratch(), sum);
    }
  });
  write_weight_grad(p, work, view(2));
  return TN_OK;
}

// ---- rows of the table -------------------------------------------------------------------------------------------------
Image image_of(const tn_type& t) {
  Image m;
  m.channels = t.dim[1], m.height = t.dim[2], m.width = t.dim[3];
  m.n_step = t.stride[0], m.c_step = t.stride[1], m.h_step = t.stride[2], m.w_step = t.stride[3];
  return m;
}
bool channels_next(const tn_type& t) { return t.dim[1] == 1 || t.stride[1] == 1; }
void pad(Image& m, int64_t top, int64_t left, int64_t height, int64_t width, int64_t pitch) {
  m.top = top, m.left = left, m.full_height = height, m.full_width = width, m.pitch = pitch;
  const bool dense = (m.c_step == 1 || m.channels == 1) && (m.w_step == m.channels || m.width == 1) && (m.h_step == m.width * m.channels || m.height == 1);
  m.copied = !dense || top != 0 || left != 0 || height != m.height || width != m.width || pitch != m.channels;
}
struct Pair { int64_t h, w; };
Pair pair_attr(const tn_op& op, uint32_t key, int64_t fallback) {
  const tn_attr* a = find_attr(op, key);
  if (!a || !a->v.p || a->len != 2) return {fallback, fallback};
  const auto* v = static_cast<const int64_t*>(a->v.p);
  return {v[0], v[1]};
}

// Whether vectors over window rows need clearly fewer products than vectors over channels.
bool scatter_pays(const ConvPlan& p, const tn_type& y) {
  const double taps = double(p.kernel_h * p.kernel_w * p.in.channels), lanes = double(p.code->lanes);
  const double direct = double(p.x_height * p.x_width) * taps * double(p.padded()) / lanes;
  const double windows = double(y.dim[2] * y.dim[3] * p.kernel_h) * double(p.reach_padded()) / lanes;
  return windows * double(p.in.channels + 6) < 0.9 * direct;
}
// Reads the op into a plan; allocates nothing.
void read_plan(Form form, const tn_op& op, ConvPlan& p) {
  const tn_type &x = op.type[form == kInputGrad ? 2 : 0], &w = op.type[form == kWeightGrad ? 2 : 1], &y = op.type[form == kForward ? 3 : form == kInputGrad ? 0 : 1];
  const Pair stride = pair_attr(op, TN_KEY_STRIDES, 1), lo = pair_attr(op, TN_KEY_LO, 0), hi = pair_attr(op, TN_KEY_HI, 0);
  p.form = form, p.images = x.dim[0], p.kernel_h = w.dim[2], p.kernel_w = w.dim[3];
  p.w_h = w.stride[2], p.w_w = w.stride[3];
  const bool back = form == kInputGrad;
  const tn_type &from = back ? y : x, &to = back ? x : y;
  p.in = image_of(from), p.outputs = to.dim[1], p.out_h = to.dim[2], p.out_w = to.dim[3];
  p.w_o = w.stride[back ? 1 : 0], p.w_c = w.stride[back ? 0 : 1], p.turned = back;
  p.stride_h = stride.h, p.stride_w = stride.w;
  const int64_t top = back ? p.kernel_h - 1 - lo.h : lo.h, left = back ? p.kernel_w - 1 - lo.w : lo.w;
  const int64_t height = back ? x.dim[2] + p.kernel_h - 1 : x.dim[2] + lo.h + hi.h, width = back ? x.dim[3] + p.kernel_w - 1 : x.dim[3] + lo.w + hi.w;
  if (back) {
    p.x_height = x.dim[2], p.x_width = x.dim[3], p.x_top = lo.h, p.x_left = lo.w;
    p.sum_height = std::max((y.dim[2] - 1) * stride.h + p.kernel_h, x.dim[2] + lo.h);
    p.sum_width = std::max((y.dim[3] - 1) * stride.w + p.kernel_w, x.dim[3] + lo.w);
    p.x_dense = (x.dim[3] == 1 || x.stride[3] == x.dim[1]) && (x.dim[2] == 1 || x.stride[2] == x.dim[1] * x.dim[3]);
    p.scatter = stride.h != 1 || stride.w != 1 || top < 0 || left < 0 || scatter_pays(p, y);
  }
  if (p.scatter) pad(p.in, 0, 0, y.dim[2], y.dim[3], p.in.channels);
  else pad(p.in, top, left, height, width, p.in.channels);
  if (form == kWeightGrad) {
    p.dy = image_of(y);
    const bool in_place = channels_next(y) && p.padded() == p.outputs;
    pad(p.dy, 0, 0, y.dim[2], y.dim[3], p.padded());
    if (in_place) p.dy.copied = false, p.dy.pitch = y.stride[3];
  } else {
    p.y_n = to.stride[0], p.y_h = to.stride[2], p.y_w = to.stride[3];
    p.bias = form == kForward && op.type[2].dtype != 0;
  }
}
double estimate_scatter(const ConvPlan& p) {
  const double vectors = double(p.reach_padded()) / double(p.code->lanes), windows = double(p.images * p.in.height * p.in.width * p.kernel_h);
  const double rows = double(std::min(p.in.height, p.code->rows[vectors > 1 ? 2 : 1])), sums = double(p.images * p.sum_height * p.sum_line());
  return 500 + windows * vectors * (double(p.in.channels) / 4.0 + 0.8) + windows * vectors / rows * 8 + sums * (p.sums_apart() ? 0.3 : 0.1) + double(p.packed()) * 2;
}
// One thread: multiplications, tiles, bytes. Rates of AVX-512 cores, other sets by their lanes.
double estimate(const ConvPlan& p) {
  if (p.scatter) return estimate_scatter(p);
  const double lanes = double(p.code->lanes), pixels = double(p.images * p.out_h * p.out_w), vectors = double(p.padded()) / lanes;
  const double steps = pixels * double(p.taps()) * vectors, rate = lanes >= 16 ? 4.3 : 4.0;
  const double vec = std::min(2.0, vectors);
  double tiles = 0;
  if (p.form == kWeightGrad) tiles = double(p.images) * double(p.taps()) / double(p.code->rows[size_t(vec)]) * vectors / vec;
  else tiles = pixels / double(std::min(p.out_w, p.code->rows[size_t(vec)])) * vectors / vec;
  const double elements = double(p.images) * (double(p.in.channels * p.in.height * p.in.width) + double(p.outputs * p.out_h * p.out_w));
  // Rows of pixels are copied; from other layouts each element is fetched alone.
  const auto each = [](const Image& m, double alone) { return double(m.scratch()) * (m.c_step != 1 && m.channels > 1 ? alone : 0.06); };
  const double moved = double(p.images) * (each(p.in, 1.0) + each(p.dy, 0.5));
  return 500 + steps / rate + tiles * 15 + elements * 0.08 + moved + double(p.packed()) * 0.6;
}

template <Form kForm>
tn_status supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  for (uint32_t i : {0u, 1u, uint32_t{op->n_in}})
    if (op->type[i].rank != 4) return decline(out, diag, 1, "cpu.conv2d: rank %u\nwhy: images are [N, C, H, W]\ntry: four axes", op->type[i].rank);
  const Pair dilation = pair_attr(*op, TN_KEY_DILATIONS, 1), lo = pair_attr(*op, TN_KEY_LO, 0), hi = pair_attr(*op, TN_KEY_HI, 0);
  if (attr_i64(*op, TN_KEY_GROUPS, 1) != 1 || dilation.h != 1 || dilation.w != 1)
    return decline(out, diag, 2, "cpu.conv2d: groups or dilation\nwhy: one group and dilation 1 are taken\ntry: another kernel");
  if (lo.h < 0 || lo.w < 0 || hi.h < 0 || hi.w < 0) return decline(out, diag, 4, "cpu.conv2d: negative padding\nwhy: images are not cropped\ntry: slice first");
  ConvPlan p;
  p.code = &conv_code(self_of(self).isa);
  read_plan(kForm, *op, p);
  if (kForm != kWeightGrad && !channels_next(op->type[op->n_in])) return decline(out, diag, 6, "cpu.conv2d: the output is not channels-last\nwhy: vectors run over channels\ntry: a channels-last input");
  for (uint32_t i = 0; i < uint32_t{op->n_in} + op->n_out; ++i)
    if (op->type[i].dtype != 0 && (element_count(op->type[i]) == 0 || (op->type[i].rank == 1 && !row_major(op->type[i]))))
      return decline(out, diag, 7, "cpu.conv2d: operand %u is empty or has gaps\nwhy: nothing to run vectors over\ntry: another kernel", i);
  const double ns = estimate(p);
  out->est_ns = ns > 60000 ? ns / self_of(self).threads + 5000 : ns;
  out->confidence = 0.6f;
  return TN_OK;
}
template <Form kForm>
tn_status prepare(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_kernel_plan** out, tn_diag* diag) {
  ConvPlan form;
  form.code = &conv_code(self_of(self).isa);
  read_plan(kForm, *op, form);
  return make_plan<ConvPlan>(self, op, out, diag, kForm == kWeightGrad ? launch_weight_grad : form.scatter ? launch_scatter : launch_product, [&](ConvPlan& p) -> tn_status {
    p.code = &conv_code(p.instance->isa);
    read_plan(kForm, *op, p);
    p.ns = estimate(p);
    p.n_views = uint32_t{op->n_in} + op->n_out;  // an absent bias keeps its view
    p.workspace_bytes = uint64_t(p.packed() + p.scratch() * int64_t(p.instance->threads)) * 4;
    return TN_OK;
  });
}

constexpr tn_constraint kCons[] = {kOnCpu, strided(TN_ANY_OPERAND), dtype_in(TN_ANY_OPERAND, bit(TN_F32))};

template <Form kForm>
void add(Rows& rows, const char* name, uint64_t op_id) {
  tn_kernel_info k = kernel_row(name, op_id, TN_KERNEL_DETERMINISTIC, kCons, std::size(kCons));
  k.supports = within<kCons, supports<kForm>>, k.prepare = prepare<kForm>, k.retire = retire_plan<ConvPlan>;
  rows.push_back(k);
}

}  // namespace

void add_conv_rows(Rows& rows) {
  add<kForward>(rows, "cpu.conv2d", TN_OPID_CONV2D);
  add<kInputGrad>(rows, "cpu.conv2d_input_grad", TN_OPID_CONV2D_INPUT_GRAD);
  add<kWeightGrad>(rows, "cpu.conv2d_weight_grad", TN_OPID_CONV2D_WEIGHT_GRAD);
}

}  // namespace tenon::cpu
