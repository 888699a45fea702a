// Gradient of max_pool2d: each window's cotangent goes to its first maximum.
#include "ops/conv/image.h"

namespace tenon::ops {
namespace {

constexpr tn_attr_def kAttrs[] = {TENON_SLIDING_ATTRS, def_required(TN_KEY_KERNEL, TN_ATTR_I64S, "kernel")};

tn_status infer(void*, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* d) {
  const char* const name = "max_pool2d_grad";
  const tn_type& x = op->type[0];
  const Calc calc{dims};
  Sliding s;
  Dims places;
  if (tn_status st = need_float(d, name, "x", x); st != TN_OK) return st;
  if (tn_status st = need_rank(d, name, "x", x, 4, 4); st != TN_OK) return st;
  if (tn_status st = read_sliding(d, name, op, true, &s); st != TN_OK) return st;
  if (tn_status st = window_places(d, name, s, x.dim[2], x.dim[3], calc, &places); st != TN_OK) return st;
  for (uint32_t i : {1u, 2u}) {
    const char* const operand = i == 1 ? "y" : "dy";
    if (tn_status st = need_same_dtype(d, name, operand, op->type[i], x); st != TN_OK) return st;
    if (tn_status st = need_dims(d, name, operand, op->type[i], {x.dim[0], x.dim[1], places[0], places[1]}, calc); st != TN_OK) return st;
  }
  set_image(out, x.dtype, dims_of(x), x, dims);
  return TN_OK;
}

// 1 where an element of a window is inside x and equals the window's maximum (or both are NaN). Padding never matches, so
// that a real -inf is found behind it.
Value matches(Emit& e, Value view, Value y, const Sliding& s, const tn_type& x) {
  ProgramBuilder p(x.dtype);
  const auto v = p.input(0), top = p.input(1);
  auto hit = p.op(TN_OP_OR, p.op(TN_OP_EQ, v, top), p.op(TN_OP_AND, p.op(TN_OP_ISNAN, v), p.op(TN_OP_ISNAN, top)));
  for (uint32_t i = 0; i < 2; ++i) {
    const auto number = [&](int64_t n) { return p.constant(static_cast<double>(n), TN_I64); };
    const auto start = p.op(TN_OP_SUB, p.op(TN_OP_MUL, p.index(2 + i, TN_I64), number(s.strides[i])), number(s.lo[i]));
    const auto at = p.op(TN_OP_ADD, start, p.op(TN_OP_MUL, p.index(4 + i, TN_I64), number(s.dilations[i])));
    const auto inside = p.op(TN_OP_AND, p.op(TN_OP_LE, number(0), at), p.op(TN_OP_LT, at, number(x.dim[2 + i])));
    hit = p.op(TN_OP_AND, hit, inside);
  }
  p.output(hit, TN_U8);
  const Value in[] = {view, y};
  return pointwise(e, p, in);
}

// Where in the padded plane (height by width, flattened) the chosen tap of each window lies.
Value plane_index(Emit& e, Value tap, const Sliding& s, int64_t padded_width) {
  ProgramBuilder p(TN_I64);
  const auto number = [&](int64_t n) { return p.constant(static_cast<double>(n)); };
  const auto place = [&](uint32_t i, ProgramBuilder::Id k) {
    return p.op(TN_OP_ADD, p.op(TN_OP_MUL, p.index(2 + i, TN_I64), number(s.strides[i])), p.op(TN_OP_MUL, k, number(s.dilations[i])));
  };
  const auto k = p.input(0);
  const auto row = place(0, p.op(TN_OP_DIV, k, number(s.kernel[1]))), column = place(1, p.op(TN_OP_REM, k, number(s.kernel[1])));
  p.output(p.op(TN_OP_ADD, p.op(TN_OP_MUL, row, number(padded_width)), column));
  const Value in[] = {tap};
  return pointwise(e, p, in);
}

tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  const tn_type &x = e.self().type[0], &y = e.self().type[1];
  const Calc calc = calc_of(b);
  const Sliding s = sliding_of(e.self(), true);
  const int64_t n = x.dim[0], c = x.dim[1], oh = y.dim[2], ow = y.dim[3];
  const int64_t height = x.dim[2] + s.lo[0] + s.hi[0], width = x.dim[3] + s.lo[1] + s.hi[1];
  const Value view = windows(e, pad_image(e, e.in(0), s.lo, s.hi, {0, 0}, lowest_value(x.dtype), calc), s);
  const Value hits = row_major(e, matches(e, view, reshape(e, e.in(1), {n, c, oh, ow, 1, 1}), s, x));
  const Value flat = reshape(e, hits, {n, c, oh, ow, product(s.kernel)});
  const Value tap = e.op(TN_OPID_ARGMAX, {flat}, {Attr::i64(TN_KEY_AXIS, -1), Attr::i64(TN_KEY_KEEPDIMS, 0)});
  const Value index = reshape(e, plane_index(e, tap, s, width), {n, c, oh * ow});
  // A cotangent of a window of padding alone lands in the padding and is cropped away.
  const Value updates = reshape(e, widen(e, e.in(2)), {n, c, oh * ow});
  const Value plane = e.op(TN_OPID_SCATTER, {full(e, {n, c, height * width}, compute_type(x.dtype), 0), index, updates},
                           {Attr::i64(TN_KEY_AXIS, 2), Attr::i64(TN_KEY_MODE, TN_SCATTER_ADD)});
  const Dims lo{-s.lo[0], -s.lo[1]}, hi{-s.hi[0], -s.hi[1]};
  const Value dx = pad_image(e, reshape(e, plane, {n, c, height, width}), lo, hi, {0, 0}, 0, calc);
  e.result(0, as_image(e, cast_to(e, dx, x.dtype), e.self().type[3], calc));
  return e.status();
}

tn_status cost(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  const Dims kernel = attr_ints(*op, TN_KEY_KERNEL);
  return set_cost(out, TN_BOUND_MEMORY, elements(op->type[1]) * static_cast<double>(product(kernel)), operand_bytes(op));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WindowCase& c : pooling_cases()) {
    const Dims places = window_places_of(c);
    const Dims y{c.x[0], c.x[1], places[0], places[1]};
    // y is an operand of its own here: where it is no maximum, the first tap is taken, which is a rule as good as any.
    Case made{{operand(c.x, Fill::Spaced), operand(y), operand(y)}, sliding_case_attrs(c.s, true)};
    all.push_back(made);
  }
  for (Layout layout : {Layout::Permuted, Layout::Gapped})
    all.push_back({{operand({2, 3, 6, 4}, Fill::Spaced, layout), operand({2, 3, 3, 2}, Fill::Spaced), operand({2, 3, 3, 2})},
                   {case_ints(TN_KEY_STRIDES, {2, 2}), case_ints(TN_KEY_KERNEL, {2, 2})}});
  return all;
}

}  // namespace

// No vjp of its own: the expansion is linear in dy, and its parts give "gather at the maximum".
extern const OpDecl op_max_pool2d_grad{
    .def = {.size = sizeof(tn_op_def), .op_id = TN_OPID_MAX_POOL2D_GRAD, .version = 1, .n_in = 3, .n_out = 1, .n_attr_defs = std::size(kAttrs),
            .name = "max_pool2d_grad", .attr_defs = kAttrs, .infer = infer, .expand = expand, .cost = cost},
    .summary = "Gradient of max_pool2d.",
    .formula = "dx[m] = sum of dy over the windows whose first maximum (row-major) is element m",
    .semantics = "y must be max_pool2d of x. Ties: the first takes all. A window with a NaN sends its cotangent to the first NaN. Sums of overlapping "
                 "windows in f32 for narrow types.",
    .example = "f32[1,3,8,8] f32[1,3,4,4] f32[1,3,4,4] kernel=2,2 strides=2,2",
    .cases = cases,
    .dtypes = kFloats,
    .ulp_f32 = 4};

}  // namespace tenon::ops
