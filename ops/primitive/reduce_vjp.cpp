// ops/primitive/reduce_vjp.cpp - the derivative of reduce.
//
// With u = pre(x...) per element, a = the accumulated value and s = what reaches a through post, the gradient to u is
//   SUM       s
//   PROD      no zero in the row: s a / u;  one zero: s times the product of the others, at the zero;  more: 0
//   MAX, MIN  s / count where u equals a (a NaN equals a NaN), else 0
// and pre's own reverse pass takes it from u to the operands. AND, OR and indices have no gradient.
#include <algorithm>

#include "ops/op.h"
#include "ops/primitive/reduce.h"
#include "ops/program_rules.h"
#include "ops/pull.h"
#include "ops/scalar_grad.h"

namespace tenon::ops {
namespace {

using Id = ScalarGraph::Id;

std::vector<tn_push> all_slots(const tn_op& op) {
  std::vector<tn_push> push;
  for (uint32_t k = 0; k < op.push_bytes / 8; ++k) push.push_back(slot(k));
  return push;
}

class ReduceGradient {
 public:
  explicit ReduceGradient(Emit& e) : e_(e), op_(e.self()), r_(reduce_parts(op_)) {}

  tn_status run() {
    if (is_arg(r_.monoid) || r_.monoid == TN_MONOID_AND || r_.monoid == TN_MONOID_OR || !carries_gradient(r_.element))
      return e_.status();
    full_dims();
    seed_ = seed_of_accumulator();
    if (seed_) pull();
    return e_.status();
  }

 private:
  // Leaves of the gradient's graph: the operands, then these.
  enum Leaf : uint32_t { kSeed, kAccumulated, kCount, kElement, kFull, kLeafCount };
  uint32_t number(Leaf l) const { return op_.n_in + l; }

  void full_dims() {
    for (uint32_t i = 0; i < op_.n_in; ++i) {
      const tn_type& t = op_.type[i];
      if (full_.size() < t.rank) full_.insert(full_.begin(), t.rank - full_.size(), 1);
      const size_t shift = full_.size() - t.rank;
      for (uint32_t k = 0; k < t.rank; ++k)
        if (full_[shift + k] == 1) full_[shift + k] = t.dim[k];
    }
    kept_ = full_;
    for (int64_t a : r_.axes) kept_[static_cast<size_t>(a)] = 1;
  }

  // Through post, with the reduced axes kept as 1 so that it broadcasts. Absent when no output's seed arrives.
  Value seed_of_accumulator() {
    if (!r_.post) return e_.seed(0) ? with_dims(e_, e_.seed(0), kept_) : Value{};
    if (r_.post->n_in == 0) return {};
    uint64_t seeds = 0;
    for (uint32_t k = 0; k < r_.post->n_out; ++k) seeds |= uint64_t{bool(e_.seed(k))} << k;
    ScalarGraph graph;
    const Id gradient = differentiate(*r_.post, 1, seeds, &graph)[0];
    if (gradient == TN_NONE) return {};
    const auto leaf = [&](uint32_t n) { return n == 0 ? accumulated() : with_dims(e_, e_.seed(n - 1), kept_); };
    tn_type type{};
    type.dtype = static_cast<uint8_t>(r_.accumulator);
    type.rank = static_cast<uint8_t>(kept_.size());
    std::copy(kept_.begin(), kept_.end(), type.dim);
    const PullTarget target{gradient, type};
    return pull_targets({&e_, &graph, r_.post->n_out + 1u, leaf, kept_, 1}, {&target, 1})[0];
  }

