// ops/norm/norm_tools.h - pieces that the normalising ops share. All arithmetic is in the compute type (f32 for narrow types).
#pragma once
#include "ops/movement/rule_tools.h"

namespace tenon::ops {

// Cases of ops over one axis: every rank, zero sizes, tile boundaries, strides.
std::vector<Case> axis_cases(Fill fill = Fill::Normal);

// Operands 1 and 2 (scale, bias) where present: x's element type and `expected` dims.
tn_status check_affine(tn_diag*, const char* op, const tn_op*, const Dims& expected, const Calc&);

// y = (x - mean) * rstd * scale + bias in one pass; scale and bias may be absent. All broadcast to x; y has type `storage`.
Value normalise(Emit&, Value x, Value mean, Value rstd, Value scale, Value bias, uint32_t storage);

// 1 / sqrt(variance + epsilon)
Value reciprocal_deviation(Emit&, Value variance, double epsilon);

// a * b in the compute type, reading narrow operands directly.
Value wide_product(Emit&, Value a, Value b);

// dx of a normalisation: rstd * (g - m1 - xhat * m2); scaling as given. Output in `storage`.
Value normal_gradient(Emit&, Value x, Value mean, Value rstd, Value g, Value m1, Value m2, uint32_t storage);

}  // namespace tenon::ops
