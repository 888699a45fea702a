// Reductions, products, movement, normalising, convolution, optimizer steps.
#include "framework/core/state.h"

#include <algorithm>

namespace tenon {
using namespace detail;
namespace {

// Any op of up to five operands and three outputs; undefined tensors are absent operands.
struct Args {
  std::initializer_list<const Tensor*> in;
  const Attrs* attrs = nullptr;
  const uint64_t* push = nullptr;
  uint32_t slots = 0, n_out = 1, required = 1;  // the first `required` operands must hold a tensor
};
void run_args(uint32_t number, const Args& a, Where where, TensorImpl** out, bool in_place = false) {
  In operands[8];
  uint32_t n = 0;
  static constexpr const char* kNames[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
  for (const Tensor* t : a.in) {
    if (n < a.required) require_defined(*t, op_name(number), kNames[n], where);
    operands[n++] = detail::in(*t);
  }
  Call c;
  c.number = number;
  c.attrs = a.attrs;
  c.in = operands;
  c.n_in = n;
  c.n_out = a.n_out;
  c.push = a.push;
  c.push_bytes = 8 * a.slots;
  c.device = (*a.in.begin())->impl()->device;
  c.where = where;
  c.in_place = in_place;
  run(thread(), c, out);
}
Tensor call(uint32_t number, const Args& a, Where where) {
  TensorImpl* out = nullptr;
  run_args(number, a, where, &out);
  return adopt(out);
}

Tensor reduce(uint32_t number, const Tensor& x, std::span<const int64_t> axes, bool keepdims, Where where) {
  Attrs attrs;
  if (!axes.empty()) attrs.ints(TN_KEY_AXES, axes);
  attrs.i64(TN_KEY_KEEPDIMS, keepdims);
  return call(number, {{&x}, &attrs}, where);
}
Tensor with_axis(uint32_t number, const Tensor& x, int64_t axis, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis);
  return call(number, {{&x}, &attrs}, where);
}

}  // namespace

#define TENON_DEFINE(name, NAME) \
  Tensor name(const Tensor& x, std::span<const int64_t> axes, bool keepdims, Where where) { return reduce(TN_OPID_##NAME, x, axes, keepdims, where); }
TENON_REDUCTION(TENON_DEFINE)
#undef TENON_DEFINE
Tensor argmax(const Tensor& x, int64_t axis, bool keepdims, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis).i64(TN_KEY_KEEPDIMS, keepdims);
  return call(TN_OPID_ARGMAX, {{&x}, &attrs}, where);
}
Tensor argmin(const Tensor& x, int64_t axis, bool keepdims, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis).i64(TN_KEY_KEEPDIMS, keepdims);
  return call(TN_OPID_ARGMIN, {{&x}, &attrs}, where);
}

Tensor matmul(const Tensor& a, const Tensor& b, Where where) {
  require_defined(a, "matmul", "a", where);
  require_defined(b, "matmul", "b", where);
  if (__builtin_expect(b.is_packed(), 0)) refuse_packed_gradient(a, b, where);
  const bool row = a.rank() == 1, column = b.rank() == 1;  // a vector is a row on the left, a column on the right
  if (!row && !column) return call(TN_OPID_MATMUL, {{&a, &b}}, where);
  Tensor y = matmul(row ? a.unsqueeze(0, where) : a, column ? b.unsqueeze(1, where) : b, where);
  if (column) y = y.squeeze(-1, where);
  return row ? y.squeeze(column ? -1 : -2, where) : y;
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where where) {
  return call(TN_OPID_LINEAR, {{&x, &weight, &bias}, nullptr, nullptr, 0, 1, 2}, where);
}

Tensor concat(std::span<const Tensor> parts, int64_t axis, Where where) {
  if (parts.empty())
    raise(TN_E_ARG, error::id(error::kArg, 106), where, "concat", "nothing to join", "0 tensors given", "give at least one tensor");
  std::vector<In> operands;
  for (const Tensor& p : parts) {
    require_defined(p, "concat", "of the list", where);
    operands.push_back(in(p));
  }
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis);
  Call c;
  c.number = TN_OPID_CONCAT;
  c.attrs = &attrs;
  c.in = operands.data();
  c.n_in = static_cast<uint32_t>(operands.size());
  c.device = parts[0].impl()->device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  return adopt(out);
}
Tensor stack(std::span<const Tensor> parts, int64_t axis, Where where) {
  std::vector<Tensor> raised;
  for (const Tensor& p : parts) raised.push_back(p.unsqueeze(axis, where));
  return concat(raised, axis, where);
}
Tensor pad(const Tensor& x, const Shape& lo, const Shape& hi, double value, Where where) {
  require_defined(x, "pad", "x", where);
  const Attrs attrs = Attrs().ints(TN_KEY_LO, lo).ints(TN_KEY_HI, hi);
  const uint64_t push = scalar_bits(x.dtype(), Operand(value, where), "pad");
  return call(TN_OPID_PAD, {{&x}, &attrs, &push, 1}, where);
}
Tensor one_hot(const Tensor& index, int64_t depth, DType t, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_DTYPE, static_cast<int64_t>(t)).i64(TN_KEY_DEPTH, depth);
  return call(TN_OPID_ONE_HOT, {{&index}, &attrs}, where);
}
namespace {
// gather and scatter are primitives: their axes are never negative.
int64_t from_start(const Tensor& data, int64_t axis, const char* op, Where where) {
  require_defined(data, op, "data", where);
  data.dim(axis, where);  // throws for an axis that is not there
  return axis < 0 ? axis + static_cast<int64_t>(data.rank()) : axis;
}
}  // namespace
Tensor gather(const Tensor& data, const Tensor& index, int64_t axis, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, from_start(data, axis, "gather", where));
  return call(TN_OPID_GATHER, {{&data, &index}, &attrs, nullptr, 0, 1, 2}, where);
}
Tensor take(const Tensor& data, const Tensor& index, int64_t axis, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis);
  return call(TN_OPID_TAKE, {{&data, &index}, &attrs, nullptr, 0, 1, 2}, where);
}
Tensor scatter(const Tensor& data, const Tensor& index, const Tensor& updates, int64_t axis, Scatter mode, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, from_start(data, axis, "scatter", where)).i64(TN_KEY_MODE, static_cast<int64_t>(mode));
  return call(TN_OPID_SCATTER, {{&data, &index, &updates}, &attrs, nullptr, 0, 1, 3}, where);
}
Tensor tril(const Tensor& x, int64_t diagonal, Where where) {
  const int64_t rows = x.dim(-2, where), columns = x.dim(-1, where);
  const TensorOptions o{.dtype = DType::i64, .device = x.device()};
  const Tensor i = arange(0, static_cast<double>(rows), 1, o, where).unsqueeze(1), j = arange(0, static_cast<double>(columns), 1, o, where);
  return tenon::where(less_equal(sub(j, i, where), Operand(diagonal, where)), Operand(x, where), Operand(0.0, where));
}

