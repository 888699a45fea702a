// ops/scalar_cut.cpp - cutting a scalar graph into programs within the limits.
//
// A target whose whole cone (everything it needs, down to leaves) fits becomes one program. Otherwise the largest inner
// value whose own cone fits is computed first, by a program of its own, and is a leaf from then on; this ends, because an
// instruction has at most three operands.
#include <algorithm>
#include <map>

#include "ops/emit.h"
#include "ops/scalar_graph.h"

namespace tenon::ops {
namespace {

using Id = ScalarGraph::Id;

class Cutter {
 public:
  Cutter(const ScalarGraph& g, uint32_t first_part_value, uint32_t full_input)
      : g_(g), next_value_(first_part_value), full_input_(full_input) {}

  std::vector<ProgramPart> run(std::span<const CutTarget> targets) {
    std::vector<uint32_t> group;
    for (uint32_t t = 0; t < targets.size(); ++t) {
      shrink(targets[t].value);
      if (targets[t].alone) {
        write({&t, 1}, targets);
        continue;
      }
      group.push_back(t);
      if (group.size() <= TN_PROGRAM_MAX_OUT && fits(cone(values(group, targets)))) continue;
      group.pop_back();
      write(group, targets);
      group = {t};
    }
    if (!group.empty()) write(group, targets);
    return std::move(parts_);
  }

 private:
  static std::vector<Id> values(std::span<const uint32_t> group, std::span<const CutTarget> targets) {
    std::vector<Id> v;
    for (uint32_t t : group) v.push_back(targets[t].value);
    return v;
  }

  // Every node the roots need, operands first. Values made by earlier parts are leaves.
  std::vector<Id> cone(std::span<const Id> roots) const {
    std::vector<bool> needed(g_.size());
    std::vector<Id> stack(roots.begin(), roots.end());
    while (!stack.empty()) {
      const Id v = stack.back();
      stack.pop_back();
      if (needed[v]) continue;
      needed[v] = true;
      const ScalarNode& n = g_.node(v);
      const uint32_t operand[3] = {n.a, n.b, n.c};
      for (uint32_t k = 0; made_.count(v) == 0 && k < operand_count(n.op); ++k) stack.push_back(operand[k]);
    }
    std::vector<Id> list;
    for (Id v = 0; v < g_.size(); ++v)
      if (needed[v]) list.push_back(v);
    return list;
  }
  std::vector<Id> cone(Id root) const { return cone(std::span<const Id>(&root, 1)); }

  bool fits(std::span<const Id> list) const {
    size_t inputs = 0;
    bool index = false;
    for (Id v : list) {
      inputs += made_.count(v) != 0 || g_.node(v).op == TN_OP_INPUT;
      index |= made_.count(v) == 0 && g_.node(v).op == TN_OP_INDEX;
    }
    return list.size() <= TN_PROGRAM_MAX_INST && inputs + (index && full_input_ != TN_NONE) <= TN_PROGRAM_MAX_IN;
  }

  void shrink(Id target) {
    for (std::vector<Id> whole = cone(target); !fits(whole); whole = cone(target)) {
      Id best = target;
      size_t best_size = 1;
      for (Id v : whole) {
        if (v == target || made_.count(v) != 0) continue;
        const std::vector<Id> inner = cone(v);
        if (inner.size() > best_size && fits(inner)) best = v, best_size = inner.size();
      }
      if (best == target) return;  // cannot happen: an instruction over leaves fits
      const CutTarget inner{best};
      const uint32_t first = 0;
      write({&first, 1}, {&inner, 1});
      parts_.back().target[0] = TN_NONE;
      made_[best] = next_value_++;
    }
  }

  void write(std::span<const uint32_t> group, std::span<const CutTarget> targets) {
    ProgramPart part;
    std::map<Id, uint16_t> place;
    for (Id v : cone(values(group, targets))) {
      place[v] = static_cast<uint16_t>(part.inst.size());
      part.inst.push_back(instruction(v, place, &part));
    }
    for (uint32_t t : group) {
      part.out.push_back(place[targets[t].value]);
      part.target.push_back(t);
    }
    const bool has_full = std::find(part.in.begin(), part.in.end(), full_input_) != part.in.end();
    if (part.uses_index && full_input_ != TN_NONE && !has_full) part.in.push_back(full_input_);
    parts_.push_back(std::move(part));
  }

  tn_inst instruction(Id v, const std::map<Id, uint16_t>& place, ProgramPart* part) {
    const ScalarNode& n = g_.node(v);
    const auto made = made_.find(v);
    if (made != made_.end() || n.op == TN_OP_INPUT) {
      part->in.push_back(made != made_.end() ? made->second : n.a);
      return {TN_OP_INPUT, n.type, static_cast<uint16_t>(part->in.size() - 1), 0, 0};
    }
    if (n.op == TN_OP_CONST) return {TN_OP_CONST, n.type, slot_for(n, part), 0, 0};
    if (n.op == TN_OP_INDEX) part->uses_index = true;
    const uint32_t operands = operand_count(n.op);
    const auto at = [&](uint32_t k, uint32_t id) { return k < operands ? place.at(id) : static_cast<uint16_t>(id); };
    return {n.op, n.type, at(0, n.a), at(1, n.b), at(2, n.c)};
  }

  static uint16_t slot_for(const ScalarNode& n, ProgramPart* part) {
    const tn_push want = n.a == TN_NONE ? literal_bits(n.bits) : slot(n.a);
    const auto same = std::find_if(part->push.begin(), part->push.end(),
                                   [&](const tn_push& p) { return p.bits == want.bits && p.from == want.from; });
    if (same != part->push.end()) return static_cast<uint16_t>(same - part->push.begin());
    part->push.push_back(want);
    return static_cast<uint16_t>(part->push.size() - 1);
  }

  const ScalarGraph& g_;
  uint32_t next_value_, full_input_;
  std::map<Id, uint32_t> made_;  // value -> its number
  std::vector<ProgramPart> parts_;
};

}  // namespace

tn_program ProgramPart::program() const {
  tn_program p{};
  p.size = sizeof p;
  p.n_inst = static_cast<uint8_t>(inst.size());
  p.n_in = static_cast<uint8_t>(in.size());
  p.n_out = static_cast<uint8_t>(out.size());
  p.n_slots = static_cast<uint8_t>(push.size());
  std::copy(out.begin(), out.end(), p.out);
  p.inst = inst.data();
  return p;
}

std::vector<ProgramPart> cut(const ScalarGraph& graph, std::span<const CutTarget> targets, uint32_t first_part_value,
                             uint32_t full_input) {
  return Cutter(graph, first_part_value, full_input).run(targets);
}

}  // namespace tenon::ops
