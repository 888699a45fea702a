// In-place functions, copies between devices, contiguous memory.
#include "framework/core/state.h"

#include <algorithm>

namespace tenon {
using namespace detail;
namespace {

// Dense in some axis order: results of elementwise ops keep such an order, so they can be written over the operand.
bool is_dense(const tn_type& t) {
  // Walks the axes from the smallest stride up: each must go on where the one before ended.
  uint32_t left = 0;
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (t.dim[i] == 0) return true;
    if (t.dim[i] != 1) left |= 1u << i;
  }
  int64_t stride = 1;
  while (left != 0) {
    bool found = false;
    for (uint32_t i = 0; i < t.rank && !found; ++i) {
      if (!(left >> i & 1) || t.stride[i] != stride) continue;
      left &= ~(1u << i);
      stride *= t.dim[i];
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

bool same_dims(const tn_type& a, const tn_type& b) {
  return a.rank == b.rank && std::equal(a.dim, a.dim + a.rank, b.dim);
}

bool needs_tape(const ThreadState& ts, const Tensor& x, const Tensor* b) {
  return ts.grad_enabled && (x.impl()->node || (b && b->defined() && b->impl()->node));
}

// What a tape allows to be overwritten.
void check_in_place(const ThreadState& ts, const Tensor& x, const Tensor* b, const char* op, Where where) {
  require_defined(x, op, "this", where);
  if (!needs_tape(ts, x, b)) return;
  if (x.impl()->node && x.is_leaf())
    raise(TN_E_STATE, error::id(error::kGrad, 3), where, op, "a leaf that requires a gradient would be overwritten",
          x.type_text() + " is where gradients end; after the write there would be no value to give the gradient of",
          "write under tenon::NoGrad, or compute a new tensor");
  if (x.impl()->is_view)
    raise(TN_E_STATE, error::id(error::kGrad, 4), where, op, "a view would be written while gradients are recorded",
          x.type_text() + " shares memory with a tensor whose history would not hear of the write",
          "write to the tensor itself, or compute a new tensor");
}

// dst = value, over any strides; recorded as an identity when a gradient is wanted.
void assign(ThreadState& ts, Tensor& dst, const Tensor& value, Where where) {
  tn_diag diag{sizeof diag};
  tn_queue* q = queue(ts, dst.impl()->device, where);
  note(ts, q, where);
  const tn_status s = tn_tensor_copy(q, dst.impl()->handle, value.impl()->handle, &diag);
  if (s != TN_OK) raise(diag, s, where, "copy_", dst.impl()->device);
  record_transfer(ts, value, dst, where);
}

Tensor& in_place(Tensor& x, uint32_t number, const Tensor* b, const Operand* scalar, Where where) {
  ThreadState& ts = thread();
  check_in_place(ts, x, b, op_name(number), where);
  if (b) require_defined(*b, op_name(number), "b", where);
  const tn_type& type = meta(x.impl());
  if (!is_dense(type)) {
    const Tensor value = scalar ? (number == TN_OPID_ADD ? add(Operand(x, where), *scalar) : mul(Operand(x, where), *scalar))
                                : (number == TN_OPID_ADD   ? add(x, *b, where)
                                   : number == TN_OPID_SUB ? sub(x, *b, where)
                                   : number == TN_OPID_MUL ? mul(x, *b, where)
                                                           : div(x, *b, where));
    if (!same_dims(meta(value.impl()), type))
      raise(TN_E_SHAPE, error::id(error::kShape, 111), where, op_name(number), "the result does not fit the tensor that is written",
            format("the result is %s, the tensor %s", value.type_text().c_str(), x.type_text().c_str()), "compute a new tensor instead");
    assign(ts, x, value, where);
    return x;
  }
  const uint64_t push = scalar ? scalar_bits(dtype(ts, x.impl()), *scalar, op_name(number)) : 0;
  const In operands[2] = {in(x), b ? in(*b) : In{}};
  Call c;
  c.number = number;
  c.in = operands;
  c.n_in = 2;
  c.push = scalar ? &push : nullptr;
  c.push_bytes = scalar ? 8 : 0;
  c.device = x.impl()->device;
  c.where = where;
  c.in_place = true;
  TensorImpl* out = x.impl();
  run(ts, c, &out);
  return x;
}

}  // namespace

Tensor& Tensor::add_(const Tensor& b, Where where) { return in_place(*this, TN_OPID_ADD, &b, nullptr, where); }
Tensor& Tensor::sub_(const Tensor& b, Where where) { return in_place(*this, TN_OPID_SUB, &b, nullptr, where); }
Tensor& Tensor::mul_(const Tensor& b, Where where) { return in_place(*this, TN_OPID_MUL, &b, nullptr, where); }
Tensor& Tensor::div_(const Tensor& b, Where where) { return in_place(*this, TN_OPID_DIV, &b, nullptr, where); }
Tensor& Tensor::add_(double b, Where where) {
  const Operand v(b, where);
  return in_place(*this, TN_OPID_ADD, nullptr, &v, where);
}
Tensor& Tensor::mul_(double b, Where where) {
  const Operand v(b, where);
  return in_place(*this, TN_OPID_MUL, nullptr, &v, where);
}

Tensor& Tensor::copy_(const Tensor& source, Where where) {
  ThreadState& ts = thread();
  check_in_place(ts, *this, &source, "copy_", where);
  require_defined(source, "copy_", "source", where);
  Tensor value = cast(source, dtype(), where);
  if (!same_dims(meta(value.impl()), meta(impl_))) value = value.expand(shape(), where);
  assign(ts, *this, value, where);
  return *this;
}

Tensor& Tensor::fill_(double value, Where where) {
  ThreadState& ts = thread();
  check_in_place(ts, *this, nullptr, "fill_", where);
  const Tensor constant = full({}, value, {.dtype = dtype(), .device = device()}, where).expand(shape(), where);
  assign(ts, *this, constant, where);
  return *this;
}

Tensor Tensor::clone(Where where) const {
  require_defined(*this, "clone", "this", where);
  const In operand = in(*this);
  Call c;
  c.number = TN_OPID_COPY;
  c.in = &operand;
  c.n_in = 1;
  c.device = impl_->device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  return adopt(out);
}
Tensor Tensor::contiguous(Where where) const {
  require_defined(*this, "contiguous", "this", where);
  return is_row_major(meta(impl_)) ? *this : clone(where);
}
Tensor Tensor::channels_last(Where where) const {
  require_defined(*this, "channels_last", "this", where);
  const Tensor last = permute({0, 2, 3, 1}, where).contiguous(where);
  if (last.dim(3) != 1) return last.permute({0, 3, 1, 2}, where);
  // One channel lies the same in both orders; its stride tells convolutions which one is meant.
  return last.reshape({last.dim(0), last.dim(1), last.dim(2)}, where).unsqueeze(3, where).permute({0, 3, 1, 2}, where);
}

Tensor Tensor::to(Device d, Where where) const {
  require_defined(*this, "to", "this", where);
  if (!d || d == device()) return *this;
  Tensor out = empty(shape(), {.dtype = dtype(), .device = d}, where);
  assign(thread(), out, *this, where);
  return out;
}

}  // namespace tenon
