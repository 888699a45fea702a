// ops/reduction/sum.cpp - the sum over axes.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"sum", kNumbers, 0};

std::vector<Case> cases() { return reduction_cases(Fill::Normal, true); }

}  // namespace

extern const OpDecl op_sum{
    .def = reduction_def(TN_OPID_SUM, &kRule, expand_monoid<TN_MONOID_SUM>),
    .summary = "The sum over axes.",
    .formula = "y = sum of x",
    .semantics = "Keeps the element type: integers wrap, f16 and bf16 accumulate in f32. No elements: 0. "
                 "Attribute axes: absent = all, an empty list = none; negative axes count from the end.",
    .example = "sum f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
