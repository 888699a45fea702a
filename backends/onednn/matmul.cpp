#include "backends/onednn/matmul.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "backends/onednn/epilogue.h"
#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

constexpr uint32_t kMaxBatch = TN_MAX_RANK - 2;
constexpr int64_t kRowBlock = 32;  // shards start on multiples, so that oneDNN's blocks stay whole

struct Matrix {
  std::array<int64_t, kMaxBatch> batch{};  // strides; 0 = broadcast
  int64_t row = 0, column = 0;             // strides
  uint32_t dtype = 0, view = 0;
};

// out[batch, m, n] = a[batch, m, k] b[batch, k, n]; strides in elements.
struct Problem {
  uint32_t batch_rank = 0;
  std::array<int64_t, kMaxBatch> batch{};
  int64_t m = 1, n = 1, k = 1;
  Matrix a, b, out;
  Epilogue epilogue;
  uint32_t bias_view = 0;
  int64_t batch_count() const {
    int64_t count = 1;
    for (uint32_t i = 0; i < batch_rank; ++i) count *= batch[i];
    return count;
  }
};

int64_t batch_stride(const tn_type& t, uint32_t out_rank, uint32_t axis) {
  const uint32_t missing = out_rank - t.rank;
  if (axis < missing || t.dim[axis - missing] == 1) return 0;
  return t.stride[axis - missing];
}

// Appends a batch axis, merging it into the one before where all three operands allow it.
void add_batch_axis(Problem& p, int64_t dim, int64_t a, int64_t b, int64_t out) {
  if (dim == 1) return;
  if (p.batch_rank > 0) {
    const uint32_t last = p.batch_rank - 1;
    if (p.a.batch[last] == a * dim && p.b.batch[last] == b * dim && p.out.batch[last] == out * dim) {
      p.batch[last] *= dim;
      p.a.batch[last] = a, p.b.batch[last] = b, p.out.batch[last] = out;
      return;
    }
  }
  const uint32_t next = p.batch_rank++;
  p.batch[next] = dim;
  p.a.batch[next] = a, p.b.batch[next] = b, p.out.batch[next] = out;
}

// A batch over which b is constant is more rows of a.
void fold_batch_into_rows(Problem& p) {
  while (p.batch_rank > 0) {
    const uint32_t last = p.batch_rank - 1;
    const bool one_row = p.m == 1;
    const bool folds = p.b.batch[last] == 0 && (one_row || (p.a.batch[last] == p.m * p.a.row && p.a.row > 0)) &&
                       (one_row || p.out.batch[last] == p.m * p.out.row);
    if (!folds || p.a.batch[last] == 0) return;
    if (one_row) p.a.row = p.a.batch[last], p.out.row = p.out.batch[last];
    p.m *= p.batch[last];
    --p.batch_rank;
  }
}

// Strides of axes of size 1 are free: choose those that make the matrix regular.
bool regularise(Matrix& x, int64_t rows, int64_t columns) {
  if (columns == 1) {
    x.column = 1;
    if (rows == 1) x.row = 1;
    return x.row >= 1;
  }
  if (rows == 1) {
    x.row = x.column == 1 ? columns : 1;
    return x.column >= 1;
  }
  if (x.column == 1) return x.row >= columns;
  return x.row == 1 && x.column >= rows;
}

tn_status check_matrix(Matrix& x, const Problem& p, int64_t rows, int64_t columns, tn_diag* diag) {
  if (!regularise(x, rows, columns)) {
    return refuse(diag, "operand %lld: neither of the last two axes has stride 1 with the other beyond it", x.view);
  }
  tn_type t{};
  t.rank = static_cast<uint8_t>(p.batch_rank + 2);
  for (uint32_t i = 0; i < p.batch_rank; ++i) {
    t.dim[i] = x.batch[i] == 0 ? 1 : p.batch[i];
    t.stride[i] = x.batch[i];
  }
  t.dim[p.batch_rank] = rows, t.stride[p.batch_rank] = x.row;
  t.dim[p.batch_rank + 1] = columns, t.stride[p.batch_rank + 1] = x.column;
  if (!is_dense_or_gapped(t)) return refuse(diag, "operand %lld overlaps itself or has a negative stride", x.view);
  return TN_OK;
}

