#include "ops/movement/rule_tools.h"

#include <algorithm>

namespace tenon::ops {

bool has_symbols(const tn_type& t) {
  for (int i = 0; i < t.rank; ++i)
    if (TN_IS_SYM(t.dim[i])) return true;
  return false;
}

Dims dims_of(const tn_type& t) { return {t.dim, t.dim + t.rank}; }

tn_type shape_type(uint32_t dtype, const Dims& dims) {
  tn_type t{};
  t.dtype = static_cast<uint8_t>(dtype);
  t.rank = static_cast<uint8_t>(dims.size());
  std::copy_n(dims.begin(), std::min<size_t>(dims.size(), TN_MAX_RANK), t.dim);
  return t;
}

int64_t product(const Dims& dims, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

// ---- checks -------------------------------------------------------------------------------------------------------------
tn_status need_float(tn_diag* d, const char* op, const char* operand, const tn_type& t) {
  if (is_float(t.dtype)) return TN_OK;
  return fail(d, TN_E_DTYPE, error_id(kDtype, 52), "%s: %s must be floating\nwhy: %s is %s\ntry: cast %s to f32 first", op,
              operand, operand, type_text(t).c_str(), operand);
}

tn_status need_index(tn_diag* d, const char* op, const char* operand, const tn_type& t) {
  if (t.dtype == TN_I32 || t.dtype == TN_I64) return TN_OK;
  return fail(d, TN_E_DTYPE, error_id(kDtype, 51), "%s: %s must be i32 or i64\nwhy: %s is %s\ntry: cast %s to i64", op, operand,
              operand, type_text(t).c_str(), operand);
}

tn_status need_same_dtype(tn_diag* d, const char* op, const char* operand, const tn_type& t, const tn_type& first) {
  if (t.dtype == first.dtype) return TN_OK;
  return fail(d, TN_E_DTYPE, error_id(kDtype, 50), "%s: element types differ\nwhy: %s is %s, the first operand is %s\ntry: cast %s to %s",
              op, operand, type_text(t).c_str(), type_text(first).c_str(), operand, dtype_name(first.dtype));
}

tn_status need_dtype(tn_diag* d, const char* op, int64_t dtype, uint64_t allowed) {
  if (dtype > 0 && dtype < 64 && (allowed >> dtype & 1) != 0) return TN_OK;
  return fail(d, TN_E_DTYPE, error_id(kDtype, 53), "%s: attribute dtype is not possible here\nwhy: dtype is %lld (%s)\ntry: choose a type that `tenon ops %s` lists",
              op, static_cast<long long>(dtype), dtype > 0 && dtype < 64 ? dtype_name(static_cast<uint32_t>(dtype)) : "no type", op);
}

tn_status need_rank(tn_diag* d, const char* op, const char* operand, const tn_type& t, int64_t at_least, int64_t at_most) {
  if (t.rank >= at_least && t.rank <= at_most) return TN_OK;
  return fail(d, TN_E_SHAPE, error_id(kShape, 51), "%s: %s has a rank that does not fit\nwhy: %s is %s, its rank must be %lld..%lld\ntry: reshape %s",
              op, operand, operand, type_text(t).c_str(), static_cast<long long>(at_least), static_cast<long long>(at_most), operand);
}

tn_status read_axis(tn_diag* d, const char* name, const tn_op* op, int64_t fallback, int64_t rank, int64_t* out) {
  const int64_t given = attr_i64(*op, TN_KEY_AXIS, fallback);
  *out = normalise_axis(given, rank);
  if (*out >= 0) return TN_OK;
  return fail(d, TN_E_SHAPE, error_id(kShape, 54), "%s: axis is outside\nwhy: axis is %lld, the rank is %lld\ntry: choose an axis in -%lld..%lld",
              name, static_cast<long long>(given), static_cast<long long>(rank), static_cast<long long>(rank),
              static_cast<long long>(rank - 1));
}

tn_status read_list(tn_diag* d, const char* name, const tn_op* op, uint32_t key, const char* attr, size_t n, int64_t fallback,
                    int64_t lowest, Dims* out) {
  *out = find_attr(*op, key) != nullptr ? attr_ints(*op, key) : Dims(n, fallback);
  if (out->size() != n)
    return fail(d, TN_E_SHAPE, error_id(kShape, 55), "%s: attribute %s has the wrong length\nwhy: it has %zu entries, %zu are needed\ntry: give one entry for each axis",
                name, attr, out->size(), n);
  for (int64_t v : *out)
    if (v < lowest && !TN_IS_SYM(v))
      return fail(d, TN_E_ARG, error_id(kShape, 66), "%s: attribute %s is too small\nwhy: an entry is %lld, the least is %lld\ntry: raise it to %lld",
                  name, attr, static_cast<long long>(v), static_cast<long long>(lowest), static_cast<long long>(lowest));
  return TN_OK;
}

tn_status read_dims(tn_diag* d, const char* name, const tn_op* op, Dims* out) {
  const size_t n = attr_ints(*op, TN_KEY_DIMS).size();
  if (n > TN_MAX_RANK)
    return fail(d, TN_E_SHAPE, error_id(kShape, 55), "%s: attribute dims has the wrong length\nwhy: it has %zu entries, at most %d are possible\ntry: merge axes", name, n,
                TN_MAX_RANK);
  return read_list(d, name, op, TN_KEY_DIMS, "dims", n, 0, 0, out);
}

tn_status need_dims(tn_diag* d, const char* op, const char* operand, const tn_type& t, const Dims& expected, const Calc& calc) {
  bool same = t.rank == expected.size();
  for (size_t i = 0; same && i < expected.size(); ++i) same = calc.equal(t.dim[i], expected[i]);
  if (same) return TN_OK;
  const tn_type want = shape_type(t.dtype, expected);
  return fail(d, TN_E_SHAPE, error_id(kShape, 64), "%s: %s has dims that do not fit\nwhy: %s is %s, it must be %s\ntry: reshape %s, or give one of that shape",
              op, operand, operand, type_text(t).c_str(), type_text(want).c_str(), operand);
}

void set_type(tn_type* out, uint32_t dtype, const Dims& dims, const tn_dims* calc, const tn_type* model) {
  *out = tn_type{};
  out->dtype = static_cast<uint8_t>(dtype);
  out->rank = static_cast<uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), out->dim);
  if (model != nullptr && model->rank == out->rank)
    set_dense_like(out, *model, calc);
  else
    set_dense(out, calc);
}

