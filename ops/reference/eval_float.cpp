// ops/reference/eval_float.cpp - opcodes over f32 and f64.
#include "ops/reference/eval.h"

namespace tenon::reference {
namespace {

// f32 functions are computed in f64 and rounded once, so their error is hardly above half an ULP.
template <class T> using Compute = double;

template <class T> EvalFn rounding_and_sign(uint32_t op) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kSign = Bits{1} << (sizeof(T) * 8 - 1);
  switch (op) {
    case TN_OP_NEG: return unary<T>([](T x) { return std::bit_cast<T>(std::bit_cast<Bits>(x) ^ kSign); });
    case TN_OP_ABS: return unary<T>([](T x) { return std::bit_cast<T>(std::bit_cast<Bits>(x) & ~kSign); });
    case TN_OP_SIGN: return unary<T>([](T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; });  // +-0 and NaN: themselves
    case TN_OP_FLOOR: return unary<T>([](T x) { return std::floor(x); });
    case TN_OP_CEIL: return unary<T>([](T x) { return std::ceil(x); });
    case TN_OP_TRUNC: return unary<T>([](T x) { return std::trunc(x); });
    case TN_OP_RINT: return unary<T>([](T x) { return std::rint(x); });  // the default environment: ties to even
    case TN_OP_ISNAN: return unary<T>([](T x) { return static_cast<uint8_t>(x != x); });
    default: return nullptr;
  }
}

template <class T> EvalFn transcendental(uint32_t op) {
  using C = Compute<T>;
  switch (op) {
    case TN_OP_SQRT: return unary<T>([](T x) { return std::sqrt(x); });
    case TN_OP_RSQRT: return unary<T>([](T x) { return static_cast<T>(C(1) / std::sqrt(C(x))); });
    case TN_OP_EXP: return unary<T>([](T x) { return static_cast<T>(std::exp(C(x))); });
    case TN_OP_EXPM1: return unary<T>([](T x) { return static_cast<T>(std::expm1(C(x))); });
    case TN_OP_LOG: return unary<T>([](T x) { return static_cast<T>(std::log(C(x))); });
    case TN_OP_LOG1P: return unary<T>([](T x) { return static_cast<T>(std::log1p(C(x))); });
    case TN_OP_SIN: return unary<T>([](T x) { return static_cast<T>(std::sin(C(x))); });
    case TN_OP_COS: return unary<T>([](T x) { return static_cast<T>(std::cos(C(x))); });
    case TN_OP_ATAN: return unary<T>([](T x) { return static_cast<T>(std::atan(C(x))); });
    case TN_OP_TANH: return unary<T>([](T x) { return static_cast<T>(std::tanh(C(x))); });
    case TN_OP_ERF: return unary<T>([](T x) { return static_cast<T>(std::erf(C(x))); });
    case TN_OP_POW: return binary<T>([](T a, T b) { return static_cast<T>(std::pow(C(a), C(b))); });
    case TN_OP_ATAN2: return binary<T>([](T a, T b) { return static_cast<T>(std::atan2(C(a), C(b))); });
    default: return nullptr;
  }
}

template <class T> EvalFn arithmetic(uint32_t op) {
  switch (op) {
    case TN_OP_ADD: return binary<T>([](T a, T b) { return a + b; });
    case TN_OP_SUB: return binary<T>([](T a, T b) { return a - b; });
    case TN_OP_MUL: return binary<T>([](T a, T b) { return a * b; });
    case TN_OP_DIV: return binary<T>([](T a, T b) { return a / b; });
    case TN_OP_REM: return binary<T>([](T a, T b) { return std::fmod(a, b); });
    case TN_OP_MIN: return binary<T>([](T a, T b) { return least(a, b); });
    case TN_OP_MAX: return binary<T>([](T a, T b) { return greatest(a, b); });
    case TN_OP_FMA:
      return [](int64_t n, void* dst, const void* a, const void* b, const void* c) {
        const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
        T* d = static_cast<T*>(dst);
        for (int64_t i = 0; i < n; ++i) d[i] = std::fma(x[i], y[i], z[i]);
      };
    case TN_OP_LT: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a < b); });
    case TN_OP_LE: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a <= b); });
    case TN_OP_EQ: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a == b); });
    case TN_OP_NE: return binary<T>([](T a, T b) { return static_cast<uint8_t>(a != b); });
    default: return nullptr;
  }
}

template <class T> EvalFn any_of(uint32_t op) {
  if (EvalFn f = rounding_and_sign<T>(op)) return f;
  if (EvalFn f = transcendental<T>(op)) return f;
  return arithmetic<T>(op);
}

}  // namespace

EvalFn eval_float_fn(uint32_t op, uint32_t operand) {
  return operand == TN_F32 ? any_of<float>(op) : operand == TN_F64 ? any_of<double>(op) : nullptr;
}

}  // namespace tenon::reference
