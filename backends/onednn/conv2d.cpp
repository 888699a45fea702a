#include "backends/onednn/conv2d.h"

#include <algorithm>
#include <stdexcept>

#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

constexpr int64_t kFewChannels = 16;  // of a group

// The three tensors of a convolution whichever of them is the output, and the geometry.
struct Problem {
  const tn_type *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr;
  uint32_t x_view = 0, w_view = 0, y_view = 0, bias_view = 0;
  Pair strides{1, 1}, dilations{1, 1}, lo{0, 0}, hi{0, 0};
  int64_t groups = 1;
  int64_t batch() const { return x->dim[0]; }
  int64_t in_channels() const { return x->dim[1]; }
  int64_t out_channels() const { return y->dim[1]; }
};

enum class Direction { Forward, InputGrad, WeightGrad };

Problem assign(const tn_op& op, Direction direction) {
  Problem p;
  const tn_type* out = &output(op);
  const uint32_t out_view = op.n_in;
  switch (direction) {
    case Direction::Forward:
      p.x = &op.type[0], p.w = &op.type[1], p.y = out;
      p.x_view = 0, p.w_view = 1, p.y_view = out_view;
      if (op.n_in > 2 && !absent(op.type[2])) p.bias = &op.type[2], p.bias_view = 2;
      break;
    case Direction::InputGrad:
      p.y = &op.type[0], p.w = &op.type[1], p.x = out;
      p.y_view = 0, p.w_view = 1, p.x_view = out_view;
      break;
    case Direction::WeightGrad:
      p.x = &op.type[0], p.y = &op.type[1], p.w = out;
      p.x_view = 0, p.y_view = 1, p.w_view = out_view;
      break;
  }
  p.strides = attr_pair(op, TN_KEY_STRIDES, {1, 1});
  p.dilations = attr_pair(op, TN_KEY_DILATIONS, {1, 1});
  p.lo = attr_pair(op, TN_KEY_LO, {0, 0});
  p.hi = attr_pair(op, TN_KEY_HI, {0, 0});
  p.groups = attr_i64(op, TN_KEY_GROUPS, 1);
  return p;
}

tn_status check_types(const tn_instance& self, const tn_op& op, const Problem& p, Direction direction, tn_diag* diag) {
  const uint32_t dtype = p.x->dtype;
  if (dtype != TN_F32 && dtype != TN_BF16) return refuse(diag, "element type number %lld; f32 and bf16 are taken", dtype);
  if (p.w->dtype != dtype || p.y->dtype != dtype || (p.bias != nullptr && p.bias->dtype != dtype)) {
    return refuse(diag, "operands of more than one element type");
  }
  if (dtype == TN_BF16 && !self.bf16) return refuse(diag, "bf16 needs AVX-512 here");
  if (dtype == TN_BF16 && (op.math_flags & TN_MATH_SUBNORMAL)) {
    return refuse(diag, "bf16 units flush subnormals, and they are demanded");
  }
  // For few channels the matrix units' kernel multiplies neighbours of a window by 0: a NaN or Inf there would leak in.
  if (dtype == TN_BF16 && direction == Direction::Forward && p.w->rank == 4 && p.w->dim[1] < kFewChannels) {
    return refuse(diag, "%lld input channels a group in bf16: NaN and Inf would leave their windows", p.w->dim[1]);
  }
  for (const tn_type* t : {p.x, p.w, p.y}) {
    if (t->rank != 4) return refuse(diag, "an operand of rank %lld; 4 is taken", t->rank);
    if (!is_dense_or_gapped(*t)) return refuse(diag, "an operand overlaps itself or has a negative or zero stride");
  }
  if (p.bias != nullptr && (p.bias->rank != 1 || !is_dense_or_gapped(*p.bias))) {
    return refuse(diag, "the bias is not a row of numbers");
  }
  if (!is_dense(*p.w)) return refuse(diag, "the weights have gaps");
  return TN_OK;
}

