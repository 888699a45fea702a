// Reductions, normalised rows and index ops with one odd value at the first, middle or last place of rows of 0 to 70
// elements, rows along the last axis and along the first.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cases.h"
#include "tests/conformance/everywhere.h"
#include "tools/conformance/formulas.h"

namespace tenon::conformance {
namespace {

using Row = std::vector<Number>;
constexpr Number kInf = std::numeric_limits<Number>::infinity();
constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();

bool one_of(const std::string& op, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return op == n; });
}

// The largest finite numbers leave the range in between where squares are taken; that is no corner case of the op.
bool squares(const std::string& op) { return one_of(op, {"variance", "layer_norm"}); }

std::vector<Row> odd_rows(const std::string& op, uint32_t dtype, size_t n) {
  const bool is_float = ops::is_float(dtype);
  Row plain(n);
  for (size_t i = 0; i < n; ++i) {
    const Number size = is_float ? 0.5L + static_cast<Number>(i * 5 % 16) / 32 : static_cast<Number>(i * 7 % 3 + 1);
    plain[i] = i % 3 == 1 && (is_float || lowest_integer(dtype) < 0) ? -size : size;
    if (dtype == TN_BOOL) plain[i] = op == "any" ? 0 : 1;
  }
  std::vector<Row> rows{plain};
  if (n == 0) return rows;
  for (Number v : special_values(dtype)) {
    if (std::isfinite(v) && squares(op) && std::fabs(v) > 1000) continue;
    for (const size_t at : {size_t{0}, n / 2, n - 1}) {
      rows.push_back(plain);
      rows.back()[at] = v;
    }
    if (std::isfinite(v) && v != 0 && !(is_float && std::fabs(v) <= 1)) continue;
    rows.push_back(Row(n, v));
  }
  if (!is_float) return rows;
  for (const auto& [a, b] : {std::pair{kInf, -kInf}, {-kInf, kInf}, {kNan, kInf}, {-kInf, kNan}, {Number{0}, Number{-0.0L}}, {Number{-0.0L}, Number{0}}}) {
    rows.push_back(plain);
    rows.back().front() = a;
    rows.back().back() = b;
    rows.push_back(Row(n, a));
    rows.back().back() = b;
  }
  return rows;
}

Number size_of(const Row& row) {
  Number sum = 0;
  for (Number v : row) sum += std::isfinite(v) ? std::fabs(v) : 0;
  return sum;
}

Number scale_of(const std::string& op, const Row& row, const Row& y) {
  if (op == "sum") return size_of(row);
  if (op == "mean") return row.empty() ? 0 : size_of(row) / static_cast<Number>(row.size());
  if (op == "logsumexp" || op == "log_softmax") return 1 + (row.empty() ? 0 : size_of(row) / static_cast<Number>(row.size()));
  if (op == "variance") return size_of(row) * size_of(row) / static_cast<Number>(row.size() + 1);
  // Rounding of the mean, times the reciprocal deviation, which is at most 1 / sqrt(epsilon).
  if (op == "layer_norm") return size_of(y) + 1 + 320 * size_of(row) / static_cast<Number>(row.size() + 1);
  return 0;
}

uint32_t result_dtype(const std::string& op, uint32_t dtype) {
  return one_of(op, {"any", "all"}) ? uint32_t{TN_BOOL} : one_of(op, {"argmax", "argmin"}) ? uint32_t{TN_I64} : dtype;
}

Number identity_of(const std::string& op, uint32_t dtype, Number value) {
  if (op == "max" && std::isinf(value) && !ops::is_float(dtype)) return dtype == TN_BOOL ? 0 : lowest_integer(dtype);
  if (op == "min" && std::isinf(value) && !ops::is_float(dtype)) return dtype == TN_BOOL ? 1 : highest_integer(dtype);
  return value;
}

struct Laid {
  Call call;
  Expected expected;
};

