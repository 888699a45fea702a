// Rules of the ops, over the cases that each op declares: shapes, gradients of first and second order, symbols.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernel/dims.h"
#include "ops/op.h"
#include "tests/ops_core/fake_builder.h"

namespace tenon::ops {
namespace {

using test::Lab;
using test::Real;

bool in_this_suite(const OpDecl& d) {
  const uint64_t id = d.def.op_id;
  return id <= TN_OPID_REDUCE || (id >= TN_OPID_RESHAPE && id <= TN_OPID_WINDOWS) || (id >= TN_OPID_NEG && id <= TN_OPID_ARGMIN);
}

struct Call {
  const OpDecl* op;
  Case c;
  uint32_t dtype;
  std::vector<Attr> attrs;
  std::vector<std::unique_ptr<ProgramBuilder>> programs;
  std::vector<tn_push> push;
  std::vector<std::vector<Real>> in;
  uint32_t n_out = 1;
};

Real draw(Fill fill, int64_t limit, std::mt19937& r) {
  std::uniform_real_distribution<double> u(0, 1);
  switch (fill) {
    case Fill::Positive: return 0.1L + 1.9L * u(r);
    case Fill::Unit: return -0.9L + 1.8L * u(r);
    case Fill::Index: return static_cast<Real>(r() % static_cast<uint64_t>(std::max<int64_t>(limit, 1)));
    case Fill::Bool: return r() % 2;
    default: return std::normal_distribution<double>()(r);
  }
}

std::vector<Real> fill(const CaseOperand& o, std::mt19937& r) {
  size_t n = 1;
  for (int64_t d : o.dims) n *= static_cast<size_t>(d);
  std::vector<Real> v(n);
  for (Real& x : v) x = draw(o.fill, o.limit, r);
  if (o.fill == Fill::Spaced) {
    for (size_t i = 0; i < n; ++i) v[i] = 0.06L * (static_cast<Real>(i) - static_cast<Real>(n) / 2) + 0.017L;
    std::shuffle(v.begin(), v.end(), r);
  }
  return v;
}

Call prepare(const OpDecl& op, const Case& c, uint32_t dtype) {
  Call call{&op, c, dtype, {}, {}, {}, {}};
  std::mt19937 r(7);
  for (const CaseAttr& a : c.attrs) {
    if (a.kind == CaseAttr::Kind::I64s) call.attrs.push_back(Attr::ints(a.key, a.list));
    else if (a.kind == CaseAttr::Kind::F64) call.attrs.push_back(Attr::f64(a.key, a.f));
    else if (a.kind == CaseAttr::Kind::I64) call.attrs.push_back(Attr::i64(a.key, a.i));
    else {
      call.programs.push_back(std::make_unique<ProgramBuilder>(dtype));
      a.program(*call.programs.back());
      call.attrs.push_back(Attr::program(a.key, call.programs.back()->finish()));
      if (a.key != TN_KEY_PRE) call.n_out = call.programs.back()->finish()->n_out;
    }
  }
  for (double v : c.push) call.push.push_back(literal(v, dtype));
  for (const CaseOperand& o : c.in) call.in.push_back(fill(o, r));
  return call;
}

std::vector<uint32_t> inputs(Lab& lab, const Call& call, const std::vector<std::vector<Real>>& data) {
  std::vector<uint32_t> in;
  for (size_t i = 0; i < call.c.in.size(); ++i) {
    const CaseOperand& o = call.c.in[i];
    in.push_back(o.absent ? TN_NONE : lab.value(o.dtype ? o.dtype : call.dtype, o.dims, data[i]));
  }
  return in;
}

Real weight(size_t k, size_t i) { return 0.5L + 0.37L * static_cast<Real>((i * 7 + k * 3) % 5); }

// order 0: sum of weighted outputs; order 1: of weighted gradients of that. Also its own gradient, on request.
Real functional(const Call& call, const std::vector<std::vector<Real>>& data, int order, std::vector<std::vector<Real>>* gradient) {
  Lab lab;
  const std::vector<uint32_t> in = inputs(lab, call, data);
  const auto weigh = [&](const std::vector<uint32_t>& of, std::vector<uint32_t>* values, std::vector<uint32_t>* seeds) {
    Real sum = 0;
    for (size_t k = 0; k < of.size(); ++k) {
      if (of[k] == TN_NONE) continue;
      std::vector<Real> w, y = lab.read(of[k]);
      for (size_t i = 0; i < y.size(); ++i) w.push_back(weight(k, i)), sum += y[i] * w[i];
      const tn_type t = lab.tensor(of[k]).type;
      values->push_back(of[k]);
      seeds->push_back(lab.value(t.dtype, {t.dim, t.dim + t.rank}, w));
    }
    return sum;
  };
  std::vector<uint32_t> of, seeds;
  const std::vector<uint32_t> out = lab.call(call.op->def.op_id, in, call.attrs, call.push, call.n_out);
  EXPECT_FALSE(out.empty()) << call.op->def.name << ": " << lab.error.msg;
  Real sum = weigh(out, &of, &seeds);
  for (int k = 0; k < order; ++k) {
    const std::vector<uint32_t> g = lab.gradient(of, seeds, in);
    EXPECT_EQ(g.size(), in.size()) << call.op->def.name << ": " << lab.error.msg;
    of.clear(), seeds.clear();
    sum = weigh(g, &of, &seeds);
  }
  if (!gradient) return sum;
  const std::vector<uint32_t> g = lab.gradient(of, seeds, in);
  EXPECT_EQ(g.size(), in.size()) << call.op->def.name << ": " << lab.error.msg;
  for (size_t i = 0; i < g.size(); ++i) {
    gradient->push_back(g[i] == TN_NONE ? std::vector<Real>(data[i].size(), 0) : lab.read(g[i]));
    if (g[i] != TN_NONE) {
      const tn_type t = lab.tensor(g[i]).type;
      EXPECT_EQ(std::vector<int64_t>(t.dim, t.dim + t.rank), call.c.in[i].dims) << call.op->def.name;
      EXPECT_EQ(t.dtype, call.c.in[i].dtype ? call.c.in[i].dtype : call.dtype) << call.op->def.name;
    }
  }
  return sum;
}

void expect_gradient(const Call& call, int order) {
  std::vector<std::vector<Real>> got;
  functional(call, call.in, order, &got);
  for (size_t i = 0; i < call.in.size() && i < got.size(); ++i) {
    if (call.c.in[i].absent || (call.c.in[i].dtype && !is_float(call.c.in[i].dtype))) continue;
    const size_t stride = std::max<size_t>(1, call.in[i].size() / 3);
    for (size_t at = 0; at < call.in[i].size(); at += stride) {
      const Real h = 1e-5L;
      std::vector<std::vector<Real>> hi = call.in, lo = call.in;
      hi[i][at] += h, lo[i][at] -= h;
      const Real expected = (functional(call, hi, order, nullptr) - functional(call, lo, order, nullptr)) / (2 * h);
      EXPECT_NEAR(got[i].at(at), expected, 1e-6L * (1 + std::fabs(expected)))
          << call.op->def.name << " order " << order + 1 << " operand " << i << " element " << at;
    }
  }
}

class Rules : public testing::TestWithParam<const OpDecl*> {};

TEST_P(Rules, declare_at_least_twenty_cases_and_texts) {
  const OpDecl& op = *GetParam();
  EXPECT_GE(op.cases().size(), 20u);
  for (const char* text : {op.summary, op.formula, op.semantics}) EXPECT_GT(std::string(text).size(), 3u);
}

TEST_P(Rules, expand_gives_the_inferred_type) {
  for (const Case& c : GetParam()->cases()) {
    const uint32_t dtype = GetParam()->dtypes & mask(TN_F64) ? TN_F64 : TN_BOOL;
    const Call call = prepare(*GetParam(), c, dtype);
    Lab lab;
    const auto in = inputs(lab, call, call.in);
    const auto out = lab.call(call.op->def.op_id, in, call.attrs, call.push, call.n_out);
    ASSERT_FALSE(out.empty()) << lab.error.msg;
    std::vector<tn_type> types;
    for (uint32_t v : in) types.push_back(v == TN_NONE ? tn_type{} : lab.tensor(v).type);
    for (uint32_t v : out) EXPECT_NE(lab.tensor(v).type.dtype, 0);
  }
}

TEST_P(Rules, gradients_equal_finite_differences) {
  if ((GetParam()->dtypes & mask(TN_F64)) == 0) return;
  for (const Case& c : GetParam()->cases())
    if (c.differentiable) expect_gradient(prepare(*GetParam(), c, TN_F64), 0);
}

TEST_P(Rules, second_derivatives_equal_finite_differences) {
  if ((GetParam()->dtypes & mask(TN_F64)) == 0) return;
  int tried = 0;
  for (const Case& c : GetParam()->cases())
    if (c.differentiable && !c.in.empty() && c.in[0].dims.size() >= 1 && ++tried % 5 == 0) expect_gradient(prepare(*GetParam(), c, TN_F64), 1);
}

tn_op op_of(const Call& call, const std::vector<tn_type>& types, const std::vector<tn_attr>& attrs) {
  tn_op op{};
  op.size = sizeof op;
  op.op_id = call.op->def.op_id;
  op.n_in = static_cast<uint16_t>(call.c.in.size());
  op.n_out = static_cast<uint16_t>(call.n_out);
  op.n_attr = static_cast<uint16_t>(attrs.size());
  op.type = types.data();
  op.attr = attrs.data();
  return op;
}

TEST_P(Rules, infer_with_symbols_then_numbers_equals_infer_with_numbers) {
  for (const Case& c : GetParam()->cases()) {
    const Call call = prepare(*GetParam(), c, GetParam()->dtypes & mask(TN_F64) ? TN_F64 : TN_BOOL);
    std::vector<tn_attr> attrs;
    for (const Attr& a : call.attrs) {
      tn_attr t{a.key, a.type, {}, 1};
      if (a.type == TN_ATTR_I64) t.v.i = a.i;
      else if (a.type == TN_ATTR_I64S) t.v.p = a.list.data(), t.len = a.list.size();
      else t.v.p = a.p;
      attrs.push_back(t);
    }
    kernel::SymbolicDims symbols;
    kernel::ConcreteDims numbers;
    const tn_dims s = symbols.table(), n = numbers.table();
    std::vector<int64_t> values;
    std::vector<tn_type> symbolic, concrete;
    for (const CaseOperand& o : c.in) {
      tn_type t{};
      if (!o.absent) {
        t.dtype = static_cast<uint8_t>(o.dtype ? o.dtype : call.dtype);
        t.rank = static_cast<uint8_t>(o.dims.size());
        std::copy(o.dims.begin(), o.dims.end(), t.dim);
      }
      tn_type sym = t;
      for (uint32_t i = 0; i < t.rank; ++i)
        if (t.dim[i] >= 2) values.push_back(t.dim[i]), sym.dim[i] = symbols.base();
      set_dense(&t, &n), set_dense(&sym, &s);
      concrete.push_back(t), symbolic.push_back(sym);
    }
    concrete.resize(c.in.size() + call.n_out), symbolic.resize(c.in.size() + call.n_out);
    const tn_op a = op_of(call, concrete, attrs), b = op_of(call, symbolic, attrs);
    tn_diag d{};
    ASSERT_EQ(call.op->def.infer(call.op->def.ctx, &a, &n, concrete.data() + c.in.size(), &d), TN_OK) << d.msg;
    ASSERT_EQ(call.op->def.infer(call.op->def.ctx, &b, &s, symbolic.data() + c.in.size(), &d), TN_OK) << d.msg;
    EXPECT_EQ(symbols.status(), TN_OK);
    EXPECT_TRUE(symbols.guards_hold(values));
    for (size_t k = c.in.size(); k < concrete.size(); ++k) {
      tn_type got{};
      ASSERT_TRUE(symbols.substitute(symbolic[k], values, &got));
      EXPECT_EQ(std::memcmp(&got, &concrete[k], sizeof got), 0) << call.op->def.name << " " << type_text(got) << " " << type_text(concrete[k]);
    }
  }
}

std::vector<const OpDecl*> suite() {
  std::vector<const OpDecl*> list;
  for (const OpDecl* d : all_ops())
    if (in_this_suite(*d)) list.push_back(d);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Ops, Rules, testing::ValuesIn(suite()), [](const auto& p) { return std::string(p.param->def.name); });

}  // namespace
}  // namespace tenon::ops
