// ops/cases.cpp - see cases.h.
#include "ops/cases.h"

namespace tenon::ops {
namespace {

struct Shape {
  std::vector<int64_t> dims;
  Layout layout = Layout::Dense;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {
      {{}}, {{0}}, {{1}}, {{2}}, {{7}}, {{31}}, {{64}}, {{70}}, {{1, 1}}, {{3, 5}}, {{5, 0}}, {{0, 3}}, {{2, 3, 4}},
      {{1, 7, 1}}, {{2, 3, 5, 7}}, {{2, 1, 3, 2, 5}}, {{257}}, {{3, 5}, Layout::Permuted}, {{2, 3, 4}, Layout::Permuted},
      {{2, 3, 4, 5}, Layout::Permuted}, {{17}, Layout::Gapped}, {{4, 6}, Layout::Gapped}, {{2, 3, 4}, Layout::Gapped},
      {{9}, Layout::Broadcast}, {{5, 4}, Layout::Broadcast}, {{0, 3}, Layout::Permuted}};
  return list;
}

struct Pair {
  std::vector<int64_t> a, b;
  Layout la = Layout::Dense, lb = Layout::Dense;
};

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> list = {
      {{}, {}}, {{3}, {}}, {{}, {3}}, {{3}, {3}}, {{1}, {5}}, {{7}, {7}}, {{33}, {1}}, {{70}, {70}}, {{2, 3}, {3}},
      {{3}, {2, 3}}, {{2, 1}, {1, 3}}, {{4, 3}, {4, 1}}, {{2, 3, 4}, {3, 1}}, {{0}, {0}}, {{0}, {1}}, {{1}, {0}},
      {{2, 0, 3}, {1, 1, 3}}, {{2, 3, 4, 5}, {4, 5}}, {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 1}},
      {{3, 5}, {3, 5}, Layout::Permuted, Layout::Dense}, {{3, 5}, {3, 5}, Layout::Permuted, Layout::Permuted},
      {{4, 6}, {6}, Layout::Gapped, Layout::Gapped}, {{5, 4}, {5, 4}, Layout::Broadcast, Layout::Dense},
      {{2, 3, 4}, {2, 1, 4}, Layout::Dense, Layout::Permuted}};
  return list;
}

CaseOperand operand(std::vector<int64_t> dims, Fill fill, Layout layout) {
  CaseOperand o;
  o.dims = std::move(dims);
  o.fill = fill;
  o.layout = layout;
  return o;
}

Case one(std::vector<int64_t> dims, Fill fill, Layout layout, std::vector<CaseAttr> attrs) {
  Case c;
  c.in = {operand(std::move(dims), fill, layout)};
  c.attrs = std::move(attrs);
  return c;
}

}  // namespace

CaseAttr case_ints(uint32_t key, std::vector<int64_t> list) {
  CaseAttr a;
  a.key = key, a.kind = CaseAttr::Kind::I64s, a.list = std::move(list);
  return a;
}

CaseAttr case_i64(uint32_t key, int64_t value) {
  CaseAttr a;
  a.key = key, a.i = value;
  return a;
}

CaseAttr case_program(uint32_t key, void (*program)(ProgramBuilder&)) {
  CaseAttr a;
  a.key = key, a.kind = CaseAttr::Kind::Program, a.program = program;
  return a;
}

std::vector<Case> not_differentiable(std::vector<Case> cases) {
  for (Case& c : cases) c.differentiable = false;
  return cases;
}

std::vector<Case> unary_cases(Fill fill, std::vector<double> push) {
  std::vector<Case> cases;
  for (const Shape& s : shapes()) {
    cases.push_back(one(s.dims, fill, s.layout, {}));
    cases.back().push = push;
  }
  return cases;
}

std::vector<Case> binary_cases(Fill a, Fill b, double scalar) {
  std::vector<Case> cases;
  for (const Pair& p : pairs()) {
    Case c;
    c.in = {operand(p.a, a, p.la), operand(p.b, b, p.lb)};
    cases.push_back(c);
  }
  for (const uint32_t absent : {0u, 1u})
    for (const Layout layout : {Layout::Dense, Layout::Permuted}) {
      Case c;
      c.in = {operand({5, 3}, a, layout), operand({5, 3}, b, layout)};
      c.in[absent] = {};
      c.in[absent].absent = true;
      c.push = {scalar};
      cases.push_back(c);
    }
  return cases;
}

