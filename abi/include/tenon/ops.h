/* tenon/ops.h - the numbers of ops.def as constants: TN_OPID_ADD, TN_KEY_AXIS, TN_MONOID_SUM, TN_SCATTER_ADD.
 * Example:  tn_emit e = {...}; e.op_id = TN_OPID_MATMUL;                                                              */
#ifndef TENON_OPS_H
#define TENON_OPS_H
#include <tenon/ops.def>
#include <tenon/types.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TN_OPID_(NAME, name, id, n_in, n_out, family) TN_OPID_##NAME = id,
enum { TN_OPS(TN_OPID_) TN_OPID_END_ = 1 << 16 };
#undef TN_OPID_
#define TN_KEY_(NAME, name, key, type) TN_KEY_##NAME = key,
enum { TN_ATTRS(TN_KEY_) TN_KEY_END_ = 1 << 16 };
#undef TN_KEY_
#define TN_MONOID_(NAME, value) TN_MONOID_##NAME = value,
enum { TN_MONOIDS(TN_MONOID_) TN_MONOID_END_ };
#undef TN_MONOID_
#define TN_SCATTER_(NAME, value) TN_SCATTER_##NAME = value,
enum { TN_SCATTERS(TN_SCATTER_) TN_SCATTER_END_ };
#undef TN_SCATTER_

#ifdef __cplusplus
}
#endif
#endif
