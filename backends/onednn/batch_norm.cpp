#include <algorithm>

#include "backends/onednn/norm.h"
#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

using Tag = dnnl::memory::format_tag;
using Flags = dnnl::normalization_flags;
using Type = dnnl::memory::data_type;

constexpr double kPassesForward = 3, kPassesGrad = 5, kPassesInfer = 2;  // over the data, reading or writing

// Operand i is per-channel: f32 [C], dense.
tn_status check_channels(const tn_op& op, uint32_t i, int64_t channels, tn_diag* diag) {
  const tn_type& t = op.type[i];
  if (absent(t)) return TN_OK;
  const bool fits = t.dtype == TN_F32 && element_count(t) == channels && is_row_major(t);
  return fits ? TN_OK : refuse(diag, "operand %lld is not a dense f32 row, one element a channel", i);
}

bool is_data_last(const tn_type& t) { return t.rank == 2 ? is_row_major(t) : is_channels_last(t); }

// The data operands `list` share x's layout.
template <size_t n>
tn_status check_data(const tn_op& op, const uint32_t (&list)[n], tn_diag* diag) {
  if (tn_status s = check_common(op, diag); s < 0) return s;
  bool last = true, first = true;
  for (uint32_t i : list) {
    const tn_type& t = op.type[i];
    if (t.dtype != TN_F32) return refuse(diag, "operand %lld is not f32", i);
    if (t.rank != 2 && t.rank != 4) return refuse(diag, "a rank of %lld; 2 and 4 are taken", t.rank);
    last = last && is_data_last(t), first = first && is_row_major(t);
  }
  return last || first ? TN_OK : refuse(diag, "the operands are neither all row-major nor all channels-last");
}

tn_status answer(const tn_instance& self, const tn_op& op, double passes, bool cuttable, tn_support* out) {
  const tn_type& x = op.type[0];
  const double layout = is_data_last(x) ? 1 : 3;  // oneDNN's row-major code is that much slower
  const double bytes = 4.0 * passes * static_cast<double>(element_count(x));
  const double ns = kCallNs + layout * bytes / self.copy_rate;
  const int threads = cuttable ? useful_threads(self, ns) : 1;
  fill_support(out, ns / threads + (threads > 1 ? kWakeNs : 0), bytes, bytes);
  return TN_OK;
}

// x as [batch, C, H, W] in its own layout. One value a channel counts as channels-last.
Desc data_desc(const tn_type& x, int64_t batch) {
  const int64_t h = x.rank == 4 ? x.dim[2] : 1, w = x.rank == 4 ? x.dim[3] : 1;
  return Desc({batch, x.dim[1], h, w}, Type::f32, is_data_last(x) ? Tag::nhwc : Tag::nchw);
}

Flags flags_of(const tn_op& op, bool shift_matters) {
  Flags flags = Flags::none;
  if (!absent(op.type[1])) flags = flags | Flags::use_scale;
  if (shift_matters && !absent(op.type[2])) flags = flags | Flags::use_shift;
  return flags;
}

float epsilon_of(const tn_op& op) { return static_cast<float>(attr_f64(op, TN_KEY_EPSILON, 1e-5)); }

RecipeBuilder start(tn_instance& self, const tn_op& op) {
  return RecipeBuilder(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
}

}  // namespace

// ---- training: x, scale?, bias? -> y, mean, variance -------------------------------------------------------------------
tn_status batch_norm_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  const uint32_t data[] = {0, op->n_in};
  if (tn_status s = check_data(*op, data, diag); s < 0) return s;
  for (uint32_t i : {1u, 2u, op->n_in + 1u, op->n_in + 2u}) {
    if (tn_status s = check_channels(*op, i, op->type[0].dim[1], diag); s < 0) return s;
  }
  return answer(*self, *op, kPassesForward, false, out);
}

std::shared_ptr<Recipe> batch_norm_build(tn_instance& self, const tn_op& op) {
  const OmpWidth width(1);
  RecipeBuilder r = start(self, op);
  r.begin_shard();
  const tn_type& x = op.type[0];
  const Desc data = data_desc(x, x.dim[0]), row({x.dim[1]}, Type::f32, Tag::a);
  const auto pd = make_batch_norm(self.engine, dnnl::prop_kind::forward_training, data, epsilon_of(op),
                                  flags_of(op, true), user_scratchpad());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, r.region(data, 0)},
                                  {DNNL_ARG_DST, r.region(data, op.n_in)},
                                  {DNNL_ARG_MEAN, r.region(row, op.n_in + 1u)},
                                  {DNNL_ARG_VARIANCE, r.region(row, op.n_in + 2u)}};
  if (!absent(op.type[1])) arguments.push_back({DNNL_ARG_SCALE, r.region(row, 1)});
  if (!absent(op.type[2])) arguments.push_back({DNNL_ARG_SHIFT, r.region(row, 2)});
  r.add(dnnl::batch_normalization_forward(pd), pd.scratchpad_desc(), std::move(arguments));
  return r.finish();
}