  // The accumulated value in the compute type, axes kept. The op's own output serves where it is just that.
  Value accumulated() {
    if (accumulated_) return accumulated_;
    const bool exact = r_.element == r_.accumulator || r_.monoid == TN_MONOID_MAX || r_.monoid == TN_MONOID_MIN;
    if (!r_.post && exact && !has_own_elements()) return accumulated_ = with_dims(e_, e_.out(0), kept_);
    ProgramBuilder wide(r_.accumulator);
    wide.output(wide.input(0));
    std::vector<Attr> attrs = {Attr::program(TN_KEY_POST, wide.finish()), Attr::ints(TN_KEY_AXES, r_.axes),
                               Attr::i64(TN_KEY_KEEPDIMS, 1), Attr::i64(TN_KEY_MONOID, r_.monoid)};
    if (has_own_elements()) {
      const Value u = elements();
      return accumulated_ = e_.ops(TN_OPID_REDUCE, {&u, 1}, attrs, {}, 1)[0];
    }
    if (r_.pre) attrs.push_back(Attr::program(TN_KEY_PRE, r_.pre));
    return accumulated_ = e_.ops(TN_OPID_REDUCE, operands(), attrs, all_slots(op_), 1)[0];
  }

  // MAX and MIN compare u with a: both must come from one computation of pre, so u is stored.
  bool has_own_elements() const { return r_.pre && (r_.monoid == TN_MONOID_MAX || r_.monoid == TN_MONOID_MIN); }

  Value elements() {
    if (elements_) return elements_;
    const Attr program = Attr::program(TN_KEY_PROGRAM, r_.pre);
    return elements_ = e_.ops(TN_OPID_POINTWISE, operands(), {&program, 1}, all_slots(op_), 1)[0];
  }

  std::vector<Value> operands() const {
    std::vector<Value> in;
    for (uint32_t i = 0; i < op_.n_in; ++i) in.push_back(e_.in(i));
    return in;
  }

  // Sum over the axes of one value per (element, accumulated): written by `body` in the compute type.
  template <class Body>
  Value counted(int64_t monoid, Value element, uint32_t element_dtype, Body body) {
    ProgramBuilder p(element_dtype);
    const auto u = p.input(0);
    p.output(body(p, u), r_.accumulator);
    const std::vector<Attr> attrs = {Attr::program(TN_KEY_PRE, p.finish()), Attr::ints(TN_KEY_AXES, r_.axes),
                                     Attr::i64(TN_KEY_KEEPDIMS, 1), Attr::i64(TN_KEY_MONOID, monoid)};
    std::vector<Value> in = {element};
    if (p.finish()->n_in == 2) in.push_back(accumulated());
    return e_.ops(TN_OPID_REDUCE, in, attrs, p.literals(), 1)[0];
  }

  static Id equals(ScalarGraph& g, Id a, Id b) {
    return g.op(TN_OP_OR, g.op(TN_OP_EQ, a, b), g.op(TN_OP_AND, g.op(TN_OP_ISNAN, a), g.op(TN_OP_ISNAN, b)));
  }

  Value ties() {
    const uint32_t a_type = e_.type(accumulated()).dtype;
    const auto body = [&](ProgramBuilder& p, ProgramBuilder::Id u) {
      const auto a = p.input(1, a_type);
      const auto both_nan = p.op(TN_OP_AND, p.op(TN_OP_ISNAN, u), p.op(TN_OP_ISNAN, a));
      const auto same = p.op(TN_OP_OR, p.op(TN_OP_EQ, u, a), both_nan);
      return p.op(TN_OP_SELECT, same, p.constant(1), p.constant(0));
    };
    return counted(TN_MONOID_SUM, has_own_elements() ? elements() : e_.in(0), r_.element, body);
  }

  // For PROD: how many zeros a row has (kCount), and the product of the rest (kElement).
  Value zeros() {
    const auto body = [](ProgramBuilder& p, ProgramBuilder::Id u) {
      return p.op(TN_OP_SELECT, p.op(TN_OP_EQ, u, p.constant(0)), p.constant(1), p.constant(0));
    };
    return counted(TN_MONOID_SUM, elements_or_operand(), r_.element, body);
  }
  Value product_of_nonzero() {
    const auto body = [](ProgramBuilder& p, ProgramBuilder::Id u) {
      return p.op(TN_OP_SELECT, p.op(TN_OP_EQ, u, p.constant(0)), p.constant(1), u);
    };
    return counted(TN_MONOID_PROD, elements_or_operand(), r_.element, body);
  }
  Value elements_or_operand() { return r_.pre ? elements() : e_.in(0); }

  Id leaf_input(ScalarGraph& g, Leaf l, uint32_t dtype) { return g.cast(g.input(number(l), dtype), r_.accumulator); }