// ---- emitters -----------------------------------------------------------------------------------------------------------
Value cast_to(Emit& e, Value v, uint32_t dtype) {
  if (!v || e.type(v).dtype == dtype) return v;
  return e.op(TN_OPID_CAST, {v}, {Attr::i64(TN_KEY_DTYPE, dtype)});
}

Value scalar(Emit& e, uint64_t op_id, Value a, double b) {
  return e.op(op_id, {a, Value{}}, {}, {literal(b, compute_type(e.type(a).dtype))});
}

Value reshape(Emit& e, Value v, const Dims& dims) {
  if (e.dims(v) == dims) return v;
  return e.op(TN_OPID_RESHAPE, {v}, {Attr::ints(TN_KEY_DIMS, dims)});
}

Value permute(Emit& e, Value v, const Dims& perm) { return e.op(TN_OPID_PERMUTE, {v}, {Attr::ints(TN_KEY_PERM, perm)}); }

Value expand_to(Emit& e, Value v, const Dims& dims) {
  if (e.dims(v) == dims) return v;
  return e.op(TN_OPID_EXPAND, {v}, {Attr::ints(TN_KEY_DIMS, dims)});
}

Value row_major(Emit& e, Value v) {
  const tn_type t = e.type(v);
  int64_t stride = 1;
  for (int i = t.rank; i-- > 0;) {
    if (TN_IS_SYM(t.dim[i])) return e.op(TN_OPID_COPY, {v});  // undecided: a copy is always right
    if (t.dim[i] != 1 && t.stride[i] != stride) return e.op(TN_OPID_COPY, {v});
    stride *= t.dim[i];
  }
  return v;
}

Value reduce_axes(Emit& e, uint64_t op_id, Value v, const Dims& axes, bool keepdims) {
  if (axes.empty()) return v;
  return e.op(op_id, {v}, {Attr::ints(TN_KEY_AXES, axes), Attr::i64(TN_KEY_KEEPDIMS, keepdims)});
}

Value full(Emit& e, const Dims& dims, uint32_t dtype, double value) {
  return e.op(TN_OPID_FULL, {}, {Attr::ints(TN_KEY_DIMS, dims), Attr::i64(TN_KEY_DTYPE, dtype)},
              {literal(value, compute_type(dtype))});
}

Value sum_to(Emit& e, Value v, const Dims& dims) {
  const Dims have = e.dims(v);
  if (!e.ok() || have == dims) return v;
  const size_t extra = have.size() - dims.size();
  Dims leading, repeated;
  for (size_t i = 0; i < extra; ++i) leading.push_back(static_cast<int64_t>(i));
  v = reduce_axes(e, TN_OPID_SUM, v, leading, false);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 1 && have[i + extra] != 1) repeated.push_back(static_cast<int64_t>(i));
  return reduce_axes(e, TN_OPID_SUM, v, repeated, true);
}

std::vector<Value> pointwise_outputs(Emit& e, ProgramBuilder& p, std::span<const Value> in, uint32_t n_out) {
  const Attr attr = Attr::program(TN_KEY_PROGRAM, p.finish());
  const std::vector<tn_push> push = p.literals();
  return e.ops(TN_OPID_POINTWISE, in, std::span<const Attr>(&attr, 1), push, n_out);
}

