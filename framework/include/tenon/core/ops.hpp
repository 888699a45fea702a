// tenon/core/ops.hpp - the ops as functions. What each computes, with its corner cases, is in docs/semantics.md.
//
//   Tensor y = relu(matmul(x, w) + b);      Tensor m = mean(y, {-1}, true);      Tensor h = where(x > 0, x, 0.1 * x);
//
// Operands of one op have one element type (nothing is promoted silently) and broadcast by NumPy's rule. A number beside
// a tensor is converted to the tensor's compute type; it must be exact for integers (TN-DTYPE-101). Every function returns
// before the device is done and records itself for gradients when an operand requires one.
#pragma once
#include <tenon/core/tensor.hpp>
#include <tenon/ops.def>

namespace tenon {

// A tensor or a number, with the line that wrote it: lets operators name their source line in errors.
class Operand {
 public:
  Operand(const Tensor& t, Where w = here()) : where(w), tensor(&t) {}
  template <class T> requires std::is_floating_point_v<T>
  Operand(T v, Where w = here()) : where(w), real(static_cast<double>(v)) {}
  template <class T> requires(std::is_integral_v<T>)
  Operand(T v, Where w = here()) : where(w), is_integer(true), is_unsigned(std::is_unsigned_v<T>), integer(static_cast<int64_t>(v)) {}
  Where where;
  const Tensor* tensor = nullptr;
  bool is_integer = false, is_unsigned = false;
  double real = 0;
  int64_t integer = 0;
};

// ---- one input
#define TENON_UNARY(X) X(neg, NEG) X(abs, ABS) X(sign, SIGN) X(floor, FLOOR) X(ceil, CEIL) X(trunc, TRUNC) X(round, ROUND) \
  X(sqrt, SQRT) X(rsqrt, RSQRT) X(exp, EXP) X(expm1, EXPM1) X(log, LOG) X(log1p, LOG1P) X(sin, SIN) X(cos, COS) \
  X(tanh, TANH) X(atan, ATAN) X(erf, ERF) X(square, SQUARE) X(reciprocal, RECIPROCAL) X(isnan, ISNAN) \
  X(logical_not, LOGICAL_NOT) X(relu, RELU) X(sigmoid, SIGMOID) X(silu, SILU) X(softplus, SOFTPLUS)
#define TENON_DECLARE(name, NAME) Tensor name(const Tensor& x, Where where = here());
TENON_UNARY(TENON_DECLARE)
#undef TENON_DECLARE
enum class Gelu { exact = 0, tanh = 1 };
Tensor gelu(const Tensor& x, Gelu form = Gelu::exact, Where where = here());
Tensor leaky_relu(const Tensor& x, double slope = 0.01, Where where = here());
Tensor clamp(const Tensor& x, double low, double high, Where where = here());  // NaN stays NaN
Tensor cast(const Tensor& x, DType t, Where where = here());

// ---- two inputs, of which one may be a number
#define TENON_BINARY(X) X(add, ADD) X(sub, SUB) X(mul, MUL) X(div, DIV) X(rem, REM) X(pow, POW) X(minimum, MINIMUM) \
  X(maximum, MAXIMUM) X(atan2, ATAN2) X(equal, EQUAL) X(not_equal, NOT_EQUAL) X(less, LESS) X(less_equal, LESS_EQUAL) \
  X(greater, GREATER) X(greater_equal, GREATER_EQUAL) X(logical_and, LOGICAL_AND) X(logical_or, LOGICAL_OR) \
  X(logical_xor, LOGICAL_XOR)
#define TENON_DECLARE(name, NAME) \
  Tensor name(const Tensor& a, const Tensor& b, Where where = here()); \
  Tensor name(Operand a, Operand b);
TENON_BINARY(TENON_DECLARE)
#undef TENON_DECLARE
inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
inline Tensor operator<(Operand a, Operand b) { return less(a, b); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
inline Tensor operator>(Operand a, Operand b) { return greater(a, b); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }
inline Tensor operator==(Operand a, Operand b) { return equal(a, b); }
inline Tensor operator!=(Operand a, Operand b) { return not_equal(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }

// ---- three inputs
Tensor where(const Tensor& condition, Operand a, Operand b);  // the side not chosen has no effect, on gradients either
Tensor fma(const Tensor& a, const Tensor& b, const Tensor& c, Where where = here());

// ---- reductions: axes {} = all of them; negative axes count from the end
using Axes = std::initializer_list<int64_t>;
#define TENON_REDUCTION(X) X(sum, SUM) X(mean, MEAN) X(prod, PROD) X(max, MAX) X(min, MIN) X(any, ANY) X(all, ALL) \
  X(logsumexp, LOGSUMEXP) X(variance, VARIANCE)
#define TENON_DECLARE(name, NAME) \
  Tensor name(const Tensor& x, std::span<const int64_t> axes, bool keepdims, Where where); \
  inline Tensor name(const Tensor& x, Axes axes = {}, bool keepdims = false, Where where = here()) { \
    return name(x, std::span<const int64_t>(axes.begin(), axes.size()), keepdims, where); \
  }
TENON_REDUCTION(TENON_DECLARE)
#undef TENON_DECLARE
Tensor argmax(const Tensor& x, int64_t axis = -1, bool keepdims = false, Where where = here());  // i64, the first of equals
Tensor argmin(const Tensor& x, int64_t axis = -1, bool keepdims = false, Where where = here());

// ---- products
Tensor matmul(const Tensor& a, const Tensor& b, Where where = here());  // [..., m, k] x [..., k, n]; vectors as in NumPy
// weight [k, n] (any strides) stored once as the fastest product of this machine reads it; matmul(x, packed) then arranges
// nothing anew. For inference: x of weight's type (u8 for an i8 weight), any number of rows; `rows` is the usual one, which
// decides among the kernels. The result can only be the right operand of matmul on its device while no gradient is recorded
// (TN-GRAD-016); it cannot be read, copied, moved, viewed or saved (TN-OP-130): keep the weight, and pack again after a change.
Tensor prepack(const Tensor& weight, int64_t rows = 256, Where where = here());
// x [..., in], weight [out, in], bias [out] or undefined -> [..., out]
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Where where = here());

// ---- movement
Tensor concat(std::span<const Tensor> parts, int64_t axis = 0, Where where = here());
inline Tensor concat(std::initializer_list<Tensor> parts, int64_t axis = 0, Where where = here()) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis, where);
}
Tensor stack(std::span<const Tensor> parts, int64_t axis = 0, Where where = here());
Tensor pad(const Tensor& x, const Shape& lo, const Shape& hi, double value = 0, Where where = here());  // one entry per axis
Tensor one_hot(const Tensor& index, int64_t depth, DType t = DType::f32, Where where = here());
Tensor gather(const Tensor& data, const Tensor& index, int64_t axis, Where where = here());
Tensor take(const Tensor& data, const Tensor& index, int64_t axis = 0, Where where = here());
enum class Scatter { set = 0, add = 1, mul = 2, min = 3, max = 4 };
Tensor scatter(const Tensor& data, const Tensor& index, const Tensor& updates, int64_t axis, Scatter mode = Scatter::set,
               Where where = here());
