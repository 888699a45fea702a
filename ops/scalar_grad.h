// ops/scalar_grad.h - derivatives of scalar programs, as scalar expressions.
//
//   ScalarGraph g;
//   std::vector<ScalarGraph::Id> d = differentiate(program, want, seeds, &g);   // per input
//   std::vector<ProgramPart> parts = cut(g, targets, ...);
//
// Conventions (each has a test):
//   MIN, MAX   equal operands take half each; a NaN operand takes all (the first one of two); shares always sum to 1
//   SELECT     selects, never multiplies: the side not taken gets exactly 0, whatever the seed
//   ABS        seed * sign(x): 0 at 0
//   SIGN FLOOR CEIL TRUNC RINT, comparisons, bit operations, PHILOX, INDEX: no gradient
//   REM        d/da = 1, d/db = -trunc(a / b)
//   SQRT       infinite at 0, as IEEE division says
//   POW        d/da = 0 where b is 0; d/db = 0 where the power is 0 (so also at a = 0 < b) and at 0^0; for a < 0 NaN
//   CAST       the cast of the gradient between floats, else no gradient
//   integers and bool carry no gradient
#pragma once
#include "ops/scalar_graph.h"

namespace tenon::ops {

// Whether values of this type carry gradients: floats of every width.
bool carries_gradient(uint32_t dtype);

// Adds the reverse pass of `program` to `graph`. values: the graph's value per instruction (from inline_program).
// adjoint: per output, the gradient reaching it in its compute type, TN_NONE = zero. want: bit per input.
// Returns per input the gradient in the input's compute type, TN_NONE = zero or not wanted.
std::vector<ScalarGraph::Id> pull_back(ScalarGraph* graph, const tn_program& program, std::span<const ScalarGraph::Id> values,
                                       std::span<const ScalarGraph::Id> adjoint, uint64_t want);

// The vector-Jacobian product of a whole program. Inputs 0..n_in-1 of the graph are the program's, n_in+k is the seed of
// output k (bit k of `seeds` says that it is not zero), in the output's type.
std::vector<ScalarGraph::Id> differentiate(const tn_program& program, uint64_t want, uint64_t seeds, ScalarGraph* graph);

}  // namespace tenon::ops