tn_status check_dtypes(const tn_instance& self, const tn_op& op, const Problem& p, tn_diag* diag) {
  const uint32_t a = p.a.dtype, b = p.b.dtype, out = p.out.dtype;
  if (a == TN_F32 && b == TN_F32 && out == TN_F32) return TN_OK;
  if (a == TN_BF16 && b == TN_BF16 && (out == TN_BF16 || out == TN_F32)) {
    if (!self.bf16) return refuse(diag, "bf16 needs AVX-512 here");
    if (op.math_flags & TN_MATH_SUBNORMAL) return refuse(diag, "bf16 units flush subnormals, and they are demanded");
    return TN_OK;
  }
  if ((a == TN_U8 || a == TN_I8) && b == TN_I8 && out == TN_I32) {
    return self.int8 ? TN_OK : refuse(diag, "exact 8-bit products need VNNI, which this processor lacks");
  }
  char text[96];
  std::snprintf(text, sizeof text, "element types %s x %s -> %s", dtype_name(a), dtype_name(b), dtype_name(out));
  return refuse(diag, text);
}

// bias [n] along the last axis, dense, broadcast over all others.
tn_status check_bias(const tn_type& t, int64_t n, uint32_t dtype, tn_diag* diag) {
  if (t.dtype != dtype) return refuse(diag, "the bias operand's element type is not the program's");
  for (uint32_t i = 0; i + 1 < t.rank; ++i) {
    if (t.dim[i] != 1 && t.stride[i] != 0) return refuse(diag, "the bias varies along axis %lld; only the last may", i);
  }
  const bool fits = t.rank >= 1 && t.dim[t.rank - 1] == n && (n == 1 || t.stride[t.rank - 1] == 1);
  return fits ? TN_OK : refuse(diag, "the bias is not a dense row of %lld elements", n);
}

tn_status finish_problem(const tn_instance& self, const tn_op& op, Problem& p, tn_diag* diag) {
  if (tn_status s = check_dtypes(self, op, p, diag); s < 0) return s;
  if (tn_status s = check_depth(p.a.dtype, p.k, diag); s < 0) return s;
  fold_batch_into_rows(p);
  if (tn_status s = check_matrix(p.a, p, p.m, p.k, diag); s < 0) return s;
  if (tn_status s = check_matrix(p.b, p, p.k, p.n, diag); s < 0) return s;
  if (!is_row_major(output(op))) return refuse(diag, "the output is not row-major");
  p.out.row = p.n, p.out.column = 1;
  return TN_OK;
}

tn_status parse_matmul(const tn_instance& self, const tn_op& op, Problem& p, tn_diag* diag) {
  if (tn_status s = check_common(op, diag); s < 0) return s;
  const tn_type &a = op.type[0], &b = op.type[1], &out = output(op);
  if (a.rank < 2 || b.rank < 2) return refuse(diag, "a rank below 2");
  p.a.dtype = a.dtype, p.b.dtype = b.dtype, p.out.dtype = out.dtype;
  p.a.view = 0, p.b.view = 1, p.out.view = op.n_in;
  for (uint32_t i = 0; i + 2 < out.rank; ++i) {
    add_batch_axis(p, out.dim[i], batch_stride(a, out.rank, i), batch_stride(b, out.rank, i), out.stride[i]);
  }
  p.m = a.dim[a.rank - 2], p.k = a.dim[a.rank - 1], p.n = b.dim[b.rank - 1];
  p.a.row = a.stride[a.rank - 2], p.a.column = a.stride[a.rank - 1];
  p.b.row = b.stride[b.rank - 2], p.b.column = b.stride[b.rank - 1];
  p.out.row = p.n, p.out.column = 1;
  const tn_program* post = attr_program(op, TN_KEY_POST);
  if (post != nullptr && out.dtype == TN_I32) return refuse(diag, "no epilogue on integer accumulators");
  if (tn_status s = match_epilogue(post, out.dtype, &p.epilogue, diag); s < 0) return s;
  if (p.epilogue.has_bias) {
    p.bias_view = 2;
    if (tn_status s = check_bias(op.type[2], p.n, p.epilogue.bias_dtype, diag); s < 0) return s;
  }
  return finish_problem(self, op, p, diag);
}