Tensor softmax(const Tensor& x, int64_t axis, Where where) { return with_axis(TN_OPID_SOFTMAX, x, axis, where); }
Tensor log_softmax(const Tensor& x, int64_t axis, Where where) { return with_axis(TN_OPID_LOG_SOFTMAX, x, axis, where); }
Tensor cross_entropy_rows(const Tensor& logits, const Tensor& target, int64_t ignore_index, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_IGNORE_INDEX, ignore_index);
  return call(TN_OPID_CROSS_ENTROPY, {{&logits, &target}, &attrs, nullptr, 0, 1, 2}, where);
}
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis, double epsilon, Where where) {
  const Attrs attrs = Attrs().i64(TN_KEY_AXIS, axis).f64(TN_KEY_EPSILON, epsilon);
  TensorImpl* out[3] = {};
  run_args(TN_OPID_LAYER_NORM, {{&x, &scale, &bias}, &attrs, nullptr, 0, 3}, where, out);
  const Tensor mean = adopt(out[1]), rstd = adopt(out[2]);
  return adopt(out[0]);
}
BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon, Where where) {
  const Attrs attrs = Attrs().f64(TN_KEY_EPSILON, epsilon);
  TensorImpl* out[3] = {};
  run_args(TN_OPID_BATCH_NORM, {{&x, &scale, &bias}, &attrs, nullptr, 0, 3}, where, out);
  return {adopt(out[0]), adopt(out[1]), adopt(out[2])};
}
Tensor batch_norm_infer(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean, const Tensor& variance,
                        double epsilon, Where where) {
  const Attrs attrs = Attrs().f64(TN_KEY_EPSILON, epsilon);
  return call(TN_OPID_BATCH_NORM_INFER, {{&x, &scale, &bias, &mean, &variance}, &attrs}, where);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o, Where where) {
  const Attrs attrs = Attrs().ints(TN_KEY_LO, o.pad_lo).ints(TN_KEY_HI, o.pad_hi).ints(TN_KEY_STRIDES, o.stride)
                          .ints(TN_KEY_DILATIONS, o.dilation).i64(TN_KEY_GROUPS, o.groups);
  return call(TN_OPID_CONV2D, {{&x, &weight, &bias}, &attrs, nullptr, 0, 1, 2}, where);
}
namespace {
Tensor pool(uint32_t number, const Tensor& x, const Pool2dOptions& o, Where where) {
  Attrs attrs = Attrs().ints(TN_KEY_LO, o.pad_lo).ints(TN_KEY_HI, o.pad_hi).ints(TN_KEY_STRIDES, o.stride)
                    .ints(TN_KEY_DILATIONS, o.dilation).ints(TN_KEY_KERNEL, o.kernel);
  if (number == TN_OPID_AVG_POOL2D) attrs.i64(TN_KEY_INCLUDE_PAD, o.include_pad);
  return call(number, {{&x}, &attrs}, where);
}
}  // namespace
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& o, Where where) { return pool(TN_OPID_MAX_POOL2D, x, o, where); }
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& o, Where where) { return pool(TN_OPID_AVG_POOL2D, x, o, where); }