tn_status check_geometry(const Problem& p, tn_diag* diag) {
  for (uint32_t i = 0; i < 2; ++i) {
    if (p.lo[i] < 0 || p.hi[i] < 0) return refuse(diag, "a negative padding of %lld", std::min(p.lo[i], p.hi[i]));
    const int64_t reach = (p.w->dim[2 + i] - 1) * p.dilations[i] + 1;
    const int64_t padded = p.x->dim[2 + i] + p.lo[i] + p.hi[i];
    if (padded < reach || (padded - reach) / p.strides[i] + 1 != p.y->dim[2 + i]) {
      return refuse(diag, "the output's size %lld is not what size, padding and stride give", p.y->dim[2 + i]);
    }
  }
  const bool channels = p.groups > 0 && p.w->dim[1] * p.groups == p.in_channels() && p.w->dim[0] == p.out_channels() &&
                        p.out_channels() % p.groups == 0 && p.x->dim[0] == p.y->dim[0];
  return channels ? TN_OK : refuse(diag, "channels do not fit %lld groups", p.groups);
}

struct Cost {
  double flops = 0, bytes = 0, rate = 0, single_ns = 0;
};

Cost cost_of(const tn_instance& self, const Problem& p) {
  Cost c;
  const double per_output = 2.0 * static_cast<double>(p.w->dim[1] * p.w->dim[2] * p.w->dim[3]);
  c.flops = per_output * static_cast<double>(element_count(*p.y));
  const auto width = static_cast<double>(element_bytes(p.x->dtype));
  const double activations = static_cast<double>(element_count(*p.x) + element_count(*p.y)) * width;
  // A row-major activation is read, reordered, and read again.
  c.bytes = activations * (is_channels_last(*p.x) ? 1 : 3) + static_cast<double>(element_count(*p.w)) * width * 3;
  c.rate = p.x->dtype == TN_F32 ? self.f32_rate : self.bf16_rate / 2;
  // With one input channel oneDNN takes the output's channels as lanes; measured, that is an eighth as good.
  const int64_t narrow = p.in_channels() == 1 ? p.out_channels() / 8 : std::min(p.in_channels(), p.out_channels()) / p.groups;
  const auto lanes = static_cast<double>(narrow);
  c.rate *= std::min(0.9, 0.15 + lanes / 16);
  c.single_ns = 2 * kCallNs + c.flops / c.rate + c.bytes / self.copy_rate;
  return c;
}

tn_status supports(tn_instance* self, const tn_op* op, Direction direction, tn_support* out, tn_diag* diag) {
  if (tn_status s = check_common(*op, diag); s < 0) return s;
  const Problem p = assign(*op, direction);
  if (tn_status s = check_types(*self, *op, p, direction, diag); s < 0) return s;
  if (tn_status s = check_geometry(p, diag); s < 0) return s;
  const Cost c = cost_of(*self, p);
  const int threads = useful_threads(*self, c.single_ns);
  fill_support(out, c.single_ns / threads + (threads > 1 ? kWakeNs : 0), c.flops, c.bytes);
  return TN_OK;
}

// ---- building ------------------------------------------------------------------------------------------------------

Dims activation_dims(const tn_type& t, int64_t batch) { return {batch, t.dim[1], t.dim[2], t.dim[3]}; }

// The descriptor of `batch` images of an activation. A tensor of one channel is row-major and channels-last at once:
// take what the primitive wants.
Desc activation_desc(const tn_type& t, int64_t batch, const Desc& want) {
  const Dims dims = activation_dims(t, batch);
  const auto type = to_dnnl(t.dtype);
  const Desc last(dims, type, Tag::nhwc), first(dims, type, Tag::nchw);
  if (is_channels_last(t) && is_row_major(t)) return want == first ? first : last;
  if (is_channels_last(t)) return last;
  if (is_row_major(t)) return first;
  return Desc(dims, type, {t.stride[0], t.stride[1], t.stride[2], t.stride[3]});
}

Dims weight_dims(const Problem& p) {
  if (p.groups == 1) return {p.w->dim[0], p.w->dim[1], p.w->dim[2], p.w->dim[3]};
  return {p.groups, p.w->dim[0] / p.groups, p.w->dim[1], p.w->dim[2], p.w->dim[3]};
}