// ---- gradient: x, scale, mean, variance, dy -> dx, dscale, dbias -------------------------------------------------------
tn_status batch_norm_grad_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out,
                                   tn_diag* diag) {
  const uint32_t data[] = {0, 4, op->n_in};
  if (tn_status s = check_data(*op, data, diag); s < 0) return s;
  if (absent(op->type[1])) return refuse(diag, "no scale: oneDNN then gives no gradients of scale and bias");
  for (uint32_t i : {1u, 2u, 3u, op->n_in + 1u, op->n_in + 2u}) {
    if (tn_status s = check_channels(*op, i, op->type[0].dim[1], diag); s < 0) return s;
  }
  return answer(*self, *op, kPassesGrad, false, out);
}

std::shared_ptr<Recipe> batch_norm_grad_build(tn_instance& self, const tn_op& op) {
  const OmpWidth width(1);
  RecipeBuilder r = start(self, op);
  r.begin_shard();
  const tn_type& x = op.type[0];
  const Desc data = data_desc(x, x.dim[0]), row({x.dim[1]}, Type::f32, Tag::a);
  const Flags flags = Flags::use_scale | Flags::use_shift;
  const auto forward = make_batch_norm(self.engine, dnnl::prop_kind::forward_training, data, epsilon_of(op), flags,
                                       user_scratchpad());
  const auto pd = make_batch_norm_grad(self.engine, data, epsilon_of(op), flags, forward, user_scratchpad());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, r.region(data, 0)},
                                  {DNNL_ARG_SCALE, r.region(row, 1)},
                                  {DNNL_ARG_MEAN, r.region(row, 2)},
                                  {DNNL_ARG_VARIANCE, r.region(row, 3)},
                                  {DNNL_ARG_DIFF_DST, r.region(data, 4)},
                                  {DNNL_ARG_DIFF_SRC, r.region(data, op.n_in)},
                                  {DNNL_ARG_DIFF_SCALE, r.region(row, op.n_in + 1u)},
                                  {DNNL_ARG_DIFF_SHIFT, r.region(row, op.n_in + 2u)}};
  // 2.x counts a shift among the inputs, though no gradient depends on its values; 3.x refuses one.
  if (!kVersion3) arguments.push_back({DNNL_ARG_SHIFT, r.region(row, 1)});
  r.add(dnnl::batch_normalization_backward(pd), pd.scratchpad_desc(), std::move(arguments));
  return r.finish();
}

// ---- inference: x, scale?, bias?, mean, variance -> y ------------------------------------------------------------------
tn_status batch_norm_infer_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out,
                                    tn_diag* diag) {
  const uint32_t data[] = {0, op->n_in};
  if (tn_status s = check_data(*op, data, diag); s < 0) return s;
  for (uint32_t i : {1u, 2u, 3u, 4u}) {
    if (tn_status s = check_channels(*op, i, op->type[0].dim[1], diag); s < 0) return s;
  }
  return answer(*self, *op, kPassesInfer, true, out);
}

std::shared_ptr<Recipe> batch_norm_infer_build(tn_instance& self, const tn_op& op) {
  const OmpWidth width(1);
  RecipeBuilder r = start(self, op);
  const tn_type& x = op.type[0];
  const Desc row({x.dim[1]}, Type::f32, Tag::a);
  tn_support cost{};
  answer(self, op, kPassesInfer, false, &cost);
  const int64_t batch = x.dim[0], shards = std::min<int64_t>(batch, useful_threads(self, cost.est_ns));
  const int64_t step = (batch + shards - 1) / shards, image = element_count(x) / batch;
  for (int64_t begin = 0; begin < batch; begin += step) {
    r.begin_shard();
    const Desc data = data_desc(x, std::min(step, batch - begin));
    const auto at = static_cast<uint64_t>(begin * image) * sizeof(float);
    const auto pd = make_batch_norm(self.engine, dnnl::prop_kind::forward_inference, data, epsilon_of(op),
                                    flags_of(op, true) | Flags::use_global_stats, user_scratchpad());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, r.region(data, 0, at)},
                                    {DNNL_ARG_DST, r.region(data, op.n_in, at)},
                                    {DNNL_ARG_MEAN, r.region(row, 3)},
                                    {DNNL_ARG_VARIANCE, r.region(row, 4)}};
    if (!absent(op.type[1])) arguments.push_back({DNNL_ARG_SCALE, r.region(row, 1)});
    if (!absent(op.type[2])) arguments.push_back({DNNL_ARG_SHIFT, r.region(row, 2)});
    r.add(dnnl::batch_normalization_forward(pd), pd.scratchpad_desc(), std::move(arguments));
  }
  return r.finish();
}

}  // namespace tenon::onednn
