#include "tools/conformance/formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tenon::conformance {
namespace {

using N = Number;
constexpr N kInf = std::numeric_limits<N>::infinity();
constexpr N kNan = std::numeric_limits<N>::quiet_NaN();

// IEEE 754-2019 maximum: a NaN wins, -0 is below +0.
N larger(N a, N b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

N smaller(N a, N b) { return -larger(-a, -b); }

N sign(N a, N, N) { return std::isnan(a) || a == 0 ? a : a > 0 ? 1 : -1; }
N square(N a, N, N) { return a * a; }
N sigmoid(N a, N, N) { return 1 / (1 + std::exp(-a)); }
N silu(N a, N, N) { return std::isinf(a) && a < 0 ? kNan : a / (1 + std::exp(-a)); }
N gelu(N a, N, N) { return a / 2 * (1 + std::erf(a / std::sqrt(N{2}))); }
N softplus(N a, N, N) { return std::isnan(a) ? a : std::max(a, N{0}) + std::log1p(std::exp(-std::fabs(a))); }
N relu(N a, N, N) { return std::isnan(a) ? a : a > 0 ? a : 0; }
N leaky(N a, N slope, N) { return std::isnan(a) || a > 0 ? a : a * slope; }
N clamped(N a, N lo, N hi) { return std::isnan(a) ? a : smaller(larger(a, lo), hi); }

const std::map<std::string, FloatFormula>& float_table() {
  static const std::map<std::string, FloatFormula> table = {
      {"neg", [](N a, N, N) { return -a; }}, {"abs", [](N a, N, N) { return std::fabs(a); }}, {"sign", sign},
      {"floor", [](N a, N, N) { return std::floor(a); }}, {"ceil", [](N a, N, N) { return std::ceil(a); }},
      {"trunc", [](N a, N, N) { return std::trunc(a); }}, {"round", [](N a, N, N) { return std::rint(a); }},
      {"sqrt", [](N a, N, N) { return std::sqrt(a); }}, {"rsqrt", [](N a, N, N) { return 1 / std::sqrt(a); }},
      {"exp", [](N a, N, N) { return std::exp(a); }}, {"expm1", [](N a, N, N) { return std::expm1(a); }},
      {"log", [](N a, N, N) { return std::log(a); }}, {"log1p", [](N a, N, N) { return std::log1p(a); }},
      {"sin", [](N a, N, N) { return std::sin(a); }}, {"cos", [](N a, N, N) { return std::cos(a); }},
      {"tanh", [](N a, N, N) { return std::tanh(a); }}, {"atan", [](N a, N, N) { return std::atan(a); }},
      {"erf", [](N a, N, N) { return std::erf(a); }}, {"square", square}, {"reciprocal", [](N a, N, N) { return 1 / a; }},
      {"isnan", [](N a, N, N) { return N(std::isnan(a)); }}, {"relu", relu}, {"sigmoid", sigmoid}, {"silu", silu}, {"gelu", gelu},
      {"leaky_relu", leaky}, {"softplus", softplus}, {"clamp", clamped},
      {"add", [](N a, N b, N) { return a + b; }}, {"sub", [](N a, N b, N) { return a - b; }}, {"mul", [](N a, N b, N) { return a * b; }},
      {"div", [](N a, N b, N) { return a / b; }}, {"rem", [](N a, N b, N) { return std::fmod(a, b); }},
      {"pow", [](N a, N b, N) { return std::pow(a, b); }}, {"atan2", [](N a, N b, N) { return std::atan2(a, b); }},
      {"minimum", [](N a, N b, N) { return smaller(a, b); }}, {"maximum", [](N a, N b, N) { return larger(a, b); }},
      {"equal", [](N a, N b, N) { return N(a == b); }}, {"not_equal", [](N a, N b, N) { return N(a != b); }},
      {"less", [](N a, N b, N) { return N(a < b); }}, {"less_equal", [](N a, N b, N) { return N(a <= b); }},
      {"greater", [](N a, N b, N) { return N(a > b); }}, {"greater_equal", [](N a, N b, N) { return N(a >= b); }},
      {"where", [](N a, N b, N c) { return a != 0 ? b : c; }}, {"fma", [](N a, N b, N c) { return a * b + c; }}};
  return table;
}

Wide power(Wide a, Wide b, Wide, Wide) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  auto base = static_cast<uint64_t>(a);
  uint64_t result = 1;
  for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1, base *= base)
    if ((e & 1) != 0) result *= base;
  return static_cast<Wide>(result);
}

