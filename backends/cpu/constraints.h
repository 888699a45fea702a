// backends/cpu/constraints.h - a row's constraints, asked by its own supports() first.
//
//   k.supports = within<kCons, supports<true>>;
#pragma once
#include <iterator>

#include "backends/cpu/core.h"

namespace tenon::cpu {

// What a row's constraints refuse, its supports() refuses too, whoever asks: TN_OK, or decline() with the operand. Constraints
// on element types and layouts are looked at; where the device is no CPU, nobody asks.
tn_status check_constraints(const tn_constraint* cons, size_t n, const tn_op&, tn_support* out, tn_diag* diag);
template <const auto& kConstraints, auto kSupports>
tn_status within(tn_instance* self, const tn_device_ref* ref, const tn_op* op, tn_support* out, tn_diag* diag) {
  if (tn_status s = check_constraints(kConstraints, std::size(kConstraints), *op, out, diag); s != TN_OK) return s;
  return kSupports(self, ref, op, out, diag);
}

}  // namespace tenon::cpu