// Rows side by side along `axis` (0 or 1) of a matrix.
Laid lay(const ops::OpDecl& decl, uint32_t dtype, const std::vector<Row>& rows, int64_t axis) {
  const std::string op = decl.def.name;
  const auto n = static_cast<int64_t>(rows[0].size()), r = static_cast<int64_t>(rows.size());
  const bool along_last = axis == 1;
  Laid l;
  l.call.op = op;
  Array x{dtype, along_last ? std::vector<int64_t>{r, n} : std::vector<int64_t>{n, r}, Row(static_cast<size_t>(n * r))};
  Array y{result_dtype(op, dtype), {r}, {}};
  Bound bound;
  bound.ulps = std::max<Number>(static_cast<Number>(decl.ulp_f32), 8) + 16 + static_cast<Number>(n);
  const bool whole_rows = one_of(op, {"softmax", "log_softmax", "layer_norm"});
  if (whole_rows) y = {dtype, x.dims, Row(x.v.size())}, bound.scale = Row(x.v.size());
  for (int64_t row = 0; row < r; ++row) {
    const Row& from = rows[static_cast<size_t>(row)];
    const auto place = [&](int64_t i) { return static_cast<size_t>(along_last ? row * n + i : i * r + row); };
    for (int64_t i = 0; i < n; ++i) x.v[place(i)] = from[static_cast<size_t>(i)];
    const Row out = row_formula(op)(from);
    const Number scale = scale_of(op, from, out);
    if (!whole_rows) {
      Number v = identity_of(op, dtype, out[0]);
      if (!ops::is_float(dtype) && one_of(op, {"sum", "mean", "prod"})) v = op == "mean" ? std::trunc(v) : v;
      y.v.push_back(v), bound.scale.push_back(scale);
    } else {
      for (int64_t i = 0; i < n; ++i) y.v[place(i)] = out[static_cast<size_t>(i)], bound.scale[place(i)] = scale;
    }
  }
  l.call.in = {x};
  if (op == "layer_norm") l.call.in.resize(3);
  const bool takes_axes = !whole_rows && !one_of(op, {"argmax", "argmin"});
  l.call.attrs = {takes_axes ? ops::case_ints(TN_KEY_AXES, {axis}) : ops::case_i64(TN_KEY_AXIS, axis)};
  l.expected = {{y}, {bound}};
  if (op == "layer_norm") l.expected.out.resize(3), l.expected.bounds.resize(3);
  return l;
}

// Integer sums and products wrap: done apart, in 128 bits.
void wrap_integers(const std::string& op, uint32_t dtype, const std::vector<Row>& rows, Array* y) {
  if (ops::is_float(dtype) || !one_of(op, {"sum", "prod", "mean"})) return;
  for (size_t r = 0; r < rows.size(); ++r) {
    Wide value = op == "prod" ? 1 : 0;
    for (Number v : rows[r]) {
      if (op == "prod") value = static_cast<Wide>(wrapped(dtype == TN_U64 ? TN_U64 : TN_I64, static_cast<Wide>(static_cast<UWide>(value) * static_cast<UWide>(static_cast<Wide>(v)))));
      else value += static_cast<Wide>(v);
    }
    // A mean is a 64-bit sum (which wraps) divided toward zero.
    if (op == "mean") value = static_cast<Wide>(wrapped(lowest_integer(dtype) < 0 ? TN_I64 : TN_U64, value)) / static_cast<Wide>(rows[r].size());
    y->v[r] = wrapped(dtype, value);
  }
}

std::vector<const ops::OpDecl*> row_decls() {
  std::vector<const ops::OpDecl*> list;
  for (const ops::OpDecl* d : all_decls())
    if (row_formula(d->def.name) != nullptr) list.push_back(d);
  return list;
}

std::vector<size_t> lengths() {
  if (!full_run()) return {0, 1, 2, 3, 7, 8, 17, 33, 70};
  std::vector<size_t> all;
  for (size_t n = 0; n <= 70; ++n) all.push_back(n);
  return all;
}

class SpecialRows : public testing::TestWithParam<const ops::OpDecl*> {};

TEST_P(SpecialRows, give_the_class_of_the_exact_result) {
  const ops::OpDecl& decl = *GetParam();
  const std::string op = decl.def.name;
  int failures = 0, calls = 0, tried = 0;
  for (uint32_t dtype : dtypes_of(decl)) {
    if (!full_run() && dtype != TN_F32 && dtype != TN_F16 && dtype != TN_I8 && dtype != TN_BOOL) continue;
    for (size_t n : lengths()) {
      if (n == 0 && (one_of(op, {"argmax", "argmin"}) || (op == "mean" && !ops::is_float(dtype)))) continue;
      for (int64_t axis : {1, 0}) {
        if (!full_run() && dtype != TN_F32 && ++tried % 2 == 0) continue;
        if (op == "layer_norm" && axis == 0) continue;  // normalises all axes from there on
        const auto rows = odd_rows(op, dtype, n);
        Laid l = lay(decl, dtype, rows, axis);
        wrap_integers(op, dtype, rows, &l.expected.out[0]);
        const std::string text = differences(l.call, l.expected, full_run(), &calls);
        if (!text.empty() && failures++ < 2) ADD_FAILURE() << text;
      }
    }
  }
  EXPECT_GT(calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Op, SpecialRows, testing::ValuesIn(row_decls()), DeclName());

TEST(SpecialRows, argmax_of_an_empty_axis_is_an_error) {
  for (const char* op : {"argmax", "argmin"}) {
    const Call call{op, {ops::case_i64(TN_KEY_AXIS, 0)}, {array(TN_F32, {0, 3}, {})}};
    EXPECT_EQ(for_everyone(call, false, [](const Outcome& o) { return o.status == TN_E_SHAPE ? std::string() : "status " + std::to_string(o.status); }), "");
  }
}

}  // namespace
}  // namespace tenon::conformance
