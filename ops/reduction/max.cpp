// ops/reduction/max.cpp - the largest over axes.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"max", kNumbers, 0};

std::vector<Case> cases() { return reduction_cases(Fill::Spaced, true); }

}  // namespace

extern const OpDecl op_max{
    .def = reduction_def(TN_OPID_MAX, &kRule, expand_monoid<TN_MONOID_MAX>),
    .summary = "The largest over axes.",
    .formula = "y = max of x",
    .semantics = "A NaN wins. No elements: -Inf, for integers the lowest. Equal maxima share the gradient "
                 "evenly. Attribute axes: absent = all, an empty list = none; negative axes count from the "
                 "end.",
    .example = "max f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
