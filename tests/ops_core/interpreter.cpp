#include "tests/ops_core/interpreter.h"

#include <cmath>
#include <cstring>

namespace tenon::test {
namespace {

bool is_integer(uint32_t t) { return t >= TN_U4 && t <= TN_I64; }

template <class T>
Real as(uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof v);
  return static_cast<Real>(v);
}

Real unary(const tn_inst& i, uint32_t type, Real a) {
  switch (i.op) {
    case TN_OP_CAST:
      if (i.type == TN_BOOL) return a != 0;
      return is_integer(i.type) ? std::trunc(a) : a;
    case TN_OP_ISNAN: return std::isnan(a);
    case TN_OP_NEG: return -a;
    case TN_OP_ABS: return std::fabs(a);
    case TN_OP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
    case TN_OP_FLOOR: return std::floor(a);
    case TN_OP_CEIL: return std::ceil(a);
    case TN_OP_TRUNC: return std::trunc(a);
    case TN_OP_RINT: return std::rint(a);
    case TN_OP_SQRT: return std::sqrt(a);
    case TN_OP_RSQRT: return 1 / std::sqrt(a);
    case TN_OP_EXP: return std::exp(a);
    case TN_OP_EXPM1: return std::expm1(a);
    case TN_OP_LOG: return std::log(a);
    case TN_OP_LOG1P: return std::log1p(a);
    case TN_OP_SIN: return std::sin(a);
    case TN_OP_COS: return std::cos(a);
    case TN_OP_ATAN: return std::atan(a);
    case TN_OP_TANH: return std::tanh(a);
    case TN_OP_ERF: return std::erf(a);
    case TN_OP_NOT: return type == TN_BOOL ? a == 0 : static_cast<Real>(~static_cast<int64_t>(a));
    default: return NAN;
  }
}

Real binary(const tn_inst& i, uint32_t type, Real a, Real b) {
  const auto bits = [](Real v) { return static_cast<int64_t>(v); };
  switch (i.op) {
    case TN_OP_ADD: return a + b;
    case TN_OP_SUB: return a - b;
    case TN_OP_MUL: return a * b;
    case TN_OP_DIV: return is_integer(type) ? (b == 0 ? 0 : std::trunc(a / b)) : a / b;
    case TN_OP_REM: return is_integer(type) && b == 0 ? 0 : std::fmod(a, b);
    case TN_OP_POW: return std::pow(a, b);
    case TN_OP_MIN: return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
    case TN_OP_MAX: return std::isnan(a) || std::isnan(b) ? NAN : a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
    case TN_OP_ATAN2: return std::atan2(a, b);
    case TN_OP_LT: return a < b;
    case TN_OP_LE: return a <= b;
    case TN_OP_EQ: return a == b;
    case TN_OP_NE: return a != b;
    case TN_OP_AND: return static_cast<Real>(bits(a) & bits(b));
    case TN_OP_OR: return static_cast<Real>(bits(a) | bits(b));
    case TN_OP_XOR: return static_cast<Real>(bits(a) ^ bits(b));
    default: return NAN;
  }
}

int64_t flat(const std::vector<int64_t>& index, const std::vector<int64_t>& dims) {
  int64_t n = 0;
  for (size_t i = 0; i < dims.size(); ++i) n = n * dims[i] + index[i];
  return n;
}

}  // namespace

Real number_of(uint64_t bits, uint32_t dtype) {
  switch (dtype) {
    case TN_F32: return as<float>(bits);
    case TN_F64: return as<double>(bits);
    case TN_I8: return as<int8_t>(bits);
    case TN_I32: return as<int32_t>(bits);
    case TN_I64: return as<int64_t>(bits);
    case TN_U8: case TN_BOOL: return as<uint8_t>(bits);
    default: return as<uint64_t>(bits);
  }
}

std::vector<Real> run_program(const tn_program& p, const std::vector<Real>& in, const std::vector<uint64_t>& push,
                              const std::vector<int64_t>& index, const std::vector<int64_t>& dims) {
  std::vector<Real> v(p.n_inst);
  for (uint32_t k = 0; k < p.n_inst; ++k) {
    const tn_inst& i = p.inst[k];
    const uint32_t type = i.op > TN_OP_INDEX ? p.inst[i.a].type : 0u;
    switch (i.op) {
      case TN_OP_INPUT: v[k] = in.at(i.a); break;
      case TN_OP_CONST: v[k] = number_of(push.at(i.a), i.type); break;
      case TN_OP_INDEX: v[k] = static_cast<Real>(i.a == TN_INDEX_FLAT ? flat(index, dims) : index.at(i.a)); break;
      case TN_OP_SELECT: v[k] = v[i.a] != 0 ? v[i.b] : v[i.c]; break;
      case TN_OP_FMA: v[k] = v[i.a] * v[i.b] + v[i.c]; break;
      default: v[k] = i.op >= TN_OP_ADD && i.op != TN_OP_NOT ? binary(i, type, v[i.a], v[i.b]) : unary(i, type, v[i.a]);
    }
  }
  std::vector<Real> out;
  for (uint32_t k = 0; k < p.n_out; ++k) out.push_back(v[p.out[k]]);
  return out;
}

}  // namespace tenon::test
