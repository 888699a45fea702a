// ops/reduction/min.cpp - the smallest over axes.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"min", kNumbers, 0};

std::vector<Case> cases() { return reduction_cases(Fill::Spaced, true); }

}  // namespace

extern const OpDecl op_min{
    .def = reduction_def(TN_OPID_MIN, &kRule, expand_monoid<TN_MONOID_MIN>),
    .summary = "The smallest over axes.",
    .formula = "y = min of x",
    .semantics = "A NaN wins. No elements: +Inf, for integers the highest. Equal minima share the gradient "
                 "evenly. Attribute axes: absent = all, an empty list = none; negative axes count from the "
                 "end.",
    .example = "min f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