// The weights' own layout, in an element type that may differ (partial sums are f32).
Desc weight_desc(const Problem& p, uint32_t dtype) {
  const tn_type& w = *p.w;
  if (is_row_major(w)) return Desc(weight_dims(p), to_dnnl(dtype), p.groups == 1 ? Tag::oihw : Tag::goihw);
  Dims strides{w.stride[0], w.stride[1], w.stride[2], w.stride[3]};
  if (p.groups > 1) strides.insert(strides.begin(), w.stride[0] * (w.dim[0] / p.groups));
  return Desc(weight_dims(p), to_dnnl(dtype), strides);
}

ConvGeometry geometry(const Problem& p) {
  return {{p.strides[0], p.strides[1]},
          {p.dilations[0] - 1, p.dilations[1] - 1},
          {p.lo[0], p.lo[1]},
          {p.hi[0], p.hi[1]}};
}

// The layout asked of oneDNN for activations; see the head of conv2d.h.
Tag preferred(const Problem& p, Direction direction) {
  if (direction == Direction::WeightGrad) return Tag::nhwc;
  const bool narrow_first = p.in_channels() <= 3 && p.out_channels() < 16;
  if (direction == Direction::Forward && narrow_first) return Tag::any;
  return is_channels_last(*p.x) ? Tag::nhwc : Tag::any;
}

// One shard: `batch` images from `begin` on.
struct Slice {
  int64_t begin = 0, batch = 0;
};

struct Maker {
  const dnnl::engine& engine;
  const Problem& p;
  RecipeBuilder& r;
  Direction direction;
  Slice slice;

  Desc wanted(const tn_type& t) const {
    return Desc(activation_dims(t, slice.batch), to_dnnl(t.dtype), preferred(p, direction));
  }
  Desc any_weights() const { return any_weights(p.w->dtype); }
  Desc any_weights(uint32_t dtype) const { return Desc(weight_dims(p), to_dnnl(dtype), Tag::any); }

  dnnl::convolution_forward::primitive_desc forward() const {
    const Desc bias = p.bias != nullptr ? Desc({p.out_channels()}, to_dnnl(p.bias->dtype), Tag::a) : Desc();
    return make_conv(engine, dnnl::prop_kind::forward_training, wanted(*p.x), any_weights(), bias, wanted(*p.y),
                     geometry(p), user_scratchpad());
  }

  uint32_t activation(const tn_type& t, uint32_t view, const Desc& want) const {
    const auto offset = static_cast<uint64_t>(slice.begin * t.stride[0]) * element_bytes(t.dtype);
    return r.region(activation_desc(t, slice.batch, want), view, offset);
  }

  void add_forward() const {
    const auto pd = forward();
    const uint32_t x = r.reordered(activation(*p.x, p.x_view, pd.src_desc()), pd.src_desc());
    const uint32_t w = r.reordered(r.region(weight_desc(p, p.w->dtype), p.w_view), pd.weights_desc());
    const uint32_t user_y = activation(*p.y, p.y_view, pd.dst_desc());
    const uint32_t y = r.output_for(user_y, pd.dst_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
    if (p.bias != nullptr) {
      const Desc user({p.out_channels()}, to_dnnl(p.bias->dtype), Dims{p.bias->dim[0] == 1 ? 1 : p.bias->stride[0]});
      arguments.push_back({DNNL_ARG_BIAS, r.reordered(r.region(user, p.bias_view), pd.bias_desc())});
    }
    r.add(dnnl::convolution_forward(pd), pd.scratchpad_desc(), std::move(arguments));
    r.finish_output(y, user_y);
  }

  void add_input_grad() const {
    const auto pd = make_conv_input_grad(engine, wanted(*p.x), any_weights(), wanted(*p.y), geometry(p), forward(),
                                         user_scratchpad());
    const uint32_t y = r.reordered(activation(*p.y, p.y_view, pd.diff_dst_desc()), pd.diff_dst_desc());
    const uint32_t w = r.reordered(r.region(weight_desc(p, p.w->dtype), p.w_view), pd.weights_desc());
    const uint32_t user_x = activation(*p.x, p.x_view, pd.diff_src_desc());
    const uint32_t x = r.output_for(user_x, pd.diff_src_desc());
    r.add(dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
          {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, x}});
    r.finish_output(x, user_x);
  }