std::vector<Case> ternary_cases(CaseOperand model_a, Fill b, Fill c) {
  std::vector<Case> cases;
  for (const Pair& p : pairs()) {
    Case one;
    CaseOperand first = model_a;
    first.dims = p.a;
    first.layout = p.la;
    one.in = {first, operand(p.b, b, p.lb), operand(p.a, c, Layout::Dense)};
    cases.push_back(one);
  }
  return cases;
}

std::vector<Case> reduction_cases(Fill fill, bool empty) {
  const auto axes = [](std::vector<int64_t> list) { return case_ints(TN_KEY_AXES, std::move(list)); };
  const CaseAttr keep = case_i64(TN_KEY_KEEPDIMS, 1);
  using L = Layout;
  std::vector<Case> cases = {
      one({}, fill, L::Dense, {}), one({1}, fill, L::Dense, {}), one({7}, fill, L::Dense, {}), one({70}, fill, L::Dense, {}),
      one({257}, fill, L::Dense, {keep}), one({3, 5}, fill, L::Dense, {}), one({3, 5}, fill, L::Dense, {axes({0})}),
      one({3, 5}, fill, L::Dense, {axes({1})}), one({3, 5}, fill, L::Dense, {axes({-1}), keep}),
      one({3, 5}, fill, L::Dense, {axes({})}), one({3, 5}, fill, L::Dense, {axes({-2}), keep}),
      one({1, 7, 1}, fill, L::Dense, {axes({0, 2})}), one({2, 3, 4}, fill, L::Dense, {axes({1})}),
      one({2, 3, 4}, fill, L::Dense, {axes({0, 2})}), one({2, 3, 4}, fill, L::Dense, {axes({0, 2}), keep}),
      one({2, 3, 5, 7}, fill, L::Dense, {axes({1, -1})}), one({2, 1, 3, 2, 5}, fill, L::Dense, {axes({0, 2, 3})}),
      one({3, 5}, fill, L::Permuted, {axes({0})}), one({3, 5}, fill, L::Permuted, {axes({1})}),
      one({2, 3, 4}, fill, L::Permuted, {}), one({4, 6}, fill, L::Gapped, {axes({1})}),
      one({17}, fill, L::Gapped, {}), one({5, 4}, fill, L::Broadcast, {axes({0})}),
      one({0, 3}, fill, L::Dense, {axes({1})}), one({2, 0, 3}, fill, L::Dense, {axes({0})})};
  if (empty)
    for (const Case& c : {one({0}, fill, L::Dense, {}), one({0, 3}, fill, L::Dense, {axes({0})}),
                          one({2, 0, 3}, fill, L::Dense, {axes({1}), keep})})
      cases.push_back(c);
  return cases;
}

std::vector<Case> arg_cases() {
  const auto axis = [](int64_t a) { return case_i64(TN_KEY_AXIS, a); };
  const CaseAttr keep = case_i64(TN_KEY_KEEPDIMS, 1);
  using L = Layout;
  const Fill f = Fill::Spaced;
  return not_differentiable(
      {one({1}, f, L::Dense, {axis(0)}), one({2}, f, L::Dense, {axis(0)}), one({7}, f, L::Dense, {axis(-1)}),
       one({33}, f, L::Dense, {axis(0), keep}), one({70}, f, L::Dense, {axis(0)}), one({257}, f, L::Dense, {}),
       one({3, 5}, f, L::Dense, {axis(0)}), one({3, 5}, f, L::Dense, {axis(1)}), one({3, 5}, f, L::Dense, {axis(-2), keep}),
       one({3, 5}, f, L::Permuted, {axis(0)}), one({3, 5}, f, L::Permuted, {axis(1)}), one({1, 7, 1}, f, L::Dense, {axis(1)}),
       one({2, 3, 4}, f, L::Dense, {axis(1), keep}), one({2, 3, 4}, f, L::Permuted, {axis(2)}),
       one({2, 3, 5, 7}, f, L::Dense, {axis(2)}), one({2, 1, 3, 2, 5}, f, L::Dense, {axis(4)}),
       one({4, 6}, f, L::Gapped, {axis(1)}), one({17}, f, L::Gapped, {axis(0)}), one({5, 4}, f, L::Broadcast, {axis(0)}),
       one({5, 4}, f, L::Broadcast, {axis(1)}), one({0, 3}, f, L::Dense, {axis(1)}), one({3, 0}, f, L::Dense, {axis(0)})});
}

}  // namespace tenon::ops
