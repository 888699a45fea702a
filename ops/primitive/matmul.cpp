// Matrix product with batch broadcasting and an optional scalar program on the result.
#include <algorithm>

#include "ops/movement/rule_tools.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {def_optional(TN_KEY_POST, TN_ATTR_PROGRAM, "post"), def_optional(TN_KEY_DTYPE, TN_ATTR_I64, "dtype")};
constexpr uint64_t kBytes = mask(TN_U8) | mask(TN_I8);
constexpr uint64_t kFactors = kFloats | kBytes | mask(TN_I32) | mask(TN_I64);

bool is_byte(uint32_t dtype) { return (kBytes >> dtype & 1) != 0; }
uint32_t accumulator(uint32_t dtype) { return is_byte(dtype) ? uint32_t{TN_I32} : compute_type(dtype); }

tn_status check_factors(const tn_type& a, const tn_type& b, tn_diag* d) {
  if (tn_status s = need_rank(d, "matmul", "a", a, 2, TN_MAX_RANK); s != TN_OK) return s;
  if (tn_status s = need_rank(d, "matmul", "b", b, 2, TN_MAX_RANK); s != TN_OK) return s;
  const bool fit = a.dtype == b.dtype || (is_byte(a.dtype) && is_byte(b.dtype));
  if (fit && (kFactors >> a.dtype & 1) != 0) return TN_OK;
  return fail(d, TN_E_DTYPE, error_id(kDtype, 50), "matmul: element types differ\nwhy: a is %s, b is %s; u8 and i8 may mix, nothing else\ntry: cast b to %s",
              type_text(a).c_str(), type_text(b).c_str(), dtype_name((kFactors >> a.dtype & 1) != 0 ? a.dtype : uint32_t{TN_F32}));
}

// Batch dims of a and b, broadcast; false where they do not fit.
bool broadcast_batch(const tn_type& a, const tn_type& b, const Calc& calc, Dims* out) {
  const int rank = std::max(a.rank, b.rank) - 2;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - (a.rank - 2)), ib = i - (rank - (b.rank - 2));
    const int64_t da = ia < 0 ? 1 : a.dim[ia], db = ib < 0 ? 1 : b.dim[ib];
    if (da != 1 && db != 1 && !calc.equal(da, db)) return false;
    out->push_back(da == 1 ? db : da);
  }
  return true;
}

tn_status check_post_inputs(const tn_op* op, const Dims& dims, const Calc& calc, tn_diag* d) {
  for (uint32_t k = 2; k < op->n_in; ++k) {
    const tn_type& t = op->type[k];
    bool fits = t.rank <= dims.size();
    for (int i = 0; fits && i < t.rank; ++i)
      fits = t.dim[i] == 1 || calc.equal(t.dim[i], dims[dims.size() - t.rank + static_cast<size_t>(i)]);
    if (!fits)
      return fail(d, TN_E_SHAPE, error_id(kShape, 52), "matmul: an input of post does not broadcast\nwhy: input %u is %s, the product is a[..., m, k] b[..., k, n]\ntry: give it the product's dims, or 1",
                  k, type_text(t).c_str());
  }
  return TN_OK;
}

