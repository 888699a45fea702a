// tests/reference/helpers.h - small tensors and programs for the tests of the reference kernels.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "ops/reference/dtype.h"
#include "ops/reference/reference.h"

namespace tenon::reference::testing {

using Dims = std::vector<int64_t>;

inline tn_type type_of(uint32_t dtype, const Dims& dims, const Dims& strides = {}) {
  tn_type t{};
  t.dtype = static_cast<uint8_t>(dtype), t.rank = static_cast<uint8_t>(dims.size());
  int64_t below = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    t.dim[i] = dims[i];
    t.stride[i] = strides.empty() ? below : strides[i];
    below *= dims[i];
  }
  return t;
}

struct ProgramText {
  std::vector<tn_inst> inst;
  std::vector<uint16_t> out;
  int n_in = 1, n_slots = 0;
  tn_program view() const {
    tn_program p{};
    p.size = sizeof p, p.n_inst = static_cast<uint8_t>(inst.size()), p.n_in = static_cast<uint8_t>(n_in);
    p.n_out = static_cast<uint8_t>(out.size()), p.n_slots = static_cast<uint8_t>(n_slots), p.inst = inst.data();
    for (size_t i = 0; i < out.size(); ++i) p.out[i] = out[i];
    return p;
  }
};
// One opcode over `n` inputs of one dtype.
inline ProgramText single(uint8_t op, uint32_t result, uint32_t operand, int n) {
  ProgramText p;
  const uint8_t t = static_cast<uint8_t>(operand);
  for (int i = 0; i < n; ++i) p.inst.push_back({TN_OP_INPUT, t, static_cast<uint16_t>(i), 0, 0});
  p.inst.push_back({op, static_cast<uint8_t>(result), 0, static_cast<uint16_t>(n > 1 ? 1 : 0), static_cast<uint16_t>(n > 2 ? 2 : 0)});
  p.out = {static_cast<uint16_t>(n)};
  p.n_in = n;
  return p;
}

inline tn_attr attr_of(uint32_t key, int64_t v) { tn_attr a{}; a.key = key, a.type = TN_ATTR_I64, a.v.i = v; return a; }
inline tn_attr attr_of(uint32_t key, const Dims& v) { tn_attr a{}; a.key = key, a.type = TN_ATTR_I64S, a.v.p = v.data(), a.len = v.size(); return a; }
inline tn_attr attr_of(uint32_t key, const tn_program& p) { tn_attr a{}; a.key = key, a.type = TN_ATTR_PROGRAM, a.v.p = &p, a.len = 1; return a; }

inline tn_op op_of(uint64_t id, const std::vector<tn_type>& types, int n_out, const std::vector<tn_attr>& attrs, uint32_t push_bytes = 0) {
  tn_op op{};
  op.size = sizeof op, op.op_id = id, op.op_version = 1, op.n_out = static_cast<uint16_t>(n_out);
  op.n_in = static_cast<uint16_t>(types.size() - static_cast<size_t>(n_out)), op.type = types.data();
  op.n_attr = static_cast<uint16_t>(attrs.size()), op.attr = attrs.data(), op.push_bytes = push_bytes;
  return op;
}
inline tn_status execute(uint64_t id, const std::vector<tn_type>& types, int n_out, const std::vector<tn_attr>& attrs,
                         std::vector<void*> data, const void* push = nullptr, tn_diag* diag = nullptr) {
  return run(op_of(id, types, n_out, attrs), data.data(), push, nullptr, diag);
}
template <class T> void* raw(const std::vector<T>& v) { return const_cast<T*>(v.data()); }

// Applies one opcode through the whole pointwise kernel.
template <class R, class T>
std::vector<R> apply(uint8_t op, uint32_t result, uint32_t operand, const std::vector<std::vector<T>>& in) {
  const ProgramText text = single(op, result, operand, static_cast<int>(in.size()));
  const tn_program p = text.view();
  const int64_t n = static_cast<int64_t>(in[0].size());
  std::vector<R> out(in[0].size());
  std::vector<tn_type> types(in.size(), type_of(operand, {n}));
  types.push_back(type_of(result, {n}));
  std::vector<void*> data;
  for (const auto& v : in) data.push_back(raw(v));
  data.push_back(out.data());
  EXPECT_EQ(execute(TN_OPID_POINTWISE, types, 1, {attr_of(TN_KEY_PROGRAM, p)}, data), TN_OK) << "opcode " << int{op};
  return out;
}

template <class T> constexpr uint32_t dtype_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return TN_U8;
  if constexpr (std::is_same_v<T, int8_t>) return TN_I8;
  if constexpr (std::is_same_v<T, uint16_t>) return TN_U16;
  if constexpr (std::is_same_v<T, int16_t>) return TN_I16;
  if constexpr (std::is_same_v<T, uint32_t>) return TN_U32;
  if constexpr (std::is_same_v<T, int32_t>) return TN_I32;
  if constexpr (std::is_same_v<T, uint64_t>) return TN_U64;
  if constexpr (std::is_same_v<T, int64_t>) return TN_I64;
  if constexpr (std::is_same_v<T, float>) return TN_F32;
  return TN_F64;
}

}  // namespace tenon::reference::testing
