// ops/cases.h - case lists shared by ops of one form: shapes and layouts that break things.
// Among them: rank 0, empty, length 1, odd and vector-width lengths, rank 5, axes reversed in memory, gaps, stride 0.
#pragma once
#include "ops/op.h"

namespace tenon::ops {

std::vector<Case> unary_cases(Fill fill, std::vector<double> push = {});
// Broadcast pairs, and one operand absent (then `scalar` is in slot 0).
std::vector<Case> binary_cases(Fill a, Fill b, double scalar);
std::vector<Case> ternary_cases(CaseOperand model_a, Fill b, Fill c);
// Shapes with axes (absent, one, several, negative, none) and keepdims. `empty`: also reductions over no elements.
std::vector<Case> reduction_cases(Fill fill, bool empty);
std::vector<Case> arg_cases();  // one attribute axis

CaseAttr case_ints(uint32_t key, std::vector<int64_t> list);
CaseAttr case_i64(uint32_t key, int64_t value);
CaseAttr case_program(uint32_t key, void (*program)(ProgramBuilder&));
// Same cases, but gradients are not compared with finite differences (there are none, or jumps).
std::vector<Case> not_differentiable(std::vector<Case> cases);

}  // namespace tenon::ops