tn_status parse_linear(const tn_instance& self, const tn_op& op, Problem& p, tn_diag* diag) {
  if (tn_status s = check_common(op, diag); s < 0) return s;
  const tn_type &x = op.type[0], &w = op.type[1], &out = output(op);
  if (x.rank < 1 || x.rank > kMaxBatch || w.rank != 2) return refuse(diag, "ranks that oneDNN's matmul does not take");
  p.a.dtype = x.dtype, p.b.dtype = w.dtype, p.out.dtype = out.dtype;
  p.a.view = 0, p.b.view = 1, p.out.view = op.n_in;
  for (uint32_t i = 0; i + 1 < x.rank; ++i) add_batch_axis(p, out.dim[i], batch_stride(x, x.rank, i), 0, out.stride[i]);
  p.m = 1, p.k = w.dim[1], p.n = w.dim[0];
  p.a.column = x.stride[x.rank - 1];
  p.b.row = w.stride[1], p.b.column = w.stride[0];
  if (op.n_in > 2 && !absent(op.type[2])) {
    p.epilogue.has_bias = true, p.epilogue.bias_dtype = op.type[2].dtype, p.bias_view = 2;
    if (tn_status s = check_bias(op.type[2], p.n, x.dtype, diag); s < 0) return s;
  }
  return finish_problem(self, op, p, diag);
}

struct Cost {
  double flops = 0, bytes = 0, single_ns = 0, rate = 0;
};

Cost cost_of(const tn_instance& self, const Problem& p) {
  Cost c;
  const auto batch = static_cast<double>(p.batch_count());
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  c.flops = 2 * batch * m * n * k;
  const auto width = static_cast<double>(element_bytes(p.a.dtype));
  c.bytes = batch * ((m * k + k * n) * width + m * n * static_cast<double>(element_bytes(p.out.dtype)));
  c.rate = p.a.dtype == TN_F32 ? self.f32_rate : p.a.dtype == TN_BF16 ? self.bf16_rate : self.int8_rate;
  // Narrow types run near the tiles' own speed while all of b stays in the second-level cache; beyond, b is fetched anew.
  const double b_bytes = static_cast<double>(p.k) * static_cast<double>(p.n) * (p.a.dtype == TN_BF16 ? 2 : 1);
  if (p.a.dtype != TN_F32 && b_bytes <= 512 * 1024) c.rate *= p.a.dtype == TN_BF16 ? 1.6 : 1.9;
  // Blocks are about 16 columns wide; packing narrow types costs on short sides.
  const double short_side = std::min({m, n, k});
  c.rate *= std::min(1.0, (short_side + 2) / (p.a.dtype == TN_F32 ? 18 : 66));
  c.single_ns = estimate_ns(self, c.flops, c.rate, c.bytes, 1);
  return c;
}

tn_status answer(const tn_instance& self, const Problem& p, tn_support* out) {
  const Cost c = cost_of(self, p);
  fill_support(out, estimate_ns(self, c.flops, c.rate, c.bytes, useful_threads(self, c.single_ns)), c.flops, c.bytes);
  return TN_OK;
}

// A shard's part of the problem: offsets are added to the operands' start, in elements.
struct Part {
  Problem p;
  int64_t a = 0, b = 0, out = 0, bias = 0;
};

Part cut(const Problem& p, int64_t Problem::*side, int64_t begin, int64_t size) {
  Part part{p};
  part.p.*side = size;
  if (side == &Problem::m) part.a = begin * p.a.row, part.out = begin * p.out.row;
  if (side == &Problem::n) part.b = begin * p.b.column, part.out = begin, part.bias = begin;
  return part;
}

std::vector<Part> cut_side(const Problem& p, int64_t Problem::*side, int shards) {
  std::vector<Part> parts;
  const int64_t length = p.*side;
  int64_t step = (length + shards - 1) / shards;
  step = (step + kRowBlock - 1) / kRowBlock * kRowBlock;
  for (int64_t begin = 0; begin < length; begin += step) {
    parts.push_back(cut(p, side, begin, std::min(step, length - begin)));
  }
  return parts;
}

std::vector<Part> cut_batch(const Problem& p, int shards) {
  std::vector<Part> parts;
  const int64_t step = (p.batch[0] + shards - 1) / shards;
  for (int64_t begin = 0; begin < p.batch[0]; begin += step) {
    Part part{p};
    part.p.batch[0] = std::min(step, p.batch[0] - begin);
    part.a = begin * p.a.batch[0], part.b = begin * p.b.batch[0], part.out = begin * p.out.batch[0];
    parts.push_back(part);
  }
  return parts;
}

