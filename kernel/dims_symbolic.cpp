// kernel/dims_symbolic.cpp - expressions over symbols in one normal form.
#include <algorithm>

#include "kernel/dims.h"
#include "kernel/dims_text.h"

namespace tenon::kernel {
namespace {

// Bounds beyond this are "no bound": they absorb what is added to them.
constexpr Wide kInf = static_cast<Wide>(1) << 63;

Wide clamp_bound(Wide v) { return std::clamp(v, -kInf, kInf); }
bool is_inf(Wide v) { return v <= -kInf || v >= kInf; }

Wide mul_bound(Wide a, Wide b) { return a == 0 || b == 0 ? 0 : clamp_bound(a * b); }
// `toward`: the infinity that wins when both occur, so that the bound stays a bound.
Wide add_bound(Wide a, Wide b, Wide toward) {
  if (a == toward || b == toward) return toward;
  if (is_inf(a)) return a;
  return is_inf(b) ? b : clamp_bound(a + b);
}

Wide floor_bound(Wide a, Wide b) {
  if (is_inf(a)) return a;
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

int64_t SymbolicDims::add_node(Node node) {
  if (nodes_.size() >= TN_SYM_MAX) return fail(TN_DIM_ADD, 0, 0);
  nodes_.push_back(std::move(node));
  return TN_SYM(nodes_.size() - 1);
}

int64_t SymbolicDims::base(int64_t lo, int64_t hi) {
  Node n{Node::Kind::Base};
  n.ordinal = n_base_++;
  n.range = {lo, hi == INT64_MAX ? kInf : Wide{hi}};
  return add_node(std::move(n));
}

int64_t SymbolicDims::fresh(int64_t lo, int64_t hi) {
  const int64_t sym = base(lo, hi);
  nodes_.back().after_running = true;
  return sym;
}

tn_dims SymbolicDims::table() {
  const auto calc = [](void* self, uint32_t op, int64_t a, int64_t b) {
    return static_cast<SymbolicDims*>(self)->calc(op, a, b);
  };
  const auto require = [](void* self, uint32_t relation, int64_t a, int64_t b, tn_diag* diag) {
    return static_cast<SymbolicDims*>(self)->require(relation, a, b, diag);
  };
  const auto fresh = [](void* self, int64_t lo, int64_t hi) { return static_cast<SymbolicDims*>(self)->fresh(lo, hi); };
  return {sizeof(tn_dims), 0, this, calc, require, fresh};
}

tn_status SymbolicDims::status(tn_diag* diag) const { return failed_ ? report_overflow(diag, op_, a_, b_) : TN_OK; }

int64_t SymbolicDims::fail(uint32_t dim_op, int64_t a, int64_t b) {
  if (!failed_) op_ = dim_op, a_ = a, b_ = b;
  failed_ = true;
  return 0;
}

// ---- normal form ----------------------------------------------------------------------------------------------------

SymbolicDims::Poly SymbolicDims::poly_of(int64_t dim) const {
  if (!TN_IS_SYM(dim)) return dim == 0 ? Poly{} : Poly{{Atoms{}, dim}};
  if (node(dim).kind == Node::Kind::Sum) return node(dim).poly;
  return {{Atoms{static_cast<uint32_t>(dim - INT64_MIN)}, 1}};
}

int64_t SymbolicDims::intern(Poly poly) {
  if (poly.empty()) return 0;
  if (poly.size() == 1) {
    const auto& [atoms, factor] = *poly.begin();
    if (atoms.empty()) return factor;
    if (atoms.size() == 1 && factor == 1) return TN_SYM(atoms[0]);
  }
  const auto found = sums_.find(poly);
  if (found != sums_.end()) return found->second;
  Node n{Node::Kind::Sum};
  n.poly = poly;
  n.range = range_of(poly);
  for (const auto& term : poly)
    for (uint32_t a : term.first) n.after_running |= nodes_[a].after_running;
  return sums_[std::move(poly)] = add_node(std::move(n));
}

int64_t SymbolicDims::atom(uint32_t dim_op, int64_t a, int64_t b) {
  const auto key = std::make_tuple(dim_op, a, b);
  const auto found = atoms_.find(key);
  if (found != atoms_.end()) return found->second;
  Node n{Node::Kind::Atom};
  n.dim_op = dim_op, n.a = a, n.b = b;
  n.after_running = depends_on_fresh(a) || depends_on_fresh(b);
  const Range x = range_of(a), y = range_of(b);
  n.range = {-kInf, kInf};
  if (dim_op == TN_DIM_MIN) n.range = {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
  if (dim_op == TN_DIM_MAX) n.range = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  if (dim_op == TN_DIM_MOD && y.lo > 0) n.range = {0, is_inf(y.hi) ? kInf : y.hi - 1};
  if (dim_op == TN_DIM_FLOORDIV && y.lo > 0)
    n.range = {x.lo >= 0 ? (is_inf(y.hi) ? 0 : floor_bound(x.lo, y.hi)) : floor_bound(x.lo, y.lo),
               x.hi >= 0 ? floor_bound(x.hi, y.lo) : -1};
  return atoms_[key] = add_node(std::move(n));
}

std::optional<SymbolicDims::Poly> SymbolicDims::combine(const Poly& a, const Poly& b, int64_t sign) const {
  Poly sum = a;
  for (const auto& [atoms, factor] : b) {
    const auto add = calc_numbers(TN_DIM_MUL, factor, sign);
    const auto total = add ? calc_numbers(TN_DIM_ADD, sum[atoms], *add) : std::nullopt;
    if (!total) return std::nullopt;
    if (*total == 0) sum.erase(atoms);
    else sum[atoms] = *total;
  }
  return sum;
}

std::optional<SymbolicDims::Poly> SymbolicDims::multiply(const Poly& a, const Poly& b) const {
  Poly product;
  for (const auto& [xa, xf] : a)
    for (const auto& [ya, yf] : b) {
      Atoms atoms;
      std::merge(xa.begin(), xa.end(), ya.begin(), ya.end(), std::back_inserter(atoms));
      const auto factor = calc_numbers(TN_DIM_MUL, xf, yf);
      const auto next = factor ? combine(product, Poly{{atoms, *factor}}, 1) : std::nullopt;
      if (!next) return std::nullopt;
      product = *next;
    }
  return product;
}

// a = quotient * b + rest, where b is one product; terms that b divides go to the quotient. False if b is a real sum.
bool SymbolicDims::split(const Poly& a, const Poly& b, Poly* quotient, Poly* rest) const {
  if (b.size() != 1) {
    if (a != b) return false;
    *quotient = Poly{{Atoms{}, 1}};
    return true;
  }
  const auto& [by, divisor] = *b.begin();
  for (const auto& [atoms, factor] : a) {
    if (factor % divisor == 0 && std::includes(atoms.begin(), atoms.end(), by.begin(), by.end())) {
      Atoms left;
      std::set_difference(atoms.begin(), atoms.end(), by.begin(), by.end(), std::back_inserter(left));
      (*quotient)[left] = factor / divisor;
    } else {
      (*rest)[atoms] = factor;
    }
  }
  return true;
}

// ---- tn_dims ----------------------------------------------------------------------------------------------------------

int64_t SymbolicDims::calc(uint32_t dim_op, int64_t a, int64_t b) {
  if (failed_) return 0;
  if ((TN_IS_SYM(a) && !known(a)) || (TN_IS_SYM(b) && !known(b))) return fail(dim_op, a, b);
  if (!TN_IS_SYM(a) && !TN_IS_SYM(b)) {
    const auto r = calc_numbers(dim_op, a, b);
    return r && !TN_IS_SYM(*r) ? *r : fail(dim_op, a, b);
  }
  std::optional<Poly> sum;
  switch (dim_op) {
    case TN_DIM_ADD: sum = combine(poly_of(a), poly_of(b), 1); break;
    case TN_DIM_SUB: sum = combine(poly_of(a), poly_of(b), -1); break;
    case TN_DIM_MUL: sum = multiply(poly_of(a), poly_of(b)); break;
    case TN_DIM_FLOORDIV: return b == 0 ? fail(dim_op, a, b) : divide(a, b);
    case TN_DIM_MOD: return b == 0 ? fail(dim_op, a, b) : modulo(a, b);
    case TN_DIM_MIN: case TN_DIM_MAX: return extreme(dim_op, a, b);
    default: break;
  }
  return sum ? intern(std::move(*sum)) : fail(dim_op, a, b);
}

// (q * b + r) / b = q + r / b for every integer q, rounding down. Not when b may be 0: then it must still fail.
int64_t SymbolicDims::divide(int64_t a, int64_t b) {
  const Range y = range_of(b);
  Poly quotient, rest;
  if ((y.lo <= 0 && y.hi >= 0) || !split(poly_of(a), poly_of(b), &quotient, &rest)) return atom(TN_DIM_FLOORDIV, a, b);
  if (rest.empty()) return intern(std::move(quotient));
  if (quotient.empty()) {
    const Range x = range_of(a);
    if (x.lo >= 0 && y.lo > 0 && x.hi < y.lo) return 0;
    return atom(TN_DIM_FLOORDIV, a, b);
  }
  return calc(TN_DIM_ADD, intern(std::move(quotient)), calc(TN_DIM_FLOORDIV, intern(std::move(rest)), b));
}

int64_t SymbolicDims::modulo(int64_t a, int64_t b) {
  const Range y = range_of(b);
  Poly quotient, rest;
  if ((y.lo <= 0 && y.hi >= 0) || !split(poly_of(a), poly_of(b), &quotient, &rest)) return atom(TN_DIM_MOD, a, b);
  if (rest.empty()) return 0;
  const int64_t left = intern(std::move(rest));
  if (!TN_IS_SYM(left) && !TN_IS_SYM(b)) return calc(TN_DIM_MOD, left, b);
  const Range x = range_of(left);
  if (x.lo >= 0 && y.lo > 0 && x.hi < y.lo) return left;
  return atom(TN_DIM_MOD, left, b);
}

int64_t SymbolicDims::extreme(uint32_t dim_op, int64_t a, int64_t b) {
  const auto below = decide(TN_DIM_LE, a, b);
  if (below) return *below == (dim_op == TN_DIM_MIN) ? a : b;
  if (decide(TN_DIM_LE, b, a).value_or(false)) return dim_op == TN_DIM_MIN ? b : a;
  return atom(dim_op, std::min(a, b), std::max(a, b));
}

SymbolicDims::Range SymbolicDims::range_of(int64_t dim) const {
  if (TN_IS_SYM(dim)) return node(dim).range;
  return {dim, dim};
}

SymbolicDims::Range SymbolicDims::range_of(const Poly& p) const {
  Range sum{0, 0};
  for (const auto& [atoms, factor] : p) {
    Range r{factor, factor};
    for (uint32_t a : atoms) {
      const Range& x = nodes_[a].range;
      const Wide v[4] = {mul_bound(r.lo, x.lo), mul_bound(r.lo, x.hi), mul_bound(r.hi, x.lo), mul_bound(r.hi, x.hi)};
      r = {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
    }
    sum = {add_bound(sum.lo, r.lo, -kInf), add_bound(sum.hi, r.hi, kInf)};
  }
  return sum;
}

std::optional<bool> SymbolicDims::decide(uint32_t relation, int64_t a, int64_t b) const {
  if (!TN_IS_SYM(a) && !TN_IS_SYM(b)) return holds(relation, a, b);
  if (relation == TN_DIM_DIVIDES) {
    Poly quotient, rest;
    if (a == 1 || b == 0) return true;
    if (a != 0 && split(poly_of(b), poly_of(a), &quotient, &rest) && rest.empty()) return true;
    return std::nullopt;
  }
  const auto difference = combine(poly_of(b), poly_of(a), -1);
  if (!difference) return std::nullopt;
  const Range r = range_of(*difference);
  switch (relation) {
    case TN_DIM_EQ:
      if (difference->empty()) return true;
      return r.lo > 0 || r.hi < 0 ? std::optional(false) : std::nullopt;
    case TN_DIM_LE: return r.lo >= 0 ? std::optional(true) : r.hi < 0 ? std::optional(false) : std::nullopt;
    case TN_DIM_LT: return r.lo > 0 ? std::optional(true) : r.hi <= 0 ? std::optional(false) : std::nullopt;
    default: return false;
  }
}

tn_status SymbolicDims::require(uint32_t relation, int64_t a, int64_t b, tn_diag* diag) {
  if (failed_) return status(diag);
  if ((TN_IS_SYM(a) && !known(a)) || (TN_IS_SYM(b) && !known(b))) return report_relation(diag, relation, a, b);
  const auto decided = decide(relation, a, b);
  if (decided) return *decided ? TN_OK : report_relation(diag, relation, a, b);
  if (relation == TN_DIM_EQ && a > b) std::swap(a, b);
  const DimGuard guard{relation, a, b};
  if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(guard);
  return TN_OK;
}

tn_status SymbolicDims::guard_sizes(const tn_type& t, tn_diag* diag) {
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (!TN_IS_SYM(t.dim[i]) || depends_on_fresh(t.dim[i])) continue;
    const tn_status s = require(TN_DIM_LE, 2, t.dim[i], diag);
    if (s != TN_OK) return s;
  }
  return TN_OK;
}

// ---- numbers for symbols ----------------------------------------------------------------------------------------------

bool SymbolicDims::evaluate(int64_t dim, std::span<const int64_t> values, int64_t* out) const {
  if (!TN_IS_SYM(dim)) {
    *out = dim;
    return true;
  }
  if (!known(dim)) return false;
  const Node& n = node(dim);
  if (n.kind == Node::Kind::Base) {
    if (n.ordinal >= values.size()) return false;
    *out = values[n.ordinal];
    return true;
  }
  if (n.kind == Node::Kind::Atom) {
    int64_t a = 0, b = 0;
    if (!evaluate(n.a, values, &a) || !evaluate(n.b, values, &b)) return false;
    const auto r = calc_numbers(n.dim_op, a, b);
    if (r) *out = *r;
    return r.has_value();
  }
  Wide sum = 0;  // terms may pass 64 bits and cancel
  for (const auto& [atoms, factor] : n.poly) {
    Wide term = factor;
    for (uint32_t a : atoms) {
      int64_t v = 0;
      if (!evaluate(TN_SYM(a), values, &v)) return false;
      if (__builtin_mul_overflow(term, Wide{v}, &term)) return false;
    }
    if (__builtin_add_overflow(sum, term, &sum)) return false;
  }
  *out = static_cast<int64_t>(sum);
  return sum == *out;
}

bool SymbolicDims::substitute(const tn_type& t, std::span<const int64_t> values, tn_type* out) const {
  tn_type r = t;
  for (uint32_t i = 0; i < t.rank; ++i)
    if (!evaluate(t.dim[i], values, &r.dim[i]) || !evaluate(t.stride[i], values, &r.stride[i])) return false;
  *out = r;
  return true;
}

bool SymbolicDims::guards_hold(std::span<const int64_t> values) const {
  return std::all_of(guards_.begin(), guards_.end(), [&](const DimGuard& g) {
    int64_t a = 0, b = 0;
    return evaluate(g.a, values, &a) && evaluate(g.b, values, &b) && holds(g.relation, a, b);
  });
}

}  // namespace tenon::kernel