  // view, offset, dtype: where this shard's sum goes: the output itself, or f32 in the workspace.
  void add_weight_grad(uint32_t view, uint64_t offset, uint32_t dtype) const {
    const auto pd = make_conv_weight_grad(engine, wanted(*p.x), any_weights(dtype), wanted(*p.y), geometry(p), forward(),
                                          user_scratchpad());
    const uint32_t x = r.reordered(activation(*p.x, p.x_view, pd.src_desc()), pd.src_desc());
    const uint32_t y = r.reordered(activation(*p.y, p.y_view, pd.diff_dst_desc()), pd.diff_dst_desc());
    const uint32_t user_w = r.region(weight_desc(p, dtype), view, offset);
    const uint32_t w = r.output_for(user_w, pd.diff_weights_desc());
    r.add(dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(),
          {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_DIFF_WEIGHTS, w}});
    r.finish_output(w, user_w);
  }
};

std::vector<Slice> cut_batch(int64_t batch, int shards) {
  std::vector<Slice> slices;
  const int64_t step = (batch + shards - 1) / shards;
  for (int64_t begin = 0; begin < batch; begin += step) slices.push_back({begin, std::min(step, batch - begin)});
  return slices;
}

void build_weight_grad(tn_instance& self, const Problem& p, RecipeBuilder& r, const std::vector<Slice>& slices) {
  Gather sum;
  sum.view = p.w_view;
  sum.dtype = p.w->dtype;
  sum.elements = element_count(*p.w);
  sum.parts = static_cast<uint32_t>(slices.size());
  sum.part_bytes = (static_cast<uint64_t>(sum.elements) * sizeof(float) + 63) & ~uint64_t{63};
  if (sum.parts > 1) sum.offset_bytes = r.reserve(sum.part_bytes * sum.parts);
  for (uint32_t i = 0; i < sum.parts; ++i) {
    r.begin_shard();
    const Maker maker{self.engine, p, r, Direction::WeightGrad, slices[i]};
    if (sum.parts == 1) {
      maker.add_weight_grad(p.w_view, 0, p.w->dtype);
    } else {
      maker.add_weight_grad(kWorkspace, sum.offset_bytes + i * sum.part_bytes, TN_F32);
    }
  }
  if (sum.parts > 1) r.recipe().gathers.push_back(sum);
}

std::shared_ptr<Recipe> build(tn_instance& self, const tn_op& op, Direction direction) {
  const Problem p = assign(op, direction);
  const int threads = useful_threads(self, cost_of(self, p).single_ns);
  const bool cuttable = p.batch() >= threads;
  const OmpWidth width(cuttable ? 1 : threads);
  RecipeBuilder r(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
  r.recipe().omp_width = cuttable ? 1 : threads;
  const auto slices = cut_batch(p.batch(), cuttable ? threads : 1);
  if (direction == Direction::WeightGrad) {
    build_weight_grad(self, p, r, slices);
    return r.finish();
  }
  for (const Slice& slice : slices) {
    r.begin_shard();
    const Maker maker{self.engine, p, r, direction, slice};
    direction == Direction::Forward ? maker.add_forward() : maker.add_input_grad();
  }
  return r.finish();
}

}  // namespace

tn_status conv2d_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  return supports(self, op, Direction::Forward, out, diag);
}
tn_status conv2d_input_grad_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out,
                                     tn_diag* diag) {
  return supports(self, op, Direction::InputGrad, out, diag);
}
tn_status conv2d_weight_grad_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out,
                                      tn_diag* diag) {
  return supports(self, op, Direction::WeightGrad, out, diag);
}
std::shared_ptr<Recipe> conv2d_build(tn_instance& self, const tn_op& op) { return build(self, op, Direction::Forward); }
std::shared_ptr<Recipe> conv2d_input_grad_build(tn_instance& self, const tn_op& op) {
  return build(self, op, Direction::InputGrad);
}
std::shared_ptr<Recipe> conv2d_weight_grad_build(tn_instance& self, const tn_op& op) {
  return build(self, op, Direction::WeightGrad);
}

}  // namespace tenon::onednn
