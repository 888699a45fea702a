// Making tensors.
#include "framework/core/state.h"

#include <algorithm>
#include <cmath>

namespace tenon {
using namespace detail;
namespace {

Tensor finish(Tensor t, const TensorOptions& o) {
  if (o.requires_grad) t.set_requires_grad(true);
  return t;
}

// An op without inputs: dims, dtype and up to two push slots.
Tensor source(uint32_t number, const Shape& dims, DType t, DeviceState* device, const uint64_t* push, uint32_t slots, Where where) {
  Attrs attrs;
  attrs.ints(TN_KEY_DIMS, dims).i64(TN_KEY_DTYPE, static_cast<int64_t>(t));
  Call c;
  c.number = number;
  c.attrs = &attrs;
  c.push = push;
  c.push_bytes = 8 * slots;
  c.device = device;
  c.where = where;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  return adopt(out);
}

Tensor random(uint32_t number, const Shape& dims, const TensorOptions& o, Where where) {
  Generator& g = o.generator ? *o.generator : default_generator();
  const GeneratorState s = g.take(static_cast<uint64_t>(dims.numel()));
  const uint64_t push[2] = {s.seed, s.offset};
  return finish(source(number, dims, o.dtype, pick_device(o, where), push, 2, where), o);
}

void check_dims(const Shape& dims, const char* op, Where where) {
  for (uint32_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0)
      raise(TN_E_SHAPE, error::id(error::kShape, 104), where, op, "a negative size",
            format("axis %u of %s", i, to_string(dims).c_str()), "give sizes of 0 or more");
}

}  // namespace

Tensor empty(const Shape& dims, TensorOptions o, Where where) {
  check_dims(dims, "empty", where);
  DeviceState* d = pick_device(o, where);
  ThreadState& ts = thread();
  tn_diag diag{sizeof diag};
  tn_tensor* handle = nullptr;
  const uint32_t type = intern(d->runtime, dense_type(o.dtype, dims), where);
  const tn_status s = tn_tensor_create(queue(ts, d, where), type, &handle, &diag);
  if (s != TN_OK) raise(diag, s, where, "empty", d);
  return finish(adopt(new_impl(ts, handle, d)), o);
}

Tensor full(const Shape& dims, double value, TensorOptions o, Where where) {
  check_dims(dims, "full", where);
  const uint64_t push = scalar_bits(o.dtype, Operand(value, where), "full");
  return finish(source(TN_OPID_FULL, dims, o.dtype, pick_device(o, where), &push, 1, where), o);
}
Tensor zeros(const Shape& dims, TensorOptions o, Where where) { return full(dims, 0, o, where); }
Tensor ones(const Shape& dims, TensorOptions o, Where where) { return full(dims, 1, o, where); }
Tensor full_like(const Tensor& t, double value, Where where) {
  require_defined(t, "full_like", "t", where);
  return full(t.shape(), value, {.dtype = t.dtype(), .device = t.device()}, where);
}
Tensor zeros_like(const Tensor& t, Where where) { return full_like(t, 0, where); }
Tensor ones_like(const Tensor& t, Where where) { return full_like(t, 1, where); }

Tensor arange(double start, double stop, double step, TensorOptions o, Where where) {
  const double count = std::ceil((stop - start) / step);
  if (!(step != 0) || !std::isfinite(count))
    raise(TN_E_ARG, error::id(error::kArg, 103), where, "arange", "the range has no finite number of elements",
          format("start %g, stop %g, step %g", start, stop, step), "give a step other than 0 and finite ends");
  const Shape dims{count > 0 ? static_cast<int64_t>(count) : 0};
  Attrs attrs;
  attrs.ints(TN_KEY_DIMS, dims).i64(TN_KEY_AXIS, 0).i64(TN_KEY_DTYPE, static_cast<int64_t>(o.dtype));
  Call c;
  c.number = TN_OPID_IOTA;
  c.attrs = &attrs;
  c.device = pick_device(o, where);
  c.where = where;
  TensorImpl* out = nullptr;
  run(thread(), c, &out);
  Tensor t = adopt(out);
  if (step != 1) t = mul(t, Operand(step, where));
  if (start != 0) t = add(t, Operand(start, where));
  return finish(std::move(t), o);
}

Tensor eye(int64_t n, TensorOptions o, Where where) {
  const Tensor i = arange(0, static_cast<double>(n), 1, {.dtype = DType::i64, .device = o.device}, where);
  return finish(cast(equal(i.unsqueeze(1), i, where), o.dtype, where), o);
}

Tensor rand(const Shape& dims, TensorOptions o, Where where) { return random(TN_OPID_RANDOM_UNIFORM, dims, o, where); }
Tensor randn(const Shape& dims, TensorOptions o, Where where) { return random(TN_OPID_RANDOM_NORMAL, dims, o, where); }

Tensor from_host(const void* data, DType t, const Shape& dims, TensorOptions o, Where where) {
  TensorOptions plain = o;
  plain.dtype = t;
  plain.requires_grad = false;
  Tensor out = empty(dims, plain, where);
  out.write(data, static_cast<uint64_t>(dims.numel() * size_bytes(t)), where);
  return finish(std::move(out), o);
}

Tensor detail_from_list(const void* data, DType t, int64_t n, const Shape& dims, const TensorOptions& o, Where where) {
  if (dims.numel() != n)
    raise(TN_E_SHAPE, error::id(error::kShape, 105), where, "tensor", "the list and the shape differ in length",
          format("%lld values for %s, which has %lld elements", static_cast<long long>(n), to_string(dims).c_str(),
                 static_cast<long long>(dims.numel())),
          "give as many values as the shape has elements");
  // Options name another element type only on purpose: their default is the list's own.
  return from_host(data, t, dims, o, where);
}

Tensor from_blob(void* data, const Shape& dims, DType t, void (*drop)(void*, void*), void* ctx, const Shape& strides, Where where) {
  check_dims(dims, "from_blob", where);
  tn_type type = dense_type(t, dims);
  // The promise that this address keeps.
  type.align_log2 = static_cast<uint8_t>(data == nullptr ? 6 : std::min(6, __builtin_ctzll(reinterpret_cast<uintptr_t>(data))));
  if (!strides.empty()) {
    if (strides.size() != dims.size())
      raise(TN_E_SHAPE, error::id(error::kShape, 106), where, "from_blob", "dims and strides differ in number",
            format("dims %s, strides %s", to_string(dims).c_str(), to_string(strides).c_str()), "give one stride per axis");
    std::copy(strides.begin(), strides.end(), type.stride);
  }
  DeviceState* d = state_of(default_device());
  if (d->kind != TN_KIND_CPU) d = state_of(device("cpu:0", where));
  int64_t last = 0;  // elements from the first to the last, however the strides run
  bool none = false;
  for (uint32_t i = 0; i < dims.size(); ++i) {
    none = none || dims[i] == 0;
    if (type.stride[i] > 0) last += (dims[i] - 1) * type.stride[i];
  }
  const uint64_t bytes = none ? 0 : static_cast<uint64_t>((last + 1) * size_bytes(t));
  tn_tensor* handle = nullptr;
  tn_diag diag{sizeof diag};
  const tn_status s = tn_tensor_from_host(d->runtime->handle, d->id, intern(d->runtime, type, where), data, bytes, drop, ctx, &handle, &diag);
  if (s != TN_OK) raise(diag, s, where, "from_blob", d);
  return adopt(new_impl(thread(), handle, d));
}

}  // namespace tenon