const std::map<std::string, IntegerFormula>& integer_table() {
  using W = Wide;
  static constexpr auto same = [](W a, W, W, W) { return a; };
  static const std::map<std::string, IntegerFormula> table = {
      {"neg", [](W a, W, W, W) { return -a; }}, {"abs", [](W a, W, W, W) { return a < 0 ? -a : a; }},
      {"sign", [](W a, W, W, W) { return W((a > 0) - (a < 0)); }}, {"floor", same}, {"ceil", same}, {"trunc", same}, {"round", same},
      {"square", [](W a, W, W, W) { return W(static_cast<UWide>(a) * static_cast<UWide>(a)); }},
      {"isnan", [](W, W, W, W) { return W{0}; }}, {"relu", [](W a, W, W, W) { return a > 0 ? a : W{0}; }},
      {"clamp", [](W a, W b, W c, W) { return std::min(std::max(a, b), c); }},
      {"logical_not", [](W a, W, W, W) { return W(a == 0); }},
      {"add", [](W a, W b, W, W) { return a + b; }}, {"sub", [](W a, W b, W, W) { return a - b; }},
      {"mul", [](W a, W b, W, W) { return W(static_cast<UWide>(a) * static_cast<UWide>(b)); }},
      {"div", [](W a, W b, W, W) { return b == 0 ? W{0} : a / b; }}, {"rem", [](W a, W b, W, W) { return b == 0 ? W{0} : a % b; }},
      {"pow", power}, {"minimum", [](W a, W b, W, W) { return std::min(a, b); }}, {"maximum", [](W a, W b, W, W) { return std::max(a, b); }},
      {"equal", [](W a, W b, W, W) { return W(a == b); }}, {"not_equal", [](W a, W b, W, W) { return W(a != b); }},
      {"less", [](W a, W b, W, W) { return W(a < b); }}, {"less_equal", [](W a, W b, W, W) { return W(a <= b); }},
      {"greater", [](W a, W b, W, W) { return W(a > b); }}, {"greater_equal", [](W a, W b, W, W) { return W(a >= b); }},
      {"logical_and", [](W a, W b, W, W) { return W(a != 0 && b != 0); }}, {"logical_or", [](W a, W b, W, W) { return W(a != 0 || b != 0); }},
      {"logical_xor", [](W a, W b, W, W) { return W((a != 0) != (b != 0)); }},
      {"where", [](W a, W b, W c, W) { return a != 0 ? b : c; }},
      {"fma", [](W a, W b, W c, W) { return W(static_cast<UWide>(a) * static_cast<UWide>(b) + static_cast<UWide>(c)); }}};
  return table;
}

using Row = std::vector<N>;

N total(const Row& r) {
  N sum = 0;
  for (N v : r) sum += v;
  return sum;
}

N extreme(const Row& r, N (*pick)(N, N), N identity) {
  N top = identity;
  for (N v : r) top = pick(top, v);
  return top;
}

N mean(const Row& r) { return total(r) / static_cast<N>(r.size()); }

N spread(const Row& r) {
  const N m = mean(r);
  N sum = 0;
  for (N v : r) sum += (v - m) * (v - m);
  return sum / static_cast<N>(r.size());
}

Row softmax(const Row& r) {
  const N top = extreme(r, larger, -kInf);
  Row y;
  for (N v : r) y.push_back(std::exp(v - top));
  const N sum = total(y);
  for (N& v : y) v /= sum;
  return y;
}

Row log_softmax(const Row& r) {
  const N top = extreme(r, larger, -kInf);
  N sum = 0;
  for (N v : r) sum += std::exp(v - top);
  Row y;
  for (N v : r) y.push_back(v - top - std::log(sum));
  return y;
}

N log_sum(const Row& r) {
  const N top = extreme(r, larger, -kInf);
  if (std::isinf(top)) return top;
  N sum = 0;
  for (N v : r) sum += std::exp(v - top);
  return top + std::log(sum);
}

Row normalised(const Row& r) {
  const N m = mean(r), scale = 1 / std::sqrt(spread(r) + 1e-5L);
  Row y;
  for (N v : r) y.push_back((v - m) * scale);
  return y;
}

// The first NaN, else the first of the largest.
N first_largest(const Row& r, N sign_) {
  size_t best = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    if (std::isnan(r[i])) return static_cast<N>(i);
    if (sign_ * r[i] > sign_ * r[best]) best = i;
  }
  return static_cast<N>(best);
}

const std::map<std::string, RowFormula>& row_table() {
  static const std::map<std::string, RowFormula> table = {
      {"sum", [](const Row& r) { return Row{total(r)}; }}, {"mean", [](const Row& r) { return Row{mean(r)}; }},
      {"prod", [](const Row& r) { N p = 1; for (N v : r) p *= v; return Row{p}; }},
      {"max", [](const Row& r) { return Row{extreme(r, larger, -kInf)}; }}, {"min", [](const Row& r) { return Row{extreme(r, smaller, kInf)}; }},
      {"any", [](const Row& r) { return Row{N(std::any_of(r.begin(), r.end(), [](N v) { return v != 0; }))}; }},
      {"all", [](const Row& r) { return Row{N(std::all_of(r.begin(), r.end(), [](N v) { return v != 0; }))}; }},
      {"logsumexp", [](const Row& r) { return Row{log_sum(r)}; }}, {"variance", [](const Row& r) { return Row{spread(r)}; }},
      {"argmax", [](const Row& r) { return Row{first_largest(r, 1)}; }}, {"argmin", [](const Row& r) { return Row{first_largest(r, -1)}; }},
      {"softmax", softmax}, {"log_softmax", log_softmax}, {"layer_norm", normalised}};
  return table;
}

template <class Table>
auto look_up(const Table& table, const std::string& op) -> decltype(table.begin()->second) {
  const auto at = table.find(op);
  return at == table.end() ? nullptr : at->second;
}

}  // namespace

FloatFormula float_formula(const std::string& op) { return look_up(float_table(), op); }
IntegerFormula integer_formula(const std::string& op) { return look_up(integer_table(), op); }
RowFormula row_formula(const std::string& op) { return look_up(row_table(), op); }

Number wrapped(uint32_t dtype, Wide value) {
  const int bits = 8 * static_cast<int>(byte_size(dtype));
  auto low = static_cast<uint64_t>(value);
  if (dtype == TN_BOOL) return value != 0;
  if (bits < 64) low &= (uint64_t{1} << bits) - 1;
  const bool negative = lowest_integer(dtype) < 0 && (low >> (bits - 1) & 1) != 0;
  return static_cast<Number>(low) - (negative ? std::scalbn(Number{1}, bits) : 0);
}

}  // namespace tenon::conformance