// Rows first: each shard then reads all of b but only its own a. Columns when there are too few rows.
std::vector<Part> cut_problem(const Problem& p, int shards) {
  if (shards == 1) return {Part{p}};
  if (p.batch_rank > 0) return p.batch[0] >= shards ? cut_batch(p, shards) : std::vector<Part>{Part{p}};
  if (p.m >= shards * kRowBlock || p.n < shards * kRowBlock) return cut_side(p, &Problem::m, shards);
  return cut_side(p, &Problem::n, shards);
}

Desc matrix_desc(const Problem& p, const Matrix& x, int64_t rows, int64_t columns) {
  Dims dims, strides;
  for (uint32_t i = 0; i < p.batch_rank; ++i) {
    dims.push_back(x.batch[i] == 0 ? 1 : p.batch[i]);
    strides.push_back(x.batch[i] == 0 ? rows * columns : x.batch[i]);
  }
  dims.insert(dims.end(), {rows, columns});
  strides.insert(strides.end(), {x.row, x.column});
  return Desc(dims, to_dnnl(x.dtype), strides);
}

Desc bias_desc(const Problem& p) {
  Dims dims(p.batch_rank + 2, 1), strides(p.batch_rank + 2, p.n);
  dims.back() = p.n;
  strides.back() = 1;
  return Desc(dims, to_dnnl(p.epilogue.bias_dtype), strides);
}

void add_clamps(RecipeBuilder& r, const Part& part) {
  const Problem& p = part.p;
  if (!p.epilogue.has_clamp) return;
  Clamp c{p.epilogue.clamp_rule, p.out.view, p.out.dtype, p.epilogue.clamp_slot,
          static_cast<uint64_t>(part.out) * element_bytes(p.out.dtype)};
  c.rows = p.batch_count() * p.m;  // the output is row-major: a batch goes on where the one before ends
  c.columns = p.n;
  c.row_stride = p.out.row;
  r.shard().clamps.push_back(c);
}

void add_part(RecipeBuilder& r, const dnnl::engine& engine, const Part& part) {
  const Problem& p = part.p;
  const auto region = [&](const Desc& desc, uint32_t view, int64_t offset, uint32_t dtype) {
    return r.region(desc, view, static_cast<uint64_t>(offset) * element_bytes(dtype));
  };
  r.begin_shard();
  const Desc a = matrix_desc(p, p.a, p.m, p.k), b = matrix_desc(p, p.b, p.k, p.n), out = matrix_desc(p, p.out, p.m, p.n);
  const Desc bias = p.epilogue.has_bias ? bias_desc(p) : Desc();
  const auto pd = make_matmul(engine, a, b, bias, out, user_scratchpad());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, region(a, p.a.view, part.a, p.a.dtype)},
                                  {DNNL_ARG_WEIGHTS, region(b, p.b.view, part.b, p.b.dtype)},
                                  {DNNL_ARG_DST, region(out, p.out.view, part.out, p.out.dtype)}};
  if (p.epilogue.has_bias) {
    arguments.push_back({DNNL_ARG_BIAS, region(bias, p.bias_view, part.bias, p.epilogue.bias_dtype)});
  }
  r.add(dnnl::matmul(pd), pd.scratchpad_desc(), std::move(arguments));
  add_clamps(r, part);
}

std::shared_ptr<Recipe> build(tn_instance& self, const tn_op& op, const Problem& p) {
  const OmpWidth width(1);
  RecipeBuilder r(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
  for (const Part& part : cut_problem(p, useful_threads(self, cost_of(self, p).single_ns))) add_part(r, self.engine, part);
  return r.finish();
}

}  // namespace

tn_status matmul_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  Problem p;
  const tn_status status = parse_matmul(*self, *op, p, diag);
  return status < 0 ? status : answer(*self, p, out);
}

std::shared_ptr<Recipe> matmul_build(tn_instance& self, const tn_op& op) {
  Problem p;
  if (parse_matmul(self, op, p, nullptr) < 0) throw std::invalid_argument("the call was refused by supports");
  return build(self, op, p);
}

tn_status linear_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  Problem p;
  const tn_status status = parse_linear(*self, *op, p, diag);
  return status < 0 ? status : answer(*self, p, out);
}

std::shared_ptr<Recipe> linear_build(tn_instance& self, const tn_op& op) {
  Problem p;
  if (parse_linear(self, op, p, nullptr) < 0) throw std::invalid_argument("the call was refused by supports");
  return build(self, op, p);
}

}  // namespace tenon::onednn
