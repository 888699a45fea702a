#include "backends/onednn/matmul_packed.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "backends/onednn/epilogue.h"
#include "backends/onednn/operand.h"

namespace tenon::onednn {
namespace {

constexpr int64_t kRowBlock = 32, kColumnBlock = 64;

// out[m, n] = a[m, k] b[k, n], b stored in blocks; strides in elements.
struct Problem {
  int64_t m = 1, n = 1, k = 1, a_row = 0;
  uint32_t a_dtype = 0, b_dtype = 0, out_dtype = 0, out_view = 0;
  Epilogue epilogue;
};

dnnl::memory::format_tag tag_of(uint32_t dtype) {
  using Tag = dnnl::memory::format_tag;
  return dtype == TN_F32 ? Tag::BA16a64b : dtype == TN_BF16 ? Tag::BA16a64b2a : Tag::BA16a64b4a;
}

Desc stored_desc(int64_t k, int64_t n, uint32_t dtype) { return Desc({k, n}, to_dnnl(dtype), tag_of(dtype)); }

tn_status check_types(const tn_instance& self, const tn_op& op, const Problem& p, tn_diag* diag) {
  if (p.a_dtype == TN_F32 && p.b_dtype == TN_F32 && p.out_dtype == TN_F32) return TN_OK;
  if (p.a_dtype == TN_BF16 && p.b_dtype == TN_BF16 && (p.out_dtype == TN_BF16 || p.out_dtype == TN_F32)) {
    if (!self.bf16) return refuse(diag, "bf16 needs AVX-512 here");
    return op.math_flags & TN_MATH_SUBNORMAL ? refuse(diag, "bf16 units flush subnormals, and they are demanded") : TN_OK;
  }
  if (p.a_dtype == TN_U8 && p.b_dtype == TN_I8 && p.out_dtype == TN_I32)
    return self.int8 ? TN_OK : refuse(diag, "exact 8-bit products need VNNI, which this processor lacks");
  return refuse(diag, "element types that are not f32, bf16 or u8 by i8");
}

// Leading axes of a become rows where they lie as evenly as its rows do.
tn_status fold_rows(const tn_type& a, Problem& p, tn_diag* diag) {
  p.m = a.dim[a.rank - 2], p.a_row = a.stride[a.rank - 2];
  for (int axis = a.rank - 3; axis >= 0; --axis) {
    if (a.dim[axis] == 1) continue;
    if (p.m == 1) p.a_row = a.stride[axis];
    else if (a.stride[axis] != p.m * p.a_row) return refuse(diag, "axis %lld of a lies apart from its rows", axis);
    p.m *= a.dim[axis];
  }
  if (p.k > 1 && a.stride[a.rank - 1] != 1) return refuse(diag, "rows of a have stride %lld", a.stride[a.rank - 1]);
  if (p.m == 1) p.a_row = p.k;
  return p.a_row >= p.k ? TN_OK : refuse(diag, "rows of a overlap: they are %lld elements apart", p.a_row);
}

tn_status check_bias(const tn_type& t, const Problem& p, tn_diag* diag) {
  if (t.dtype != p.epilogue.bias_dtype) return refuse(diag, "the bias operand's element type is not the program's");
  for (uint32_t i = 0; i + 1 < t.rank; ++i)
    if (t.dim[i] != 1) return refuse(diag, "the bias varies along axis %lld; only the last may", i);
  const bool fits = t.rank >= 1 && t.dim[t.rank - 1] == p.n && (p.n == 1 || t.stride[t.rank - 1] == 1);
  return fits ? TN_OK : refuse(diag, "the bias is not a dense row of %lld elements", p.n);
}

tn_status parse(const tn_instance& self, const tn_op& op, Problem& p, tn_diag* diag) {
  tn_type without_b[TN_PROGRAM_MAX_IN + 2];
  tn_op rest = op;  // b's layout is ours; whatever else holds for all rows is checked on the others
  if (op.n_in > TN_PROGRAM_MAX_IN) return refuse(diag, "%lld inputs", op.n_in);
  std::copy_n(op.type, op.n_in + op.n_out, without_b);
  without_b[1].layout = TN_LAYOUT_STRIDED;
  rest.type = without_b;
  if (tn_status s = check_common(rest, diag); s < 0) return s;
  const tn_type &a = op.type[0], &b = op.type[1], &out = output(op);
  if (a.rank < 2 || b.rank != 2) return refuse(diag, "b has rank %lld, or a below 2; b must be one matrix", b.rank);
  p.k = b.dim[0], p.n = b.dim[1];
  p.a_dtype = a.dtype, p.b_dtype = b.dtype, p.out_dtype = out.dtype, p.out_view = op.n_in;
  if (tn_status s = check_types(self, op, p, diag); s < 0) return s;
  if (tn_status s = check_depth(p.a_dtype, p.k, diag); s < 0) return s;
  if (tn_status s = fold_rows(a, p, diag); s < 0) return s;
  if (!is_row_major(out)) return refuse(diag, "the output is not row-major");
  const tn_program* post = attr_program(op, TN_KEY_POST);
  if (post == nullptr && op.n_in > 2) return refuse(diag, "%lld inputs without a program that reads them", op.n_in);
  if (post != nullptr && out.dtype == TN_I32) return refuse(diag, "no epilogue on integer accumulators");
  if (tn_status s = match_epilogue(post, out.dtype, &p.epilogue, diag); s < 0) return s;
  return p.epilogue.has_bias ? check_bias(op.type[2], p, diag) : TN_OK;
}

double one_thread_ns(const tn_instance& self, const Problem& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const auto width = static_cast<double>(element_bytes(p.a_dtype));
  const double bytes = (m * k + k * n) * width + m * n * static_cast<double>(element_bytes(p.out_dtype));
  if (p.a_dtype == TN_F32) return std::max(2 * m * n * k / (self.f32_rate * 1.02), bytes / (3 * self.copy_rate));
  // Blocks of b are read where they lie, much faster than the rate of a copy.
  const double rate = p.a_dtype == TN_BF16 ? self.bf16_rate * 1.95 : self.int8_rate * 1.75;
  const double fill = std::min(1.0, (std::min(n, k) + 2) / 34);
  return 2 * m * n * k / (rate * fill) + k * n * width / (5 * self.copy_rate);
}

// Below this a second thread gains less than it can lose on a busy machine.
int threads_for(const tn_instance& self, double one_thread_ns) { return one_thread_ns < 60000 ? 1 : useful_threads(self, one_thread_ns); }

// A shard: rows, or whole blocks of columns of b.
struct Part {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
};

std::vector<Part> cut(const Problem& p, int shards) {
  const bool by_rows = shards > 1 && p.m >= shards * kRowBlock;
  const int64_t side = by_rows ? p.m : p.n, block = by_rows ? kRowBlock : kColumnBlock;
  const int64_t step = shards == 1 ? side : ((side + shards - 1) / shards + block - 1) / block * block;
  std::vector<Part> parts;
  for (int64_t at = 0; at < side; at += step) {
    const int64_t size = std::min(step, side - at);
    parts.push_back(by_rows ? Part{at, size, 0, p.n} : Part{0, p.m, at, size});
  }
  return parts;
}

Desc rows_desc(int64_t rows, int64_t columns, int64_t row, uint32_t dtype) { return Desc({rows, columns}, to_dnnl(dtype), {row, 1}); }

dnnl::matmul::primitive_desc make_part(const dnnl::engine& engine, const Problem& p, const Part& part) {
  const Desc bias = p.epilogue.has_bias ? rows_desc(1, part.columns, p.n, p.epilogue.bias_dtype) : Desc();
  return make_matmul(engine, rows_desc(part.rows, p.k, p.a_row, p.a_dtype), stored_desc(p.k, part.columns, p.b_dtype), bias,
                     rows_desc(part.rows, part.columns, p.n, p.out_dtype), user_scratchpad());
}

void add_part(RecipeBuilder& r, const dnnl::engine& engine, const Problem& p, const Part& part) {
  const auto pd = make_part(engine, p, part);
  const auto region = [&](const Desc& desc, uint32_t view, int64_t offset, uint32_t dtype) {
    return r.region(desc, view, static_cast<uint64_t>(offset) * element_bytes(dtype));
  };
  r.begin_shard();
  // Blocks of columns lie one after the other, so a shard's b is a piece of the whole.
  const uint64_t before = part.column == 0 ? 0 : stored_desc(p.k, part.column, p.b_dtype).get_size();
  const int64_t out = part.row * p.n + part.column;
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, region(rows_desc(part.rows, p.k, p.a_row, p.a_dtype), 0, part.row * p.a_row, p.a_dtype)},
      {DNNL_ARG_WEIGHTS, r.region(stored_desc(p.k, part.columns, p.b_dtype), 1, before)},
      {DNNL_ARG_DST, region(rows_desc(part.rows, part.columns, p.n, p.out_dtype), p.out_view, out, p.out_dtype)}};
  if (p.epilogue.has_bias)
    arguments.push_back({DNNL_ARG_BIAS, region(rows_desc(1, part.columns, p.n, p.epilogue.bias_dtype), 2, part.column, p.epilogue.bias_dtype)});
  r.add(dnnl::matmul(pd), pd.scratchpad_desc(), std::move(arguments));
  if (!p.epilogue.has_clamp) return;
  Clamp c{p.epilogue.clamp_rule, p.out_view, p.out_dtype, p.epilogue.clamp_slot, static_cast<uint64_t>(out) * element_bytes(p.out_dtype)};
  c.rows = part.rows, c.columns = part.columns, c.row_stride = p.n;
  r.shard().clamps.push_back(c);
}

