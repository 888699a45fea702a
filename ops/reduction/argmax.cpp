// ops/reduction/argmax.cpp - where the largest element lies along an axis.
#include "ops/reduction/arg.h"

namespace tenon::ops {

extern const OpDecl op_argmax{
    .def = arg_def(TN_OPID_ARGMAX, "argmax", arg_expand<TN_MONOID_ARGMAX>),
    .summary = "Where the largest element lies along an axis.",
    .formula = "y = the least i with x[i] = max x",
    .semantics = "i64. The first of equals. A NaN wins, the first one. Attribute axis is -1 when absent; an empty axis is an "
                 "error. No gradient.",
    .example = "argmax f32[2,3] --axis 1",
    .cases = arg_cases,
    .dtypes = kNumbers,
    .ulp_f32 = 0};

}  // namespace tenon::ops
