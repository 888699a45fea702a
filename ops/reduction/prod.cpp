// ops/reduction/prod.cpp - the product over axes.
#include "ops/reduction/reduction.h"

namespace tenon::ops {
namespace {

constexpr Reduction kRule{"prod", kNumbers, 0};

std::vector<Case> cases() { return reduction_cases(Fill::Positive, true); }

}  // namespace

extern const OpDecl op_prod{
    .def = reduction_def(TN_OPID_PROD, &kRule, expand_monoid<TN_MONOID_PROD>),
    .summary = "The product over axes.",
    .formula = "y = product of x",
    .semantics = "Keeps the element type: integers wrap. No elements: 1. The gradient is exact also where "
                 "elements are 0. Attribute axes: absent = all, an empty list = none; negative axes count "
                 "from the end.",
    .example = "prod f32[2,3] --axes 1",
    .cases = cases,
    .dtypes = kNumbers};

}  // namespace tenon::ops