// oneDNN takes any layout, some with a loop a hundred times slower than its product for blocked b: no layout to store for.
tn_status check_fast(tn_instance& self, const Problem& asked, tn_diag* diag) {
  for (int64_t m : {int64_t{1}, asked.m}) {
    Problem p = asked;
    p.m = m, p.a_row = p.k;
    const char* name = make_part(self.engine, p, {0, p.m, 0, p.n}).impl_info_str();
    if (std::strncmp(name, "brg", 3) == 0) continue;
    char text[96];
    std::snprintf(text, sizeof text, "with %%lld rows oneDNN would take its slow product %.40s", name);
    return refuse(diag, text, m);
  }
  return TN_OK;
}

tn_status guarded(tn_diag* diag, auto&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, kLibraryFailed, "no memory to store an operand\nwhy: allocation failed\ntry: %s", "free memory and try again");
  } catch (const dnnl::error& e) {
    return fail(diag, e.status == dnnl_out_of_memory ? TN_E_OOM : TN_E_UNSUPPORTED, kLibraryFailed,
                "oneDNN does not store this operand\nwhy: %s (dnnl_status %d)\ntry: %s", e.what(), static_cast<int>(e.status), "use it as it is");
  }
}

tn_status packed_bytes(tn_instance* self, const tn_device_ref*, const tn_op* op, uint64_t* out, tn_diag* diag) {
  Problem p;
  if (tn_status s = parse(*self, *op, p, diag); s < 0) return s;
  if (!is_dense_or_gapped(op->type[1])) return refuse(diag, "b overlaps itself or has a negative stride");
  return guarded(diag, [&] {
    const OmpWidth width(1);
    *out = stored_desc(p.k, p.n, p.b_dtype).get_size();
    return check_fast(*self, p, diag);
  });
}