tn_status output_dtype(const tn_op* op, tn_diag* d, uint32_t* out) {
  const uint32_t natural = is_byte(op->type[0].dtype) ? uint32_t{TN_I32} : op->type[0].dtype;
  const tn_program* post = attr_program(*op, TN_KEY_POST);
  if (post == nullptr && op->n_in > 2)
    return fail(d, TN_E_ARG, error_id(kArg, 50), "matmul: further inputs without post\nwhy: %u inputs, and no attribute post that reads them\ntry: give post, or two inputs", op->n_in);
  if (post != nullptr && (post->n_out != 1 || post->n_in > op->n_in - 1))
    return fail(d, TN_E_ARG, error_id(kArg, 51), "matmul: post does not fit\nwhy: post has %u outputs and %u inputs; 1 output, and at most %d inputs are here\ntry: give every input of post",
                post->n_out, post->n_in, op->n_in - 1);
  *out = post != nullptr ? post->inst[post->out[0]].type : static_cast<uint32_t>(attr_i64(*op, TN_KEY_DTYPE, natural));
  if (tn_status s = need_dtype(d, "matmul", *out, kNumbers | mask(TN_BOOL)); s != TN_OK) return s;
  if (attr_i64(*op, TN_KEY_DTYPE, *out) != *out)
    return fail(d, TN_E_DTYPE, error_id(kDtype, 53), "matmul: attribute dtype is not possible here\nwhy: dtype is %s, post yields %s\ntry: leave dtype out",
                dtype_name(static_cast<uint32_t>(attr_i64(*op, TN_KEY_DTYPE, 0))), dtype_name(*out));
  return TN_OK;
}

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const tn_type &a = op->type[0], &b = op->type[1];
  const Calc calc{dims};
  if (tn_status s = check_factors(a, b, d); s != TN_OK) return s;
  if (const int64_t ka = a.dim[a.rank - 1], kb = b.dim[b.rank - 2]; !calc.equal(ka, kb))
    return fail(d, TN_E_SHAPE, error_id(kShape, 50), "matmul: inner dimensions differ\nwhy: a is %s, b is %s; a[-1]=%lld must equal b[-2]=%lld\ntry: %s",
                type_text(a).c_str(), type_text(b).c_str(), static_cast<long long>(ka), static_cast<long long>(kb),
                ka == b.dim[b.rank - 1] ? "transpose b" : "reshape b, or transpose an operand");
  Dims result;
  if (!broadcast_batch(a, b, calc, &result))
    return fail(d, TN_E_SHAPE, error_id(kShape, 52), "matmul: batch dimensions do not broadcast\nwhy: a is %s, b is %s; sizes before the last two must be equal or 1\ntry: reshape or expand one of them",
                type_text(a).c_str(), type_text(b).c_str());
  result.push_back(a.dim[a.rank - 2]);
  result.push_back(b.dim[b.rank - 1]);
  uint32_t dtype = 0;
  if (tn_status s = output_dtype(op, d, &dtype); s != TN_OK) return s;
  if (tn_status s = check_post_inputs(op, result, calc, d); s != TN_OK) return s;
  set_type(out, dtype, result, dims);
  return TN_OK;
}

// With post: product in the accumulator's type, then post alone. Without: it is a primitive.
tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_program* post = attr_program(e.self(), TN_KEY_POST);
  if (post == nullptr)
    return e.fail(TN_E_UNSUPPORTED, error_id(kOp, 50), "matmul: a primitive has no expansion\nwhy: without post it is the product itself\ntry: offer a kernel of matmul for this device");
  std::vector<Value> in{e.op(TN_OPID_MATMUL, {e.in(0), e.in(1)}, {Attr::i64(TN_KEY_DTYPE, accumulator(e.self().type[0].dtype))})};
  for (uint32_t k = 2; k < e.self().n_in; ++k) in.push_back(e.in(k));
  in.resize(std::max<size_t>(post->n_in, 1));
  const Attr attr = Attr::program(TN_KEY_PROGRAM, post);
  std::vector<tn_push> push;
  for (uint32_t k = 0; k < post->n_slots; ++k) push.push_back(slot(k));
  e.result(0, e.ops(TN_OPID_POINTWISE, in, std::span<const Attr>(&attr, 1), push, 1)[0]);
  return e.status();
}