void sgd_step_(Tensor& p, const Tensor& g, Tensor& buffer, double lr, double momentum, double weight_decay, double dampening,
               bool nesterov, Where where) {
  require_defined(p, "sgd_step", "p", where);
  require_defined(g, "sgd_step", "g", where);
  const DType c = compute_type(p.dtype());
  const uint64_t push[5] = {scalar_bits(c, lr), scalar_bits(c, momentum), scalar_bits(c, weight_decay), scalar_bits(c, dampening),
                            scalar_bits(c, nesterov ? 1 : 0)};
  TensorImpl* out[2] = {p.impl(), buffer.defined() ? buffer.impl() : nullptr};  // no momentum: no second result
  run_args(TN_OPID_SGD_STEP, {{&p, &g, &buffer}, nullptr, push, 5, 2, 2}, where, out, true);
}
void adam_step_(Tensor& p, const Tensor& g, Tensor& m, Tensor& v, const AdamScalars& s, Where where) {
  require_defined(p, "adam_step", "p", where);
  const DType c = compute_type(p.dtype());
  const double values[8] = {s.lr, s.beta1, s.beta2, s.epsilon, s.decay_coupled, s.decay_decoupled, s.bias1, s.bias2};
  uint64_t push[8];
  for (int i = 0; i < 8; ++i) push[i] = scalar_bits(c, values[i]);
  TensorImpl* out[3] = {p.impl(), m.impl(), v.impl()};
  run_args(TN_OPID_ADAM_STEP, {{&p, &g, &m, &v}, nullptr, push, 8, 3, 4}, where, out, true);
}

}  // namespace tenon
