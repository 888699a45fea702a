// Derivatives by rule against central differences in f64, along random directions of every floating operand, on the
// reference and on the CPU candidates (or those of TENON_TEST_DEVICE); and the derivative of the derivative against differences of the first.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>

#include "tests/conformance/full_machine.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {
namespace {

constexpr Number kStep = 1e-5L;
constexpr size_t kElementLimit = 700, kSecondLimit = 120;
constexpr int kShownFailures = 3, kSecondCases = 6;

// The reference has cpu:0 alone.
const char* place_of(const Machine& m) { return &m == &full_machine() ? test_device() : "cpu:0"; }

uint32_t next(uint32_t* state) { return *state = *state * 1664525u + 1013904223u; }

std::vector<Number> direction(size_t n, uint32_t* state) {
  std::vector<Number> v(n);
  for (Number& x : v) x = static_cast<Number>(next(state) >> 8) / (1 << 23) - 1;
  return v;
}

Number dot(const std::vector<Number>& a, const std::vector<Number>& b) {
  Number sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Call moved(Call call, size_t operand, const std::vector<Number>& along, Number step) {
  for (size_t i = 0; i < along.size(); ++i) call.in[operand].v[i] = rounded(TN_F64, call.in[operand].v[i] + step * along[i]);
  return call;
}

// A case in f64 with its vector-Jacobian product on one machine. Outputs that are no floats have no cotangent.
class Slope {
 public:
  Slope(Machine& m, const ops::OpDecl& decl, const Call& call, uint32_t seed) : m_(m), call_(call), state_(seed) {
    for (size_t i = 0; i < call.in.size(); ++i)
      if (ops::is_float(call.in[i].dtype)) need_ |= uint64_t{1} << i;
    base_ = m_.run(call_, place_of(m_));
    if (!base_.ok()) return;
    for (size_t k = 0; k < base_.out.size(); ++k) {
      const Array& y = base_.out[k];
      if (!ops::is_float(y.dtype)) continue;
      seeds_ |= uint64_t{1} << k;
      cotangents_.push_back(array(y.dtype, y.dims, direction(y.v.size(), &state_)));
      for (Number& v : cotangents_.back().v) v = rounded(y.dtype, v);
    }
    if (usable()) derived_ = m_.derive(m_.op(decl.def.name), seeds_, need_);
  }

  bool usable() const { return base_.ok() && need_ != 0 && seeds_ != 0; }
  const Outcome& base() const { return base_; }
  uint64_t need() const { return need_; }
  uint64_t seeds() const { return seeds_; }
  uint32_t derived() const { return derived_; }

  // <cotangents, f(call)>
  Number loss(const Call& at) {
    const Outcome y = m_.run(at, place_of(m_));
    if (!y.ok()) return NAN;
    Number sum = 0;
    size_t k = 0;
    for (size_t i = 0; i < y.out.size(); ++i)
      if ((seeds_ >> i & 1) != 0) sum += dot(y.out[i].v, cotangents_[k++].v);
    return sum;
  }

  // Operands of the derived op at another point: inputs, outputs there, cotangents.
  Call derived_call(const Call& at, const Outcome& y) const {
    Call d = at;
    d.in.insert(d.in.end(), y.out.begin(), y.out.end());
    d.in.insert(d.in.end(), cotangents_.begin(), cotangents_.end());
    return d;
  }
  // Per operand of the base op; not needed and zero ones are empty.
  Outcome gradients(const Call& at) {
    const Outcome y = m_.run(at, place_of(m_));
    return y.ok() ? m_.run_op(derived_, derived_call(at, y), place_of(m_)) : y;
  }

 private:
  Machine& m_;
  Call call_;
  Outcome base_;
  uint32_t state_;
  uint64_t need_ = 0, seeds_ = 0;
  uint32_t derived_ = 0;
  std::vector<Array> cotangents_;
};

// Error of `slope` against a central difference of two values, on the scale of both and of the rounding in the values.
bool agree(Number slope, Number above, Number below, Number step, Number tolerance) {
  const Number difference = (above - below) / (2 * step);
  const Number noise = 64 * epsilon_of(TN_F64) * (std::fabs(above) + std::fabs(below) + 1) / step;
  return std::fabs(slope - difference) <= tolerance * (std::fabs(slope) + std::fabs(difference) + 1) + noise;
}

size_t result_number(uint64_t need, size_t operand) { return static_cast<size_t>(__builtin_popcountll(need & ((uint64_t{1} << operand) - 1))); }

std::string first_error(Machine& m, const ops::OpDecl& decl, const Call& call, uint32_t seed) {
  Slope s(m, decl, call, seed);
  if (!s.base().ok()) return s.base().message;
  if (!s.usable()) return {};
  const Outcome grads = s.gradients(call);
  if (!grads.ok()) return "vjp: " + grads.message;
  for (size_t i = 0; i < call.in.size(); ++i) {
    if ((s.need() >> i & 1) == 0 || call.in[i].v.empty()) continue;
    const Array& g = grads.out[result_number(s.need(), i)];
    if (!g.absent() && g.dims != call.in[i].dims) return "gradient " + std::to_string(i) + " has dims " + type_text(g);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<Number> along = direction(call.in[i].v.size(), &seed);
      if (call.in[i].layout == ops::Layout::Broadcast) {  // one row stands for all
        const size_t row = along.size() / static_cast<size_t>(call.in[i].dims[0]);
        for (size_t k = row; k < along.size(); ++k) along[k] = along[k - row];
      }
      const Number slope = g.absent() ? 0 : dot(g.v, along);
      const Number above = s.loss(moved(call, i, along, kStep)), below = s.loss(moved(call, i, along, -kStep));
      if (!agree(slope, above, below, kStep, 1e-6L))
        return "operand " + std::to_string(i) + ": slope " + number_text(slope) + ", difference " + number_text((above - below) / (2 * kStep));
    }
  }
  return {};
}

// d/dx of <w, G(x, f(x), s)>: through G's own inputs, and through the outputs it reads.
std::string second_error(Machine& m, const ops::OpDecl& decl, const Call& call, uint32_t seed) {
  Slope s(m, decl, call, seed);
  if (!s.usable()) return s.base().ok() ? "" : s.base().message;
  const Outcome grads = s.gradients(call);
  if (!grads.ok()) return "vjp: " + grads.message;
  const size_t n_in = call.in.size(), n_out = s.base().out.size();
  std::vector<Array> w;
  uint64_t w_mask = 0;
  for (size_t k = 0; k < grads.out.size(); ++k) {
    if (grads.out[k].absent()) continue;
    w_mask |= uint64_t{1} << k;
    w.push_back(array(grads.out[k].dtype, grads.out[k].dims, direction(grads.out[k].v.size(), &seed)));
    for (Number& v : w.back().v) v = rounded(TN_F64, v);
  }
  if (w_mask == 0) return {};
  uint64_t need = s.need();
  for (size_t k = 0; k < n_out; ++k)
    if (ops::is_float(s.base().out[k].dtype)) need |= uint64_t{1} << (n_in + k);
  const uint32_t second = m.derive(s.derived(), w_mask, need);
  // Results of the first derivative that are zero whatever the values are take part by type alone: as zeros.
  Call d = s.derived_call(call, s.base());
  size_t number = 0;
  for (size_t i = 0; i < n_in; ++i) {
    if ((s.need() >> i & 1) == 0) continue;
    Array g = grads.out[number++];
    if (g.absent()) g = array(call.in[i].dtype, call.in[i].dims, std::vector<Number>(call.in[i].v.size(), 0));
    d.in.push_back(g);
  }
  d.in.insert(d.in.end(), w.begin(), w.end());
  const Outcome h = m.run_op(second, d, place_of(m));
  if (!h.ok()) return "second vjp: " + h.message;
  // Cotangents of the outputs, pulled back once more.
  Call back = call;
  back.in.insert(back.in.end(), s.base().out.begin(), s.base().out.end());
  uint64_t through = 0;
  for (size_t k = 0; k < n_out; ++k) {
    if ((need >> (n_in + k) & 1) == 0) continue;
    const Array& g = h.out[result_number(need, n_in + k)];
    if (g.absent()) continue;
    through |= uint64_t{1} << k;
    back.in.push_back(g);
  }
  Outcome pulled;
  if (through != 0) {
    pulled = m.run_op(m.derive(m.op(decl.def.name), through, s.need()), back, place_of(m));
    if (!pulled.ok()) return "vjp of the outputs' share: " + pulled.message;
  }
  const auto first = [&](const Call& at) -> Number {
    const Outcome g = s.gradients(at);
    if (!g.ok()) return NAN;
    Number sum = 0;
    size_t k = 0;
    for (size_t i = 0; i < g.out.size(); ++i)
      if ((w_mask >> i & 1) != 0) sum += g.out[i].absent() ? 0 : dot(g.out[i].v, w[k].v), ++k;
    return sum;
  };
  for (size_t i = 0; i < n_in; ++i) {
    if ((s.need() >> i & 1) == 0 || call.in[i].v.empty()) continue;
    const std::vector<Number> along = direction(call.in[i].v.size(), &seed);
    const Array& direct = h.out[result_number(need, i)];
    Number slope = direct.absent() ? 0 : dot(direct.v, along);
    if (through != 0) {
      const Array& share = pulled.out[result_number(s.need(), i)];
      slope += share.absent() ? 0 : dot(share.v, along);
    }
    const Number above = first(moved(call, i, along, kStep)), below = first(moved(call, i, along, -kStep));
    if (!agree(slope, above, below, kStep, 1e-5L))
      return "operand " + std::to_string(i) + ": slope " + number_text(slope) + ", difference " + number_text((above - below) / (2 * kStep));
  }
  return {};
}

class Gradients : public testing::TestWithParam<const ops::OpDecl*> {
 protected:
  // Calls of the differentiable cases in f64, with their numbers.
  std::vector<std::pair<uint32_t, Call>> calls(size_t limit) {
    std::vector<std::pair<uint32_t, Call>> list;
    const ops::OpDecl& decl = *GetParam();
    uint32_t number = 0;
    if ((decl.dtypes >> TN_F64 & 1) == 0) return list;
    for (const ops::Case& c : decl.cases()) {
      Call call = make_call(decl, c, TN_F64, number++);
      if (c.differentiable && elements_of(call) <= limit) list.emplace_back(number - 1, std::move(call));
    }
    return list;
  }
};

TEST_P(Gradients, agree_with_finite_differences) {
  int failures = 0;
  for (const auto& [number, call] : calls(kElementLimit))
    for (Machine* m : {&reference_machine(), &full_machine()}) {
      if (!full_run() && m == &full_machine() && number % 3 != 0) continue;
      const std::string error = first_error(*m, *GetParam(), call, number + 1);
      if (!error.empty() && failures++ < kShownFailures)
        ADD_FAILURE() << call_text(call) << " case " << number << (m == &full_machine() ? " with all plugins: " : " on the reference: ") << error;
    }
}

TEST_P(Gradients, have_gradients) {
  int failures = 0, tried = 0;
  for (const auto& [number, call] : calls(kSecondLimit)) {
    bool strided = false;
    for (const Array& a : call.in) strided |= a.layout == ops::Layout::Broadcast;
    if (strided || elements_of(call) == 0 || (!full_run() && tried == kSecondCases)) continue;
    ++tried;
    const std::string error = second_error(tried % 2 == 0 ? reference_machine() : full_machine(), *GetParam(), call, number + 1);
    if (!error.empty() && failures++ < kShownFailures) ADD_FAILURE() << call_text(call) << " case " << number << ": " << error;
  }
}

INSTANTIATE_TEST_SUITE_P(Op, Gradients, testing::ValuesIn(all_decls()), DeclName());

}  // namespace
}  // namespace tenon::conformance