tn_status pack(tn_instance* self, const tn_device_ref*, const tn_op* op, const tn_view* src, const tn_view* dst, tn_dev_queue*, tn_diag* diag) {
  const tn_type& b = op->type[1];
  return guarded(diag, [&]() -> tn_status {
    const OmpWidth width(1);
    dnnl::memory from(to_desc(b), self->engine, src->host);
    dnnl::memory to(stored_desc(b.dim[0], b.dim[1], b.dtype), self->engine, dst->host);
    dnnl::stream stream(self->engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return TN_OK;
  });
}

constexpr tn_kernel_packed stored(const char* layout) {
  return {{sizeof(tn_kernel_packed), TN_EXT_KERNEL_PACKED, nullptr}, 1, 0, layout, packed_bytes, pack};
}

}  // namespace

const tn_kernel_packed kPackedF32 = stored("onednn.f32.BA16a64b"), kPackedBf16 = stored("onednn.bf16.BA16a64b2a"),
                       kPackedI8 = stored("onednn.i8.BA16a64b4a");

tn_status matmul_packed_supports(tn_instance* self, const tn_device_ref*, const tn_op* op, tn_support* out, tn_diag* diag) {
  Problem p;
  if (tn_status s = parse(*self, *op, p, diag); s < 0) return s;
  const double one = one_thread_ns(*self, p);
  const int threads = threads_for(*self, one);
  const double flops = 2 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  fill_support(out, kCallNs + one / threads + (threads > 1 ? kWakeNs : 0), flops, 0);
  return TN_OK;
}

std::shared_ptr<Recipe> matmul_packed_build(tn_instance& self, const tn_op& op) {
  Problem p;
  if (parse(self, op, p, nullptr) < 0) throw std::invalid_argument("the call was refused by supports");
  const OmpWidth width(1);
  RecipeBuilder r(self.engine, static_cast<uint32_t>(op.n_in + op.n_out));
  for (const Part& part : cut(p, threads_for(self, one_thread_ns(self, p)))) add_part(r, self.engine, p, part);
  return r.finish();
}

}  // namespace tenon::onednn
