// ops/reduction/arg.cpp - see arg.h.
#include "ops/reduction/arg.h"

namespace tenon::ops {

tn_status arg_infer(void* name_ptr, const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag* diag) {
  const char* name = static_cast<const char*>(name_ptr);
  const tn_type& x = op->type[0];
  if ((kNumbers >> x.dtype & 1) == 0)
    return fail(diag, TN_E_DTYPE, error_id(kDtype, 3), "%s is not defined for %s\nwhy: operand 0 is %s\n"
                "try: cast it to a type that the op takes, e.g. u8", name, dtype_name(x.dtype), type_text(x).c_str());
  const int64_t given = attr_i64(*op, TN_KEY_AXIS, -1), axis = normalise_axis(given, x.rank);
  if (axis < 0)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 5), "%s: axis out of range\nwhy: axis %lld, the operand is %s\n"
                "try: give an axis from %d to %d, or reshape to one axis", name, static_cast<long long>(given),
                type_text(x).c_str(), -x.rank, x.rank - 1);
  if (x.dim[axis] == 0)
    return fail(diag, TN_E_SHAPE, error_id(kShape, 10), "%s: no element to point at\nwhy: axis %lld of %s is empty\n"
                "try: leave out empty operands", name, static_cast<long long>(axis), type_text(x).c_str());
  tn_type t{};
  t.dtype = TN_I64;
  for (uint32_t i = 0; i < x.rank; ++i)
    if (i != axis || keepdims_of(*op)) t.dim[t.rank++] = i == axis ? 1 : x.dim[i];
  set_dense(&t, dims);
  *out = t;
  return TN_OK;
}

tn_status arg_no_gradient(void*, tn_builder*, const tn_rule*, tn_diag*) { return TN_OK; }

}  // namespace tenon::ops
