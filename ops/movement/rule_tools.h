// ops/movement/rule_tools.h - small words shared by the rules of the primitive, movement, norm, conv, random and optimizer
// ops: attribute tables, checks with their messages, one-line emitters, costs and case builders.
//
//   Value y = scalar(e, TN_OPID_MUL, x, 0.5);            // x * 0.5, whatever x's float type
//   Value g = sum_to(e, dy, e.dims(a));                  // undo a broadcast
//
// Owns nothing. Any thread. Emitters follow Emit: after the first failure they do nothing.
#pragma once
#include "ops/cases.h"
#include "ops/emit.h"
#include "ops/op.h"

namespace tenon::ops {

using Dims = std::vector<int64_t>;

// ---- attribute tables -------------------------------------------------------------------------------------------------
constexpr tn_attr_def def_i64(uint32_t key, const char* name, int64_t fallback) {
  return {key, TN_ATTR_I64, 0, 0, name, tn_attr{key, TN_ATTR_I64, {.i = fallback}, 0}};
}
constexpr tn_attr_def def_f64(uint32_t key, const char* name, double fallback) {
  return {key, TN_ATTR_F64, 0, 0, name, tn_attr{key, TN_ATTR_F64, {.f = fallback}, 0}};
}
// A list or program that may be left out: the rule says what that means.
constexpr tn_attr_def def_optional(uint32_t key, uint32_t type, const char* name) { return {key, type, 0, 0, name, {}}; }
constexpr tn_attr_def def_required(uint32_t key, uint32_t type, const char* name) {
  return {key, type, TN_ATTR_REQUIRED, 0, name, {}};
}

// ---- arithmetic over sizes that may be symbols ------------------------------------------------------------------------
struct Calc {
  const tn_dims* dims;
  int64_t add(int64_t a, int64_t b) const { return dims->calc(dims->ctx, TN_DIM_ADD, a, b); }
  int64_t sub(int64_t a, int64_t b) const { return dims->calc(dims->ctx, TN_DIM_SUB, a, b); }
  int64_t mul(int64_t a, int64_t b) const { return dims->calc(dims->ctx, TN_DIM_MUL, a, b); }
  int64_t floordiv(int64_t a, int64_t b) const { return dims->calc(dims->ctx, TN_DIM_FLOORDIV, a, b); }
  // Demands the relation; a demand on symbols becomes a guard and holds. The caller writes the message.
  bool equal(int64_t a, int64_t b) const { return a == b || dims->require(dims->ctx, TN_DIM_EQ, a, b, nullptr) == TN_OK; }
  bool at_most(int64_t a, int64_t b) const { return dims->require(dims->ctx, TN_DIM_LE, a, b, nullptr) == TN_OK; }
};
inline Calc calc_of(tn_builder* b) { return {tn_builder_table()->dims(b)}; }
bool has_symbols(const tn_type& t);
Dims dims_of(const tn_type& t);
// A type with dims only, where an attribute gives them (the shape that a gradient has).
tn_type shape_type(uint32_t dtype, const Dims& dims);
int64_t product(const Dims& dims, size_t begin, size_t end);  // numbers only
inline int64_t product(const Dims& dims) { return product(dims, 0, dims.size()); }

// ---- checks of infer rules; each writes its message and returns TN_OK, TN_E_SHAPE, TN_E_DTYPE or TN_E_ARG ---------------
tn_status need_float(tn_diag*, const char* op, const char* operand, const tn_type&);            // TN-DTYPE-052
tn_status need_index(tn_diag*, const char* op, const char* operand, const tn_type&);            // TN-DTYPE-051
tn_status need_same_dtype(tn_diag*, const char* op, const char* operand, const tn_type&, const tn_type& first);  // -050
tn_status need_dtype(tn_diag*, const char* op, int64_t dtype, uint64_t allowed);                // TN-DTYPE-053, attr dtype
tn_status need_rank(tn_diag*, const char* op, const char* operand, const tn_type&, int64_t at_least, int64_t at_most);  // -051
// *out: the attribute `axis`, counted from the front. TN-SHAPE-054.
tn_status read_axis(tn_diag*, const char* op, const tn_op*, int64_t fallback, int64_t rank, int64_t* out);
// A list attribute of exactly n entries, each at least `lowest`; absent gives n times `fallback`. TN-SHAPE-055, -066.
tn_status read_list(tn_diag*, const char* op, const tn_op*, uint32_t key, const char* name, size_t n, int64_t fallback,
                    int64_t lowest, Dims* out);
// The attribute `dims` of an op without inputs: rank at most 8, no negative size. TN-SHAPE-055, -066.
tn_status read_dims(tn_diag*, const char* op, const tn_op*, Dims* out);
tn_status need_dims(tn_diag*, const char* op, const char* operand, const tn_type&, const Dims& expected, const Calc&);  // -064
// Sets dtype, rank, dims; dense row-major, or in the axis order of `model`.
void set_type(tn_type* out, uint32_t dtype, const Dims& dims, const tn_dims* calc, const tn_type* model = nullptr);

// ---- emitters -----------------------------------------------------------------------------------------------------------
Value cast_to(Emit& e, Value v, uint32_t dtype);                     // v itself when it has that type
inline Value widen(Emit& e, Value v) { return cast_to(e, v, compute_type(e.type(v).dtype)); }
Value scalar(Emit& e, uint64_t op_id, Value a, double b);            // binary op with a literal right operand
Value reshape(Emit& e, Value v, const Dims& dims);                   // v itself when it has those dims
Value permute(Emit& e, Value v, const Dims& perm);
// v in row-major order, copied where its strides say otherwise: for ops whose result is row-major whatever x is.
Value row_major(Emit& e, Value v);
Value expand_to(Emit& e, Value v, const Dims& dims);
Value reduce_axes(Emit& e, uint64_t op_id, Value v, const Dims& axes, bool keepdims);  // v itself when axes is empty
Value full(Emit& e, const Dims& dims, uint32_t dtype, double value);
Value sum_to(Emit& e, Value v, const Dims& dims);                    // sums what broadcasting `dims` to v had repeated
Value pointwise(Emit& e, ProgramBuilder& p, std::span<const Value> in, const Dims& dims = {});
std::vector<Value> pointwise_outputs(Emit& e, ProgramBuilder& p, std::span<const Value> in, uint32_t n_out);

// ---- whole rules --------------------------------------------------------------------------------------------------------
// The derivative of what `expand` writes: used where a hand-written derivative does not cover a seed.
tn_status vjp_by_expansion(tn_rule_fn expand, void* ctx, tn_builder*, const tn_rule*, tn_diag*);
tn_status vjp_zero(void*, tn_builder*, const tn_rule*, tn_diag*);    // no input has a derivative

// ---- costs --------------------------------------------------------------------------------------------------------------
double elements(const tn_type& t);
double operand_bytes(const tn_op* op);                               // every present operand once
tn_status set_cost(tn_cost* out, uint32_t bound, double flops, double bytes);
tn_status cost_move(void*, const tn_op*, tn_cost*, tn_diag*);        // moves bytes, computes nothing
template <int kFlopsPerElement>
tn_status cost_elements(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_MEMORY, kFlopsPerElement * elements(op->type[0]), operand_bytes(op));
}

// ---- cases --------------------------------------------------------------------------------------------------------------
CaseOperand operand(Dims dims, Fill fill = Fill::Normal, Layout layout = Layout::Dense);
CaseOperand index_operand(Dims dims, int64_t limit, uint32_t dtype = TN_I64);
CaseOperand typed_operand(Dims dims, uint32_t dtype, Fill fill = Fill::Normal);
CaseOperand absent_operand();
CaseAttr case_f64(uint32_t key, double v);

}  // namespace tenon::ops
