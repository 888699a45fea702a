// ops/scalar_grad.cpp - the reverse pass over a scalar program.
#include "ops/scalar_grad.h"

#include <cmath>
#include <numbers>

#include "ops/emit.h"
#include "ops/op.h"

namespace tenon::ops {
namespace {

using Id = ScalarGraph::Id;
constexpr Id kZero = TN_NONE;  // an adjoint that is zero everywhere

class Reverse {
 public:
  Reverse(ScalarGraph* g, const tn_program& p, std::span<const Id> values) : g_(*g), p_(p), v_(values), adjoint_(p.n_inst, kZero) {}

  std::vector<Id> run(std::span<const Id> seeds, uint64_t want) {
    mark_active(want);
    for (uint32_t k = 0; k < p_.n_out; ++k)
      if (seeds[k] != kZero) accumulate(p_.out[k], seeds[k]);
    for (uint32_t i = p_.n_inst; i-- > 0;)
      if (active_[i] && adjoint_[i] != kZero) step(p_.inst[i], v_[i], adjoint_[i]);
    std::vector<Id> result(p_.n_in, kZero);
    for (uint32_t i = 0; i < p_.n_inst; ++i)
      if (p_.inst[i].op == TN_OP_INPUT && active_[i] && adjoint_[i] != kZero) {
        Id& r = result[p_.inst[i].a];
        r = r == kZero ? adjoint_[i] : g_.op(TN_OP_ADD, r, adjoint_[i]);
      }
    return result;
  }

 private:
  // Active: depends on a wanted input through floats only.
  void mark_active(uint64_t want) {
    active_.assign(p_.n_inst, false);
    for (uint32_t i = 0; i < p_.n_inst; ++i) {
      const tn_inst& inst = p_.inst[i];
      if (!carries_gradient(inst.type)) continue;
      if (inst.op == TN_OP_INPUT) active_[i] = (want >> inst.a & 1) != 0;
      if (inst.op == TN_OP_BITCAST) continue;
      const uint16_t operand[3] = {inst.a, inst.b, inst.c};
      for (uint32_t k = 0; k < operand_count(inst.op); ++k) active_[i] = active_[i] || active_[operand[k]];
    }
  }

  void accumulate(uint32_t inst, Id gradient) {
    if (!active_[inst]) return;
    Id& a = adjoint_[inst];
    a = a == kZero ? gradient : g_.op(TN_OP_ADD, a, gradient);
  }

  Id num(double v, Id like) { return g_.literal(v, g_.type_of(like)); }
  Id neg(Id a) { return g_.op(TN_OP_NEG, a); }
  Id add(Id a, Id b) { return g_.op(TN_OP_ADD, a, b); }
  Id mul(Id a, Id b) { return g_.op(TN_OP_MUL, a, b); }
  Id div(Id a, Id b) { return g_.op(TN_OP_DIV, a, b); }
  Id choose(Id c, Id a, Id b) { return g_.op(TN_OP_SELECT, c, a, b); }

  // y: the value of the instruction; s: what reached it.
  void step(const tn_inst& i, Id y, Id s) {
    switch (operand_count(i.op)) {
      case 1: return unary(i, v_[i.a], y, s);
      case 2: return binary(i, v_[i.a], v_[i.b], y, s);
      case 3: return ternary(i, v_[i.a], s);
      default: return;
    }
  }

  void unary(const tn_inst& i, Id x, Id y, Id s) {
    if (i.op == TN_OP_CAST) {
      const uint32_t to = p_.inst[i.a].type;
      if (carries_gradient(to)) accumulate(i.a, g_.cast(s, compute_type(to)));
      return;
    }
    if (active_[i.a] && has_slope(i.op)) accumulate(i.a, unary_gradient(i.op, x, y, s));
  }

  static bool has_slope(uint32_t op) {
    return op == TN_OP_NEG || op == TN_OP_ABS || (op >= TN_OP_SQRT && op <= TN_OP_ERF);
  }

  Id unary_gradient(uint32_t op, Id x, Id y, Id s) {
    switch (op) {
      case TN_OP_NEG: return neg(s);
      case TN_OP_ABS: return mul(s, g_.op(TN_OP_SIGN, x));
      case TN_OP_SQRT: return div(mul(s, num(0.5, s)), y);
      case TN_OP_RSQRT: return mul(mul(s, num(-0.5, s)), mul(y, mul(y, y)));
      case TN_OP_EXP: return mul(s, y);
      case TN_OP_EXPM1: return mul(s, g_.op(TN_OP_EXP, x));  // y + 1 would lose all digits where y is near -1
      case TN_OP_LOG: return div(s, x);
      case TN_OP_LOG1P: return div(s, add(x, num(1, x)));
      case TN_OP_SIN: return mul(s, g_.op(TN_OP_COS, x));
      case TN_OP_COS: return neg(mul(s, g_.op(TN_OP_SIN, x)));
      case TN_OP_ATAN: return div(s, add(mul(x, x), num(1, x)));
      case TN_OP_TANH: return mul(s, mul(g_.op(TN_OP_SUB, num(1, y), y), add(num(1, y), y)));  // 1 - y is exact near 1
      default: return mul(s, mul(num(2 / std::sqrt(std::numbers::pi), x), g_.op(TN_OP_EXP, neg(mul(x, x)))));  // ERF
    }
  }

