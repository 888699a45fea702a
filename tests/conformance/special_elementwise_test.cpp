// Elementwise ops over NaN, infinities, signed zeros, subnormal numbers, limits and halves, at every position of vectors of
// 0 to 70 elements, aligned and not: the class of the exact result, and its value within the op's bound.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <cmath>
#include <cstring>

#include "tests/conformance/everywhere.h"
#include "tools/conformance/formulas.h"

namespace tenon::conformance {
namespace {

std::vector<int64_t> lengths() {
  std::vector<int64_t> list;
  for (int64_t n = 0; n <= 70; ++n)
    if (full_run() || n < 4 || n == 7 || n == 8 || n == 9 || n == 15 || n == 17 || n == 31 || n == 33 || n == 64 || n == 70) list.push_back(n);
  return list;
}

struct Inputs {
  Call call;
  std::vector<std::vector<Number>> at;  // per element: a, b, c as the formula takes them
};

// Operands run through all combinations of special values, going on from one length to the next.
Inputs inputs(const ops::OpDecl& decl, uint32_t dtype, int64_t n, size_t* turn) {
  const std::vector<Number> values = special_values(dtype);
  const size_t s = values.size(), arity = decl.def.n_in;
  Inputs made;
  made.call.op = decl.def.name;
  const bool chosen = std::strcmp(decl.def.name, "where") == 0;
  for (size_t k = 0; k < arity; ++k) {
    Array a{k == 0 && chosen ? uint32_t{TN_BOOL} : dtype, {n}, {}};
    a.skip = k == 0 ? n % 3 : 0;
    made.call.in.push_back(a);
  }
  std::vector<double> push;
  if (std::strcmp(decl.def.name, "clamp") == 0) push = ops::is_float(dtype) ? std::vector<double>{-1.5, 2.5} : std::vector<double>{1, 100};
  if (std::strcmp(decl.def.name, "leaky_relu") == 0) push = {0.125};
  made.call.push = push_slots(push, 0, ops::compute_type(dtype));
  for (int64_t i = 0; i < n; ++i) {
    const size_t t = (*turn)++;
    const size_t index[] = {t % s, (t / s + t) % s, (t / (s * s) + 3 * t) % s};
    std::vector<Number> args;
    for (size_t k = 0; k < arity; ++k) {
      const Number v = k == 0 && chosen ? static_cast<Number>(t & 1) : values[index[k]];
      made.call.in[k].v.push_back(v);
      args.push_back(v);
    }
    for (double p : push) args.push_back(p);
    args.resize(3, 0);
    made.at.push_back(args);
  }
  return made;
}

bool gives_bool(const std::string& op) {
  for (const char* name : {"isnan", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_not", "logical_and", "logical_or", "logical_xor"})
    if (op == name) return true;
  return false;
}

Expected expected_of(const ops::OpDecl& decl, uint32_t dtype, const Inputs& in) {
  const FloatFormula exact = float_formula(decl.def.name);
  const IntegerFormula whole = integer_formula(decl.def.name);
  Array y{gives_bool(decl.def.name) ? uint32_t{TN_BOOL} : dtype, {static_cast<int64_t>(in.at.size())}, {}};
  Bound bound;
  bound.ulps = static_cast<Number>(decl.ulp_f32);
  for (const auto& a : in.at) {
    if (ops::is_float(dtype)) {
      Number v = exact(a[0], a[1], a[2]);
      // Composites work in the compute type: what overflows there is infinite.
      y.v.push_back(v);
      if (std::strcmp(decl.def.name, "gelu") == 0) bound.scale.push_back(std::isfinite(a[0]) ? std::fabs(a[0]) : 0);
    } else {
      const Wide v = whole(static_cast<Wide>(a[0]), static_cast<Wide>(a[1]), static_cast<Wide>(a[2]), static_cast<Wide>(lowest_integer(dtype)));
      y.v.push_back(gives_bool(decl.def.name) ? static_cast<Number>(v) : wrapped(dtype, v));
    }
  }
  return {{y}, {bound}};
}

std::vector<const ops::OpDecl*> elementwise_decls() {
  std::vector<const ops::OpDecl*> list;
  for (const ops::OpDecl* d : all_decls()) {
    const std::string family = family_of(d->def.name);
    if (family == "unary" || family == "binary" || family == "ternary") list.push_back(d);
  }
  return list;
}

class SpecialValues : public testing::TestWithParam<const ops::OpDecl*> {};

TEST_P(SpecialValues, give_the_class_of_the_exact_result_elementwise) {
  const ops::OpDecl& decl = *GetParam();
  int failures = 0, calls = 0, tried = 0;
  for (uint32_t dtype : dtypes_of(decl)) {
    const bool is_float = ops::is_float(dtype);
    ASSERT_TRUE(is_float ? float_formula(decl.def.name) != nullptr : integer_formula(decl.def.name) != nullptr) << "no formula";
    // The sample: f32 and f16, one small and one large integer type.
    if (!full_run() && dtype != TN_F32 && dtype != TN_F16 && dtype != TN_BOOL && dtype != TN_I8 && dtype != TN_I64) continue;
    size_t turn = 0;
    for (int64_t n : lengths()) {
      if (!full_run() && dtype != TN_F32 && ++tried % 2 == 0) continue;
      const Inputs in = inputs(decl, dtype, n, &turn);
      const std::string text = differences(in.call, expected_of(decl, dtype, in), full_run() || (dtype == TN_F32 && n % 8 == 1), &calls);
      if (!text.empty() && failures++ < 2) ADD_FAILURE() << text;
    }
  }
  EXPECT_GT(calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Op, SpecialValues, testing::ValuesIn(elementwise_decls()), DeclName());

}  // namespace
}  // namespace tenon::conformance
