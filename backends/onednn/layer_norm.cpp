#include <algorithm>

#include "backends/onednn/norm.h"
#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

using Tag = dnnl::memory::format_tag;
using Flags = dnnl::normalization_flags;

struct Problem {
  int64_t rows = 1, columns = 1;
  bool scale = false, shift = false;
  float epsilon = 0;
};

Problem parse(const tn_op& op) {
  Problem p;
  const tn_type& x = op.type[0];
  const int64_t given = attr_i64(op, TN_KEY_AXIS, -1);
  const int64_t axis = given < 0 ? given + x.rank : given;
  for (int64_t i = 0; i < x.rank; ++i) (i < axis ? p.rows : p.columns) *= x.dim[i];
  p.scale = !absent(op.type[1]), p.shift = !absent(op.type[2]);
  p.epsilon = static_cast<float>(attr_f64(op, TN_KEY_EPSILON, 1e-5));
  return p;
}

double bytes_of(const Problem& p) { return 8.0 * static_cast<double>(p.rows * p.columns); }

}  // namespace

tn_status layer_norm_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (tn_status s = check_common(*op, diag); s < 0) return s;
  const Problem p = parse(*op);
  for (uint32_t i = 0; i < static_cast<uint32_t>(op->n_in + op->n_out); ++i) {
    const tn_type& t = op->type[i];
    if (absent(t)) continue;
    if (t.dtype != TN_F32) return refuse(diag, "operand %lld is not f32", i);
    if (!is_row_major(t)) return refuse(diag, "operand %lld is not row-major", i);
  }
  for (uint32_t i : {1u, 2u}) {
    if (!absent(op->type[i]) && element_count(op->type[i]) != p.columns) {
      return refuse(diag, "scale or bias does not have the %lld elements of a row", p.columns);
    }
  }
  const double ns = estimate_ns(*self, 8.0 * static_cast<double>(p.rows * p.columns), self->f32_rate / 4, bytes_of(p), 1);
  const int threads = useful_threads(*self, ns);
  fill_support(out, ns / threads + (threads > 1 ? kWakeNs : 0), bytes_of(p), bytes_of(p));
  return TN_OK;
}

std::shared_ptr<Recipe> layer_norm_build(tn_instance& self, const tn_op& op) {
  const Problem p = parse(op);
  const double ns = estimate_ns(self, 8.0 * static_cast<double>(p.rows * p.columns), self.f32_rate / 4, bytes_of(p), 1);
  const int64_t shards = std::min<int64_t>(p.rows, useful_threads(self, ns));
  const int64_t step = (p.rows + shards - 1) / shards;
  const OmpWidth width(1);
  RecipeBuilder r(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
  const uint32_t y = op.n_in, mean = y + 1, rstd = y + 2;
  Flags flags = Flags::none;
  if (p.scale) flags = flags | Flags::use_scale;
  if (p.shift) flags = flags | Flags::use_shift;
  using Type = dnnl::memory::data_type;
  const Desc row({p.columns}, Type::f32, Tag::a);
  for (int64_t begin = 0; begin < p.rows; begin += step) {
    const int64_t count = std::min(step, p.rows - begin);
    const auto at = static_cast<uint64_t>(begin) * sizeof(float);
    const uint64_t data_at = at * static_cast<uint64_t>(p.columns);
    const Desc data({count, p.columns}, Type::f32, Tag::ab), statistics({count}, Type::f32, Tag::a);
    r.begin_shard();
    const auto pd = make_layer_norm(self.engine, data, statistics, p.epsilon, flags, user_scratchpad());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, r.region(data, 0, data_at)},
                                    {DNNL_ARG_DST, r.region(data, y, data_at)},
                                    {DNNL_ARG_MEAN, r.region(statistics, mean, at)},
                                    {DNNL_ARG_VARIANCE, r.region(statistics, rstd, at)}};
    if (p.scale) arguments.push_back({DNNL_ARG_SCALE, r.region(row, 1)});
    if (p.shift) arguments.push_back({DNNL_ARG_SHIFT, r.region(row, 2)});
    r.add(dnnl::layer_normalization_forward(pd), pd.scratchpad_desc(), std::move(arguments));
    r.shard().roots.push_back({rstd, at, count, p.epsilon});
  }
  return r.finish();
}

}  // namespace tenon::onednn
