// ops/pull.cpp - see pull.h.
#include "ops/pull.h"

#include <algorithm>

#include "ops/op.h"

namespace tenon::ops {
namespace {

std::vector<int64_t> dims_of(const tn_type& t) { return {t.dim, t.dim + t.rank}; }

// Axes of `full` along which an input of dims `part` was repeated.
std::vector<int64_t> repeated_axes(const std::vector<int64_t>& part, const std::vector<int64_t>& full) {
  std::vector<int64_t> axes;
  const size_t shift = full.size() - part.size();
  for (size_t i = 0; i < full.size(); ++i)
    if (full[i] != 1 && (i < shift || part[i - shift] == 1)) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

class Puller {
 public:
  Puller(Pull pull, std::span<const PullTarget> targets) : p_(std::move(pull)), e_(*p_.emit), targets_(targets) {}

  std::vector<Value> run() {
    std::vector<CutTarget> cuts;
    for (const PullTarget& t : targets_) {
      const bool summed = !repeated_axes(dims_of(t.type), p_.full).empty();
      // A sum rounds once, at its end; an elementwise gradient is rounded by its program.
      cuts.push_back({summed ? t.value : p_.graph->cast(t.value, t.type.dtype), summed});
    }
    values_.resize(p_.n_leaves);
    std::vector<Value> result(targets_.size());
    for (const ProgramPart& part : cut(*p_.graph, cuts, p_.n_leaves, p_.full_leaf)) emit_part(part, &result);
    return result;
  }

 private:
  Value source(uint32_t number) {
    if (number < p_.n_leaves && !values_[number]) values_[number] = p_.leaf(number);
    return values_[number];
  }

  std::vector<Value> sources(const ProgramPart& part) {
    std::vector<Value> in;
    for (uint32_t number : part.in) in.push_back(source(number));
    return in;
  }

  void emit_part(const ProgramPart& part, std::vector<Value>* result) {
    const uint32_t t = part.target[0];
    const std::vector<int64_t> axes = t == TN_NONE ? std::vector<int64_t>{} : repeated_axes(dims_of(targets_[t].type), p_.full);
    if (!axes.empty()) {
      (*result)[t] = emit_sum(part, targets_[t].type, axes);
      return;
    }
    if (part.inst.size() == 1 && part.inst[0].op == TN_OP_INPUT && t != TN_NONE) {
      for (uint32_t target : part.target)  // one value may be the gradient of several inputs: add(a, b)
        (*result)[target] = with_dims(e_, source(part.in[0]), dims_of(targets_[target].type));
      return;
    }
    const tn_program program = part.program();
    const Attr attr = Attr::program(TN_KEY_PROGRAM, &program);
    const std::vector<Value> out = e_.ops(TN_OPID_POINTWISE, sources(part), {&attr, 1}, part.push, program.n_out);
    for (size_t k = 0; k < out.size(); ++k) {
      if (part.target[k] == TN_NONE) values_.push_back(out[k]);
      else (*result)[part.target[k]] = with_dims(e_, out[k], dims_of(targets_[part.target[k]].type));
    }
  }

  Value emit_sum(const ProgramPart& part, const tn_type& type, const std::vector<int64_t>& axes) {
    std::vector<Value> in = sources(part);
    cover_full_dims(&in);
    if (is_plain(part, type.dtype)) {
      const Attr plain[] = {Attr::ints(TN_KEY_AXES, axes), Attr::i64(TN_KEY_KEEPDIMS, 1), Attr::i64(TN_KEY_MONOID, TN_MONOID_SUM)};
      return with_dims(e_, e_.ops(TN_OPID_REDUCE, in, plain, {}, 1)[0], dims_of(type));
    }
    const tn_program pre = part.program();
    const uint32_t compute = part.inst[part.out[0]].type;
    ProgramBuilder round(compute);
    round.output(round.input(0), type.dtype);
    std::vector<Attr> attrs = {Attr::program(TN_KEY_PRE, &pre), Attr::ints(TN_KEY_AXES, axes), Attr::i64(TN_KEY_KEEPDIMS, 1),
                               Attr::i64(TN_KEY_MONOID, TN_MONOID_SUM)};
    if (type.dtype != compute) attrs.push_back(Attr::program(TN_KEY_POST, round.finish()));
    return with_dims(e_, sum_node(part, in, attrs), dims_of(type));
  }

  // The seed itself is summed: a reduce without programs widens and rounds by itself.
  static bool is_plain(const ProgramPart& part, uint32_t dtype) {
    const bool cast = part.inst.size() == 2 && part.inst[1].op == TN_OP_CAST && part.inst[1].type == compute_type(dtype);
    return (part.inst.size() == 1 || cast) && part.inst[0].op == TN_OP_INPUT && part.inst[0].type == dtype;
  }

  // INDEX counts in the output of a pointwise; a sum has another output, so the program goes before it.
  Value sum_node(const ProgramPart& part, const std::vector<Value>& in, std::vector<Attr> attrs) {
    if (!part.uses_index) return e_.ops(TN_OPID_REDUCE, in, attrs, part.push, 1)[0];
    const Attr program = Attr::program(TN_KEY_PROGRAM, static_cast<const tn_program*>(attrs[0].p));
    const Value term = e_.ops(TN_OPID_POINTWISE, in, {&program, 1}, part.push, 1)[0];
    attrs.erase(attrs.begin());
    return e_.ops(TN_OPID_REDUCE, {&term, 1}, attrs, {}, 1)[0];
  }

  // A sum over an axis that no input of the program has would miss the repeats.
  void cover_full_dims(std::vector<Value>* in) {
    std::vector<bool> covered(p_.full.size());
    for (Value v : *in) {
      const std::vector<int64_t> d = e_.dims(v);
      const size_t shift = p_.full.size() - std::min(d.size(), p_.full.size());
      for (size_t i = 0; i < d.size() && i + shift < covered.size(); ++i)
        if (d[i] != 1) covered[i + shift] = true;
    }
    for (size_t i = 0; i < covered.size(); ++i)
      if (!covered[i] && p_.full[i] != 1) {
        (*in)[0] = with_dims(e_, (*in)[0], p_.full);
        return;
      }
  }

  Pull p_;
  Emit& e_;
  std::span<const PullTarget> targets_;
  std::vector<Value> values_;  // leaves, then what parts computed for later ones
};

}  // namespace

std::vector<Value> pull_targets(Pull pull, std::span<const PullTarget> targets) {
  return Puller(std::move(pull), targets).run();
}

Value with_dims(Emit& e, Value x, const std::vector<int64_t>& dims) {
  const std::vector<int64_t> have = e.dims(x);
  if (have == dims || !e.ok()) return x;
  const auto strip = [](const std::vector<int64_t>& d) {
    std::vector<int64_t> s;
    std::copy_if(d.begin(), d.end(), std::back_inserter(s), [](int64_t n) { return n != 1; });
    return s;
  };
  const uint64_t op = strip(have) == strip(dims) ? TN_OPID_RESHAPE : TN_OPID_EXPAND;
  return e.op(op, {x}, {Attr::ints(TN_KEY_DIMS, dims)});
}

}  // namespace tenon::ops
