#include "backends/onednn/pool2d.h"

#include <algorithm>

#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

struct Problem {
  const tn_type *x, *y;  // of the forward direction
  Pair kernel, strides, lo, hi;
  bool include_pad;
};

Problem parse(const tn_op& op, bool grad) {
  Problem p{};
  p.x = grad ? &output(op) : &op.type[0];
  p.y = grad ? &op.type[0] : &output(op);
  p.kernel = attr_pair(op, TN_KEY_KERNEL, {1, 1});
  p.strides = attr_pair(op, TN_KEY_STRIDES, {1, 1});
  p.lo = attr_pair(op, TN_KEY_LO, {0, 0});
  p.hi = attr_pair(op, TN_KEY_HI, {0, 0});
  p.include_pad = attr_i64(op, TN_KEY_INCLUDE_PAD, 0) != 0;
  return p;
}

tn_status check(const tn_instance& self, const tn_op& op, const Problem& p, tn_diag* diag) {
  if (tn_status s = check_common(op, diag); s < 0) return s;
  const uint32_t dtype = p.x->dtype;
  if (p.x->rank != 4 || p.y->rank != 4 || p.y->dtype != dtype) return refuse(diag, "operands are not 4-D of one element type");
  if (dtype != TN_F32 && dtype != TN_BF16) return refuse(diag, "element type number %lld; f32 and bf16 are taken", dtype);
  if (dtype == TN_BF16 && !self.bf16) return refuse(diag, "bf16 needs AVX-512 here");
  if (dtype == TN_BF16 && (op.math_flags & TN_MATH_SUBNORMAL)) return refuse(diag, "bf16 code flushes subnormals");
  const bool last = is_channels_last(*p.x) && is_channels_last(*p.y), first = is_row_major(*p.x) && is_row_major(*p.y);
  if (!last && !first) return refuse(diag, "the operands are neither both row-major nor both channels-last");
  const Pair dilations = attr_pair(op, TN_KEY_DILATIONS, {1, 1});
  for (uint32_t i = 0; i < 2; ++i) {
    if (dilations[i] != 1) return refuse(diag, "a dilation of %lld; 1 is taken", dilations[i]);
    if (p.lo[i] < 0 || p.hi[i] < 0 || p.lo[i] >= p.kernel[i] || p.hi[i] >= p.kernel[i]) {
      return refuse(diag, "padding must be less than the kernel's %lld", p.kernel[i]);
    }
    const int64_t padded = p.x->dim[2 + i] + p.lo[i] + p.hi[i];
    if (padded < p.kernel[i] || (padded - p.kernel[i]) / p.strides[i] + 1 != p.y->dim[2 + i]) {
      return refuse(diag, "the output's size %lld is not what size, padding and stride give", p.y->dim[2 + i]);
    }
  }
  return TN_OK;
}

double bytes_of(const Problem& p) {
  return static_cast<double>((element_count(*p.x) + element_count(*p.y))) * static_cast<double>(element_bytes(p.x->dtype));
}

double single_ns(const tn_instance& self, const Problem& p) {
  const double flops = static_cast<double>(element_count(*p.y) * p.kernel[0] * p.kernel[1]);
  return estimate_ns(self, flops, self.f32_rate / 16, bytes_of(p), 1);
}

tn_status supports(tn_instance* self, const tn_op* op, bool grad, tn_support* out, tn_diag* diag) {
  const Problem p = parse(*op, grad);
  if (tn_status s = check(*self, *op, p, diag); s < 0) return s;
  if (grad && p.x->dtype == TN_BF16 && (p.kernel[0] > p.strides[0] || p.kernel[1] > p.strides[1])) {
    return refuse(diag, "windows overlap: their shares would be summed in bf16");
  }
  const double ns = single_ns(*self, p);
  const int threads = useful_threads(*self, ns);
  const auto flops = static_cast<double>(element_count(*p.y) * p.kernel[0] * p.kernel[1]);
  fill_support(out, ns / threads + (threads > 1 ? kWakeNs : 0), flops, bytes_of(p));
  return TN_OK;
}

// Images [begin, begin + batch) of a tensor.
Desc image_desc(const tn_type& t, bool last, int64_t batch) {
  return Desc({batch, t.dim[1], t.dim[2], t.dim[3]}, to_dnnl(t.dtype), last ? Tag::nhwc : Tag::nchw);
}

std::shared_ptr<Recipe> build(tn_instance& self, const tn_op& op, bool grad) {
  const Problem p = parse(op, grad);
  const int64_t batch = p.x->dim[0];
  const int64_t shards = std::min<int64_t>(batch, useful_threads(self, single_ns(self, p)));
  const bool last = is_channels_last(*p.x) && is_channels_last(*p.y);
  const PoolGeometry g{p.include_pad ? dnnl::algorithm::pooling_avg_include_padding
                                     : dnnl::algorithm::pooling_avg_exclude_padding,
                       {p.strides[0], p.strides[1]}, {p.kernel[0], p.kernel[1]}, {p.lo[0], p.lo[1]}, {p.hi[0], p.hi[1]}};
  const OmpWidth width(1);
  RecipeBuilder r(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
  const uint32_t x_view = grad ? op.n_in : 0, y_view = grad ? 0 : op.n_in;
  const int64_t step = (batch + shards - 1) / shards;
  for (int64_t begin = 0; begin < batch; begin += step) {
    const int64_t count = std::min(step, batch - begin);
    const auto offset = [&](const tn_type& t) {
      return static_cast<uint64_t>(begin * t.dim[1] * t.dim[2] * t.dim[3]) * element_bytes(t.dtype);
    };
    r.begin_shard();
    const Desc x = image_desc(*p.x, last, count), y = image_desc(*p.y, last, count);
    const auto forward = make_pool(self.engine, x, y, g, user_scratchpad());
    const uint32_t x_region = r.region(x, x_view, offset(*p.x)), y_region = r.region(y, y_view, offset(*p.y));
    if (grad) {
      const auto pd = make_pool_grad(self.engine, x, y, g, forward, user_scratchpad());
      r.add(dnnl::pooling_backward(pd), pd.scratchpad_desc(),
            {{DNNL_ARG_DIFF_DST, y_region}, {DNNL_ARG_DIFF_SRC, x_region}});
    } else {
      r.add(dnnl::pooling_forward(forward), forward.scratchpad_desc(),
            {{DNNL_ARG_SRC, x_region}, {DNNL_ARG_DST, y_region}});
    }
  }
  return r.finish();
}

}  // namespace

tn_status avg_pool2d_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  return supports(self, op, false, out, diag);
}
tn_status avg_pool2d_grad_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out,
                                   tn_diag* diag) {
  return supports(self, op, true, out, diag);
}
std::shared_ptr<Recipe> avg_pool2d_build(tn_instance& self, const tn_op& op) { return build(self, op, false); }
std::shared_ptr<Recipe> avg_pool2d_grad_build(tn_instance& self, const tn_op& op) { return build(self, op, true); }

}  // namespace tenon::onednn