Value pointwise(Emit& e, ProgramBuilder& p, std::span<const Value> in, const Dims& dims) {
  if (!in.empty()) return pointwise_outputs(e, p, in, 1)[0];
  const Attr attrs[] = {Attr::program(TN_KEY_PROGRAM, p.finish()), Attr::ints(TN_KEY_DIMS, dims)};
  const std::vector<tn_push> push = p.literals();
  return e.ops(TN_OPID_POINTWISE, in, attrs, push, 1)[0];
}

// ---- whole rules --------------------------------------------------------------------------------------------------------
tn_status vjp_by_expansion(tn_rule_fn expand, void* ctx, tn_builder* b, const tn_rule* r, tn_diag* d) {
  std::vector<uint32_t> out(r->op->n_out, TN_NONE);
  tn_rule forward{sizeof(tn_rule), TN_RULE_EXPAND};
  forward.op = r->op;
  forward.in = r->in;
  forward.result = out.data();
  forward.need = ~uint64_t{0};
  if (tn_status s = expand(ctx, b, &forward, d); s != TN_OK) return s;
  // Only present inputs and seeded outputs take part; absent ones have no value to derive by.
  std::vector<uint32_t> in, slots, seeded, seeds;
  uint64_t need = 0;
  for (uint32_t i = 0; i < r->op->n_in; ++i) {
    // A value that is two operands is one value to derive by: the first operand gets the whole cotangent.
    if (r->in[i] == TN_NONE || std::find(in.begin(), in.end(), r->in[i]) != in.end()) continue;
    if ((r->need >> std::min(i, 63u) & 1) != 0) need |= uint64_t{1} << std::min<size_t>(in.size(), 63);
    in.push_back(r->in[i]);
    slots.push_back(i);
  }
  for (uint32_t i = 0; i < r->op->n_out; ++i) {
    if (r->seed[i] == TN_NONE || out[i] == TN_NONE) continue;
    seeded.push_back(out[i]);
    seeds.push_back(r->seed[i]);
  }
  if (seeded.empty()) return TN_OK;
  std::vector<uint32_t> result(in.size(), TN_NONE);
  tn_rule back{sizeof(tn_rule), TN_RULE_VJP};
  back.in = in.data();
  back.out = seeded.data();
  back.seed = seeds.data();
  back.result = result.data();
  back.need = need;
  if (tn_status s = tn_builder_derive(b, static_cast<uint32_t>(in.size()), static_cast<uint32_t>(seeded.size()), &back, d);
      s != TN_OK)
    return s;
  for (size_t i = 0; i < in.size(); ++i) r->result[slots[i]] = result[i];
  return TN_OK;
}

tn_status vjp_zero(void*, tn_builder*, const tn_rule*, tn_diag*) { return TN_OK; }

// ---- costs --------------------------------------------------------------------------------------------------------------
double elements(const tn_type& t) {
  double n = 1;
  for (int i = 0; i < t.rank; ++i) n *= static_cast<double>(t.dim[i]);
  return n;
}

double operand_bytes(const tn_op* op) {
  double bytes = 0;
  for (int i = 0; i < op->n_in + op->n_out; ++i)
    if (op->type[i].dtype != 0) bytes += elements(op->type[i]) * dtype_bits(op->type[i].dtype) / 8;
  return bytes;
}

tn_status set_cost(tn_cost* out, uint32_t bound, double flops, double bytes) {
  out->bound = bound;
  out->flops = flops;
  out->bytes = bytes;
  return TN_OK;
}

tn_status cost_move(void*, const tn_op* op, tn_cost* out, tn_diag*) {
  return set_cost(out, TN_BOUND_MEMORY, 0, operand_bytes(op));
}

// ---- cases --------------------------------------------------------------------------------------------------------------
CaseOperand operand(Dims dims, Fill fill, Layout layout) {
  CaseOperand o;
  o.dims = std::move(dims);
  o.fill = fill;
  o.layout = layout;
  return o;
}
CaseOperand index_operand(Dims dims, int64_t limit, uint32_t dtype) {
  CaseOperand o = operand(std::move(dims), Fill::Index);
  o.dtype = dtype;
  o.limit = limit;
  return o;
}
CaseOperand typed_operand(Dims dims, uint32_t dtype, Fill fill) {
  CaseOperand o = operand(std::move(dims), fill);
  o.dtype = dtype;
  return o;
}
CaseOperand absent_operand() {
  CaseOperand o;
  o.absent = true;
  return o;
}
CaseAttr case_f64(uint32_t key, double v) { return {key, CaseAttr::Kind::F64, 0, v, {}}; }

}  // namespace tenon::ops