Tensor tril(const Tensor& x, int64_t diagonal = 0, Where where = here());  // zeros above the diagonal of the last two axes

// ---- normalising and losses
Tensor softmax(const Tensor& x, int64_t axis = -1, Where where = here());
Tensor log_softmax(const Tensor& x, int64_t axis = -1, Where where = here());
// logits [n, c], target i32 or i64 [n] -> loss per row [n]; rows whose target is ignore_index give 0
Tensor cross_entropy_rows(const Tensor& logits, const Tensor& target, int64_t ignore_index = -100, Where where = here());
// over the last axes from `axis`; scale and bias may be undefined
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis = -1, double epsilon = 1e-5,
                  Where where = here());
struct BatchNormResult { Tensor y, mean, variance; };  // biased variance
BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon = 1e-5, Where where = here());
Tensor batch_norm_infer(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean, const Tensor& variance,
                        double epsilon = 1e-5, Where where = here());

// ---- convolution and pooling: sizes are [H, W]
struct Conv2dOptions {
  int64_t stride[2] = {1, 1}, pad_lo[2] = {0, 0}, pad_hi[2] = {0, 0}, dilation[2] = {1, 1};
  int64_t groups = 1;
};
// x [N,C,H,W], weight [O,C/groups,KH,KW], bias [O] or undefined; cross-correlation
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& o = {}, Where where = here());
struct Pool2dOptions {
  int64_t kernel[2] = {2, 2}, stride[2] = {2, 2}, pad_lo[2] = {0, 0}, pad_hi[2] = {0, 0}, dilation[2] = {1, 1};
  bool include_pad = false;  // average pooling only
};
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& o = {}, Where where = here());
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& o = {}, Where where = here());

// ---- random
Tensor dropout(const Tensor& x, double rate, Generator* generator = nullptr, Where where = here());  // x / (1 - rate), or 0

// ---- optimizer steps, in place (see optim/)
void sgd_step_(Tensor& p, const Tensor& g, Tensor& momentum_buffer, double lr, double momentum, double weight_decay,
               double dampening, bool nesterov, Where where = here());
struct AdamScalars { double lr, beta1, beta2, epsilon, decay_coupled, decay_decoupled, bias1, bias2; };
void adam_step_(Tensor& p, const Tensor& g, Tensor& m, Tensor& v, const AdamScalars& s, Where where = here());

}  // namespace tenon