  Id gradient_of_element(ScalarGraph& g, Id u) {
    const Id s = leaf_input(g, kSeed, e_.type(seed_).dtype);
    if (r_.monoid == TN_MONOID_SUM) return s;
    const Id count = leaf_input(g, kCount, r_.accumulator), zero = g.literal(0, r_.accumulator);
    if (r_.monoid == TN_MONOID_PROD) return gradient_of_factor(g, u, s, count, zero);
    const Id a = leaf_input(g, kAccumulated, e_.type(accumulated()).dtype);
    return g.op(TN_OP_SELECT, equals(g, u, a), g.op(TN_OP_DIV, s, count), zero);
  }

  // Without zeros a / u, written as the product of the nonzero ones over u so that one formula serves both.
  Id gradient_of_factor(ScalarGraph& g, Id u, Id s, Id zeros, Id zero) {
    const Id rest = leaf_input(g, kElement, r_.accumulator), one = g.literal(1, r_.accumulator);
    const Id is_zero = g.op(TN_OP_EQ, u, zero);
    const Id others = g.op(TN_OP_SELECT, is_zero, rest, g.op(TN_OP_DIV, rest, u));
    const Id zeros_elsewhere = g.op(TN_OP_SUB, zeros, g.op(TN_OP_SELECT, is_zero, one, zero));
    return g.op(TN_OP_SELECT, g.op(TN_OP_EQ, zeros_elsewhere, zero), g.op(TN_OP_MUL, s, others), zero);
  }

  void pull() {
    uint64_t want = 0;
    for (uint32_t i = 0; i < op_.n_in; ++i) want |= uint64_t{e_.needs(i) && carries_gradient(op_.type[i].dtype)} << i;
    ScalarGraph graph;
    const std::vector<Id> gradient = r_.pre ? through_pre(graph, want) : std::vector<Id>{direct(graph, want)};
    std::vector<PullTarget> targets;
    std::vector<uint32_t> input;
    for (uint32_t i = 0; i < gradient.size(); ++i)
      if (gradient[i] != TN_NONE) targets.push_back({gradient[i], op_.type[i]}), input.push_back(i);
    if (targets.empty() || !e_.ok()) return;
    const std::vector<Value> values = pull_targets(
        {&e_, &graph, number(kLeafCount), [&](uint32_t n) { return leaf(n); }, full_, number(kFull)}, targets);
    for (size_t t = 0; t < targets.size(); ++t) e_.result(input[t], values[t]);
  }

  Id direct(ScalarGraph& g, uint64_t want) {
    return want ? gradient_of_element(g, g.cast(g.input(0, op_.type[0].dtype), r_.accumulator)) : Id{TN_NONE};
  }

  std::vector<Id> through_pre(ScalarGraph& g, uint64_t want) {
    std::vector<Id> in(op_.n_in);
    for (uint32_t i = 0; i < op_.n_in; ++i) in[i] = g.input(i, op_.type[i].dtype);
    const std::vector<Id> values = g.inline_program(*r_.pre, in);
    Id u = g.cast(values[r_.pre->out[0]], r_.accumulator);
    if (has_own_elements()) u = leaf_input(g, kElement, r_.element);
    const Id adjoint = gradient_of_element(g, u);
    return pull_back(&g, *r_.pre, values, {&adjoint, 1}, want);
  }

  Value leaf(uint32_t n) {
    if (n < op_.n_in) return e_.in(n);
    switch (n - op_.n_in) {
      case kSeed: return seed_;
      case kAccumulated: return accumulated();
      case kCount: return r_.monoid == TN_MONOID_PROD ? zeros() : ties();
      case kElement: return r_.monoid == TN_MONOID_PROD ? product_of_nonzero() : elements();
      default: return with_dims(e_, e_.in(0), full_);
    }
  }

  Emit& e_;
  const tn_op& op_;
  ReduceParts r_;
  std::vector<int64_t> full_, kept_;
  Value seed_, accumulated_, elements_;
};

}  // namespace

tn_status reduce_vjp(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
  Emit e(b, r, d);
  return ReduceGradient(e).run();
}

}  // namespace tenon::ops
