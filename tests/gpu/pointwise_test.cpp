// tests/gpu/pointwise_test.cpp - pointwise and copy on an OpenCL device against the reference kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/gpu/opencl_runner.h"
#include "tests/reference/helpers.h"

namespace tenon::gpu {
namespace {

using namespace reference::testing;
using testing::HostView;
using testing::OpenClRunner;

Caps caps_of_test() {
  Caps caps;
  caps.storage = caps.arithmetic = ~uint64_t{0};
  return caps;
}

HostView random_view(uint32_t dtype, size_t elements, std::mt19937_64* random) {
  HostView v{std::vector<char>(elements * reference::dtype_bytes(dtype)), 0};
  for (size_t i = 0; i < elements; ++i)
    reference::store_f64(&v.bytes[i * reference::dtype_bytes(dtype)], dtype, dtype == TN_BOOL ? double((*random)() & 1) : double(static_cast<int>((*random)() % 61) - 30) / 4);
  return v;
}

bool close(const void* a, const void* b, uint32_t dtype, double bound) {
  const double x = reference::load_f64(a, dtype), y = reference::load_f64(b, dtype);
  return (std::isnan(x) && std::isnan(y)) || x == y || std::fabs(x - y) <= bound * std::fabs(y);
}

// Runs one op both ways; inputs are views of `elements` elements beginning at offset.
void compare(OpenClRunner* runner, const Caps& caps, uint32_t row, const tn_op& op, std::vector<HostView> in, const uint64_t* push, double bound, const std::string& what) {
  Recipe recipe;
  tn_diag diag{};
  ASSERT_EQ(make_recipe(caps, row, op, &recipe, &diag), TN_OK) << what << ": " << diag.msg;
  int64_t size = 1;
  const tn_type& out = op.type[op.n_in];
  for (int d = 0; d < out.rank; ++d) size *= out.dim[d];
  HostView got{std::vector<char>(static_cast<size_t>(size) * reference::dtype_bytes(out.dtype)), 0}, want = got;
  std::vector<HostView*> views;
  std::vector<void*> data;
  for (HostView& v : in) views.push_back(&v), data.push_back(v.bytes.data() + v.offset);
  views.push_back(&got), data.push_back(want.bytes.data());
  ASSERT_EQ(reference::run(op, data.data(), push, nullptr, &diag), TN_OK) << diag.msg;
  ASSERT_EQ(runner->run(recipe, caps, views, push), "") << what;
  const uint32_t width = reference::dtype_bytes(out.dtype);
  for (int64_t i = 0; i < size; ++i)
    ASSERT_TRUE(bound == 0 ? std::memcmp(&got.bytes[i * width], &want.bytes[i * width], width) == 0 : close(&got.bytes[i * width], &want.bytes[i * width], out.dtype, bound))
        << what << " element " << i << ": " << reference::load_f64(&got.bytes[i * width], out.dtype) << ", reference " << reference::load_f64(&want.bytes[i * width], out.dtype);
}

TEST(GpuPointwise, opcodes_agree_with_the_reference) {
  OpenClRunner runner;
  if (!runner.usable()) GTEST_SKIP() << "no OpenCL device";
  std::mt19937_64 random(1);
  for (uint32_t t : {TN_F32, TN_F64, TN_I32, TN_I8, TN_U64, TN_I64, TN_U16}) {
    const bool real = t == TN_F32 || t == TN_F64;
    for (uint8_t op : {TN_OP_NEG, TN_OP_ABS, TN_OP_RINT, TN_OP_EXP, TN_OP_SIN, TN_OP_ERF, TN_OP_ADD, TN_OP_MUL, TN_OP_DIV, TN_OP_REM, TN_OP_POW, TN_OP_MIN, TN_OP_SHL, TN_OP_SHR, TN_OP_XOR}) {
      if (real ? op >= TN_OP_AND : (op >= TN_OP_SQRT && op <= TN_OP_ERF)) continue;
      const int n_in = op < TN_OP_ADD ? 1 : 2;
      const ProgramText p = single(op, t, t, n_in);
      const tn_program view = p.view();
      const std::vector<tn_attr> attrs = {attr_of(TN_KEY_PROGRAM, view)};
      std::vector<tn_type> types(static_cast<size_t>(n_in), type_of(t, {5, 7}, {1, -5}));
      types.push_back(type_of(t, {5, 7}));
      std::vector<HostView> in;
      for (int k = 0; k < n_in; ++k) in.push_back(random_view(t, 35, &random)), in.back().offset = 30 * reference::dtype_bytes(t);
      compare(&runner, caps_of_test(), 0, op_of(TN_OPID_POINTWISE, types, 1, attrs), in, nullptr, t == TN_F32 ? 1e-6 : real ? 2e-15 : 0, "op " + std::to_string(op) + " dtype " + std::to_string(t));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(GpuPointwise, casts_agree_with_the_reference_bit_for_bit) {
  OpenClRunner runner;
  if (!runner.usable()) GTEST_SKIP() << "no OpenCL device";
  std::mt19937_64 random(2);
  for (uint8_t from : {TN_BOOL, TN_I8, TN_U32, TN_I64, TN_F8E4M3, TN_F16, TN_BF16, TN_F32, TN_F64})
    for (uint8_t to : {TN_BOOL, TN_U8, TN_I16, TN_U64, TN_F8E5M2, TN_F16, TN_BF16, TN_F32, TN_F64}) {
      ProgramText p;
      p.inst = {{TN_OP_INPUT, from, 0, 0, 0}, {TN_OP_CAST, to, 0, 0, 0}};
      p.out = {1};
      const tn_program view = p.view();
      const std::vector<tn_attr> attrs = {attr_of(TN_KEY_PROGRAM, view)};
      compare(&runner, caps_of_test(), 0, op_of(TN_OPID_POINTWISE, {type_of(from, {67}), type_of(to, {67})}, 1, attrs), {random_view(from, 67, &random)}, nullptr, 0,
              "cast " + std::to_string(from) + " to " + std::to_string(to));
      if (HasFatalFailure()) return;
    }
}

TEST(GpuPointwise, copies_of_all_lengths_and_under_a_low_binding_limit) {
  OpenClRunner runner;
  if (!runner.usable()) GTEST_SKIP() << "no OpenCL device";
  std::mt19937_64 random(3);
  Caps low = caps_of_test();
  low.binding_bytes = 64, low.binding_align = 4;  // 15 elements of f32 at a time
  for (int64_t n = 0; n <= 70; n += 7) {
    compare(&runner, caps_of_test(), 1, op_of(TN_OPID_COPY, {type_of(TN_F16, {n, 3}, {1, n}), type_of(TN_F16, {n, 3})}, 1, {}), {random_view(TN_F16, static_cast<size_t>(n) * 3, &random)}, nullptr, 0, "copy");
    compare(&runner, low, 1, op_of(TN_OPID_COPY, {type_of(TN_F32, {n}), type_of(TN_F32, {n})}, 1, {}), {random_view(TN_F32, static_cast<size_t>(n), &random)}, nullptr, 0, "copy in pieces");
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon::gpu
