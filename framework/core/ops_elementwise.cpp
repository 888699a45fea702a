// Elementwise ops and their operators.
#include "framework/core/state.h"

namespace tenon {
using namespace detail;
namespace {

Tensor unary(uint32_t number, const Tensor& x, Where where, const Attrs* attrs = nullptr, const uint64_t* push = nullptr, uint32_t slots = 0) {
  if (__builtin_expect(!x.defined(), 0)) require_defined(x, op_name(number), "x", where);
  ThreadState& ts = thread();
  const In operand = in(x);
  Call c;
  c.number = number;
  c.attrs = attrs;
  c.in = &operand;
  c.n_in = 1;
  c.push = push;
  c.push_bytes = 8 * slots;
  c.device = x.impl()->device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(ts, c, &out);
  return adopt(out);
}

Tensor binary(uint32_t number, const Tensor& a, const Tensor& b, Where where) {
  if (__builtin_expect(!a.defined() || !b.defined(), 0)) {
    require_defined(a, op_name(number), "a", where);
    require_defined(b, op_name(number), "b", where);
  }
  ThreadState& ts = thread();
  const In operands[2] = {in(a), in(b)};
  Call c;
  c.number = number;
  c.in = operands;
  c.n_in = 2;
  c.device = a.impl()->device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(ts, c, &out);
  return adopt(out);
}

// A tensor and a number: the number travels in push slot 0 and makes no tensor.
Tensor binary(uint32_t number, Operand a, Operand b) {
  if (a.tensor && b.tensor) return binary(number, *a.tensor, *b.tensor, a.where);
  const Operand& t = a.tensor ? a : b;
  const Operand& scalar = a.tensor ? b : a;
  if (t.tensor == nullptr)
    raise(TN_E_ARG, error::id(error::kArg, 104), t.where, op_name(number), "two numbers were given", "neither operand is a tensor",
          "make one of them a tensor with tenon::tensor(v)");
  if (!t.tensor->defined()) require_defined(*t.tensor, op_name(number), a.tensor ? "a" : "b", t.where);
  ThreadState& ts = thread();
  const uint64_t push = scalar_bits(dtype(ts, t.tensor->impl()), scalar, op_name(number));
  const In operands[2] = {a.tensor ? in(*a.tensor) : In{}, b.tensor ? in(*b.tensor) : In{}};
  Call c;
  c.number = number;
  c.in = operands;
  c.n_in = 2;
  c.push = &push;
  c.push_bytes = 8;
  c.device = t.tensor->impl()->device;
  c.where = t.where;
  TensorImpl* out = nullptr;
  run(ts, c, &out);
  return adopt(out);
}

}  // namespace

#define TENON_DEFINE(name, NAME) \
  Tensor name(const Tensor& x, Where where) { return unary(TN_OPID_##NAME, x, where); }
TENON_UNARY(TENON_DEFINE)
#undef TENON_DEFINE
#define TENON_DEFINE(name, NAME) \
  Tensor name(const Tensor& a, const Tensor& b, Where where) { return binary(TN_OPID_##NAME, a, b, where); } \
  Tensor name(Operand a, Operand b) { return binary(TN_OPID_##NAME, a, b); }
TENON_BINARY(TENON_DEFINE)
#undef TENON_DEFINE

Tensor gelu(const Tensor& x, Gelu form, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_MODE, static_cast<int64_t>(form));
  return unary(TN_OPID_GELU, x, where, &attrs);
}
Tensor leaky_relu(const Tensor& x, double slope, Where where) {
  require_defined(x, "leaky_relu", "x", where);
  const uint64_t push = scalar_bits(x.dtype(), Operand(slope, where), "leaky_relu");
  return unary(TN_OPID_LEAKY_RELU, x, where, nullptr, &push, 1);
}
Tensor clamp(const Tensor& x, double low, double high, Where where) {
  require_defined(x, "clamp", "x", where);
  const uint64_t push[2] = {scalar_bits(x.dtype(), Operand(low, where), "clamp"), scalar_bits(x.dtype(), Operand(high, where), "clamp")};
  return unary(TN_OPID_CLAMP, x, where, nullptr, push, 2);
}
Tensor cast(const Tensor& x, DType t, Where where) {
  require_defined(x, "cast", "x", where);
  if (x.dtype() == t) return x;
  const Attrs attrs = Attrs().i64(TN_KEY_DTYPE, static_cast<int64_t>(t));
  return unary(TN_OPID_CAST, x, where, &attrs);
}
Tensor Tensor::to(DType t, Where where) const { return cast(*this, t, where); }

Tensor dropout(const Tensor& x, double rate, Generator* generator, Where where) {
  require_defined(x, "dropout", "x", where);
  if (!(rate >= 0 && rate < 1))
    raise(TN_E_ARG, error::id(error::kArg, 105), where, "dropout", "the rate is not a share of the elements",
          format("rate %g", rate), "give a rate of at least 0 and less than 1");
  Generator& g = generator ? *generator : default_generator();
  const GeneratorState s = g.take(static_cast<uint64_t>(x.numel()));
  const uint64_t push[3] = {s.seed, s.offset, scalar_bits(compute_type(x.dtype()), rate)};
  return unary(TN_OPID_DROPOUT, x, where, nullptr, push, 3);
}

namespace {

Tensor as_tensor(const Operand& v, const Tensor& like, Where where) {
  if (v.tensor) return *v.tensor;
  const double number = v.is_integer ? static_cast<double>(v.integer) : v.real;
  return full({}, number, {.dtype = like.dtype(), .device = like.device()}, where);
}

Tensor ternary(uint32_t number, const Tensor& a, const Tensor& b, const Tensor& c3, Where where) {
  require_defined(a, op_name(number), "a", where);
  require_defined(b, op_name(number), "b", where);
  require_defined(c3, op_name(number), "c", where);
  const In operands[3] = {in(a), in(b), in(c3)};
  Call c;
  c.number = number;
  c.in = operands;
  c.n_in = 3;
  c.device = a.impl()->device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  return adopt(out);
}

}  // namespace

Tensor where(const Tensor& condition, Operand a, Operand b) {
  const Where w = a.where;
  if (!a.tensor && !b.tensor) {  // two numbers: f32, as for literals of tensors
    const Tensor like = empty({0}, {.device = condition.device()}, w);
    return ternary(TN_OPID_WHERE, condition, as_tensor(a, like, w), as_tensor(b, like, w), w);
  }
  const Tensor& like = a.tensor ? *a.tensor : *b.tensor;
  return ternary(TN_OPID_WHERE, condition, as_tensor(a, like, w), as_tensor(b, like, w), w);
}
Tensor fma(const Tensor& a, const Tensor& b, const Tensor& c, Where where) { return ternary(TN_OPID_FMA, a, b, c, where); }

}  // namespace tenon