  void binary(const tn_inst& i, Id a, Id b, Id y, Id s) {
    const bool to_a = active_[i.a], to_b = active_[i.b];
    switch (i.op) {
      case TN_OP_ADD: accumulate(i.a, s), accumulate(i.b, s); break;
      case TN_OP_SUB:
        accumulate(i.a, s);
        if (to_b) accumulate(i.b, neg(s));
        break;
      case TN_OP_MUL:
        if (to_a) accumulate(i.a, mul(s, b));
        if (to_b) accumulate(i.b, mul(s, a));
        break;
      case TN_OP_DIV:
        if (to_a) accumulate(i.a, div(s, b));
        if (to_b) accumulate(i.b, neg(mul(div(s, b), y)));
        break;
      case TN_OP_REM:
        accumulate(i.a, s);
        if (to_b) accumulate(i.b, neg(mul(s, g_.op(TN_OP_TRUNC, div(a, b)))));
        break;
      case TN_OP_POW:
        if (to_a) accumulate(i.a, pow_base(a, b, s));
        if (to_b) accumulate(i.b, pow_exponent(a, b, y, s));
        break;
      case TN_OP_MIN: case TN_OP_MAX: extreme(i, a, b, s); break;
      case TN_OP_ATAN2:
        if (to_a) accumulate(i.a, mul(s, div(b, squares(a, b))));
        if (to_b) accumulate(i.b, neg(mul(s, div(a, squares(a, b)))));
        break;
      default: break;
    }
  }

  Id squares(Id a, Id b) { return add(mul(a, a), mul(b, b)); }

  Id pow_base(Id a, Id b, Id s) {
    const Id slope = mul(b, g_.op(TN_OP_POW, a, g_.op(TN_OP_SUB, b, num(1, b))));
    return choose(g_.op(TN_OP_EQ, b, num(0, b)), num(0, s), mul(s, slope));
  }

  Id pow_exponent(Id a, Id b, Id y, Id s) {
    const auto is_zero = [&](Id v) { return g_.op(TN_OP_EQ, v, num(0, v)); };
    const Id flat = g_.op(TN_OP_OR, is_zero(y), g_.op(TN_OP_AND, is_zero(a), is_zero(b)));
    return choose(flat, num(0, s), mul(s, mul(y, g_.op(TN_OP_LOG, a))));
  }

  void extreme(const tn_inst& i, Id a, Id b, Id s) {
    const Id beats = i.op == TN_OP_MAX ? g_.op(TN_OP_LT, b, a) : g_.op(TN_OP_LT, a, b);
    const Id a_wins = g_.op(TN_OP_OR, beats, g_.op(TN_OP_ISNAN, a));
    const Id tie = g_.op(TN_OP_EQ, a, b), half = mul(s, num(0.5, s)), zero = num(0, s);
    if (active_[i.a]) accumulate(i.a, choose(tie, half, choose(a_wins, s, zero)));
    if (active_[i.b]) accumulate(i.b, choose(tie, half, choose(a_wins, zero, s)));
  }

  void ternary(const tn_inst& i, Id a, Id s) {
    if (i.op == TN_OP_SELECT) {
      if (active_[i.b]) accumulate(i.b, choose(a, s, num(0, s)));
      if (active_[i.c]) accumulate(i.c, choose(a, num(0, s), s));
    } else if (i.op == TN_OP_FMA) {
      if (active_[i.a]) accumulate(i.a, mul(s, v_[i.b]));
      if (active_[i.b]) accumulate(i.b, mul(s, a));
      accumulate(i.c, s);
    }
  }

  ScalarGraph& g_;
  const tn_program& p_;
  std::span<const Id> v_;
  std::vector<Id> adjoint_;
  std::vector<bool> active_;
};

}  // namespace

bool carries_gradient(uint32_t dtype) { return is_float(dtype) || dtype == TN_F8E4M3 || dtype == TN_F8E5M2; }

std::vector<Id> pull_back(ScalarGraph* graph, const tn_program& program, std::span<const Id> values,
                          std::span<const Id> adjoint, uint64_t want) {
  return Reverse(graph, program, values).run(adjoint, want);
}

std::vector<Id> differentiate(const tn_program& program, uint64_t want, uint64_t seeds, ScalarGraph* graph) {
  std::vector<Id> inputs(program.n_in, kZero), adjoint(program.n_out, kZero);
  for (uint32_t i = 0; i < program.n_inst; ++i)
    if (program.inst[i].op == TN_OP_INPUT) inputs[program.inst[i].a] = graph->input(program.inst[i].a, program.inst[i].type);
  const std::vector<Id> values = graph->inline_program(program, inputs);
  for (uint32_t k = 0; k < program.n_out; ++k) {
    const uint32_t type = program.inst[program.out[k]].type;
    if ((seeds >> k & 1) == 0 || !carries_gradient(type)) continue;
    adjoint[k] = graph->cast(graph->input(program.n_in + k, type), compute_type(type));
  }
  return pull_back(graph, program, values, adjoint, want);
}

}  // namespace tenon::ops
