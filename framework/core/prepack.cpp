// Weights stored once in the layout that the best kernel of a product reads.
#include "framework/core/state.h"

namespace tenon {
using namespace detail;
namespace {

// A left operand that goes with `weight`: its dtype, and `rows` rows.
tn_type left_of(const tn_type& weight, int64_t rows) {
  tn_type t{};
  t.dtype = weight.dtype == TN_I8 ? uint8_t{TN_U8} : weight.dtype;
  t.rank = 2;
  t.align_log2 = 6;
  t.dim[0] = rows, t.dim[1] = weight.dim[0];
  t.stride[0] = weight.dim[0], t.stride[1] = 1;
  return t;
}

void check_weight(const Tensor& w, int64_t rows, Where where) {
  require_defined(w, "prepack", "weight", where);
  if (w.rank() != 2)
    raise(TN_E_SHAPE, error::id(error::kShape, 112), where, "prepack", "a weight is a matrix", w.type_text() + " has " + format("%u axes", w.rank()),
          "reshape it to [k, n], as matmul(x, weight) takes it");
  if (rows < 1)
    raise(TN_E_ARG, error::id(error::kArg, 118), where, "prepack", "rows is a number of rows to expect", format("%lld given", static_cast<long long>(rows)),
          "give the usual batch size, at least 1");
  if (thread().grad_enabled && w.impl()->node != nullptr)
    raise(TN_E_STATE, error::id(error::kGrad, 16), where, "prepack", "a packed weight has no gradient", w.type_text() + " requires one, and gradients are recorded",
          "pack under NoGrad, or weight.detach(); train with the weight itself");
}

}  // namespace

bool Tensor::is_packed() const { return impl_ && meta(impl_).layout != TN_LAYOUT_STRIDED; }

Tensor prepack(const Tensor& weight, int64_t rows, Where where) {
  check_weight(weight, rows, where);
  DeviceState* device = weight.impl()->device;
  RuntimeState* rt = device->runtime;
  const tn_type& type = meta(weight.impl());
  const uint32_t in[2] = {intern(rt, left_of(type, rows), where), intern(rt, type, where)};
  const tn_spec spec{rt->op[TN_OPID_MATMUL], 0, device->id, 0, 2, 0, in};
  tn_tensor* packed = nullptr;
  tn_diag diag{sizeof diag};
  const tn_status s = tn_tensor_pack(queue(thread(), device, where), &spec, 1, weight.handle(), &packed, &diag);
  if (s != TN_OK) raise(diag, s, where, "prepack", device);
  return adopt(new_impl(thread(), packed, device));
}

namespace detail {

void refuse_packed_gradient(const Tensor& a, const Tensor& b, Where where) {
  if (!thread().grad_enabled || (a.impl()->node == nullptr && b.impl()->node == nullptr)) return;
  raise(TN_E_STATE, error::id(error::kGrad, 16), where, "matmul", "a packed weight has no gradient",
        "b is " + b.type_text() + ", a is " + a.type_text() + ", one of them requires a gradient and gradients are recorded",
        "put NoGrad around inference; train with the weight that was packed");
}

}  // namespace detail
}  // namespace tenon
