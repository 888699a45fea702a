// tools/conformance/problem.h - a call as a kernel is asked about it: types of all operands, attributes with defaults,
// elementwise inputs broadcast and axes merged, as ops.def says the core does.
//
//   Problem p;  std::string why;
//   if (make_problem(call, &p, &why) == TN_OK) row.supports(self, &ref, &p.op(), &support, &diag);
#pragma once
#include <tenon/plugin.h>

#include <string>
#include <vector>

#include "tools/conformance/machine.h"

namespace tenon::conformance {

class Problem {
 public:
  const Call* call = nullptr;      // borrowed
  std::vector<Placement> in;       // how the call's arrays lie; type of an absent one is empty
  std::vector<tn_type> out;        // as infer gives them
  std::vector<tn_type> seen;       // inputs, then outputs, as the kernel sees them
  const tn_op& op() const { return op_; }
  // Types and attributes as they are, but one input's (it has no strides left: its bytes are a kernel's own).
  Problem with_opaque(uint32_t operand) const;
  Problem() = default;
  Problem(const Problem& other) { *this = other; }
  Problem& operator=(const Problem& other);
  std::string text() const;        // an op spec: "matmul f32[2,3] f32[3,4]{1,3} --attr dtype=f32"

 private:
  friend tn_status make_problem(const Call&, Problem*, std::string*);
  tn_op op_{};
};

// TN_E_* of the shape rule when the call is not allowed.
tn_status make_problem(const Call& call, Problem* out, std::string* message);
std::string spec_text(const Call& call);

}  // namespace tenon::conformance