Value transposed(Emit& e, Value v) {
  Dims perm(e.dims(v).size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return permute(e, v, perm);
}

// The type products of a cotangent and a factor are taken in: the wider, f32 where neither holds the other.
uint32_t common_type(uint32_t x, uint32_t y) {
  if (x == y) return x;
  if (dtype_bits(x) == dtype_bits(y)) return TN_F32;
  return dtype_bits(x) > dtype_bits(y) ? x : y;
}

Value product(Emit& e, Value x, Value y, uint32_t dtype) {
  const uint32_t common = common_type(e.type(x).dtype, e.type(y).dtype);
  return e.op(TN_OPID_MATMUL, {cast_to(e, x, common), cast_to(e, y, common)}, {Attr::i64(TN_KEY_DTYPE, dtype)});
}

// [..., m, k] -> [M, k]: one large product instead of a batch of small ones that is then summed.
Value fold_batch(Emit& e, const Calc& calc, Value v) {
  const Dims dims = e.dims(v);
  if (dims.size() <= 2) return v;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows = calc.mul(rows, dims[i]);
  return reshape(e, v, {rows, dims.back()});
}

tn_status vjp(void* ctx, tn_builder* builder, const tn_rule* r, tn_diag* d) {
  if (attr_program(*r->op, TN_KEY_POST) != nullptr) return vjp_by_expansion(expand, ctx, builder, r, d);
  Emit e(builder, r, d);
  const Value a = e.in(0), b = e.in(1), dc = e.seed(0);
  if (!dc || !is_float(e.type(a).dtype) || !is_float(e.type(dc).dtype)) return e.status();
  const uint32_t dtype = e.type(a).dtype;
  const Dims da = e.dims(a), db = e.dims(b);
  if (e.needs(0)) e.result(0, sum_to(e, product(e, dc, transposed(e, b), dtype), da));
  if (!e.needs(1)) return e.status();
  const Calc calc = calc_of(builder);
  const bool fold = db.size() == 2 && da.size() > 2;
  const Value left = fold ? fold_batch(e, calc, a) : a, right = fold ? fold_batch(e, calc, dc) : dc;
  e.result(1, sum_to(e, product(e, transposed(e, left), right, dtype), db));
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const tn_type& a = op->type[0];
  const double flops = 2 * elements(op->type[op->n_in]) * static_cast<double>(a.dim[a.rank - 1]);
  return set_cost(out, TN_BOUND_COMPUTE, flops, operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const Dims pairs[][2] = {
      {{2, 3}, {3, 4}}, {{1, 1}, {1, 1}}, {{1, 7}, {7, 1}}, {{5, 1}, {1, 6}}, {{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}, {{2, 3}, {3, 0}},
      {{17, 13}, {13, 19}}, {{33, 65}, {65, 31}}, {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}}, {{3, 4}, {2, 4, 5}},
      {{2, 1, 3, 4}, {5, 4, 2}}, {{1, 3, 4}, {6, 4, 1}}, {{0, 3, 4}, {4, 5}}, {{2, 3, 0}, {2, 0, 2}}, {{2, 2, 2, 2}, {2, 2, 2, 2}},
      {{8, 8}, {8, 8}}, {{1, 70}, {70, 3}}, {{3, 1, 2, 5}, {1, 4, 5, 2}}};
  for (const auto& p : pairs) all.push_back({{operand(p[0]), operand(p[1])}});
  for (Layout layout : {Layout::Permuted, Layout::Gapped, Layout::Broadcast}) {
    all.push_back({{operand({6, 5}, Fill::Normal, layout), operand({5, 7})}});
    all.push_back({{operand({2, 6, 5}, Fill::Normal, layout), operand({5, 7}, Fill::Normal, layout)}});
  }
  return all;
}

}  // namespace

extern const OpDecl op_matmul{
    .def = {.size = sizeof(tn_op_def), .flags = TN_DEF_MATMUL, .op_id = TN_OPID_MATMUL, .version = 1, .n_in = TN_VARIADIC, .n_out = 1,
            .n_attr_defs = std::size(kAttrs), .name = "matmul", .attr_defs = kAttrs, .infer = infer, .expand = expand, .vjp = vjp,
            .cost = cost},
    .summary = "Product of matrices; leading dims are batches and broadcast.",
    .formula = "c[..., i, j] = post(sum over k of a[..., i, k] * b[..., k, j], further inputs)",
    .semantics = "k = 0 gives zeros. Narrow floats accumulate in f32, u8 and i8 in i32; i32 and i64 wrap. 0 times Inf or NaN is NaN: "
                 "no term is skipped; bf16 subnormals may be read as 0 unless TN_MATH_SUBNORMAL. dtype sets the output's type; with "
                 "post the program's output type does.",
    .example = "f32[128,256] f32[256,64]",
    .cases = cases,
    .dtypes = kFactors,
    .ulp_f32 = 8};

}  // namespace tenon::ops
