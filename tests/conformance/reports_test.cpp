// Faults that users of other projects reported, tried here on every candidate. Each test names the public report.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cases.h"
#include "tests/conformance/full_machine.h"
#include "tests/conformance/everywhere.h"

namespace tenon::conformance {
namespace {

using Numbers = std::vector<Number>;
constexpr Number kInf = std::numeric_limits<Number>::infinity();
constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();

Array vec(uint32_t dtype, Numbers v) {
  const auto n = static_cast<int64_t>(v.size());
  return array(dtype, {n}, std::move(v));
}

Numbers repeated(size_t n, Number value) { return Numbers(n, value); }

Call reduction(const char* op, Array x, std::vector<int64_t> axes, int64_t keep = 0) {
  return {op, {ops::case_ints(TN_KEY_AXES, std::move(axes)), ops::case_i64(TN_KEY_KEEPDIMS, keep)}, {std::move(x)}};
}

void expect(const Call& call, const Array& y, Number ulps = 0, bool parts = true) {
  const std::string text = differences(call, {{y}, {{ulps, {}}}}, parts);
  EXPECT_EQ(text, "");
}

// Gradients of one input by vjp, on one machine. The seed is the cotangent of output 0.
Array gradient(Machine& m, const Call& call, uint64_t need, const Array& seed) {
  const Outcome y = m.run(call, "cpu:0");
  EXPECT_TRUE(y.ok()) << y.message;
  Call d = call;
  d.in.insert(d.in.end(), y.out.begin(), y.out.end());
  d.in.push_back(seed);
  const Outcome g = m.run_op(m.derive(m.op(call.op), 1, need), d, "cpu:0");
  EXPECT_TRUE(g.ok()) << g.message;
  return g.out.empty() ? Array{} : g.out[0];
}

void expect_gradient(const Call& call, uint64_t need, const Array& seed, const Numbers& want) {
  for (Machine* m : {&reference_machine(), &full_machine()}) {
    Array g = gradient(*m, call, need, seed);
    if (g.absent()) g.dims = {static_cast<int64_t>(want.size())}, g.dtype = TN_F64, g.v = repeated(want.size(), 0);
    const Array expected = array(g.dtype, g.dims, want);
    EXPECT_EQ(difference(expected, g, {2, {}}, false), "") << call_text(call);
  }
}

// ---- K01: tracel-ai/burn#4814, apache/tvm#19518: a NaN is dropped by max and min ----
TEST(Reports, tracel_ai_burn_4814_max_and_min_keep_a_nan) {
  for (uint32_t dtype : {TN_F32, TN_F16, TN_F64, TN_BF16}) {
    expect(reduction("max", vec(dtype, {1, 3, kNan, 5, 4}), {0}), array(dtype, {}, {kNan}));
    expect(reduction("min", vec(dtype, {kNan, kNan}), {0}), array(dtype, {}, {kNan}));
    expect(reduction("max", vec(dtype, {-kInf, kNan}), {0}), array(dtype, {}, {kNan}));
    expect({"argmax", {}, {vec(dtype, {1, kNan, 5, kNan})}}, array(TN_I64, {}, {1}));
    expect({"maximum", {}, {vec(dtype, {kNan, 1, -kInf}), vec(dtype, {1, kNan, kNan})}}, vec(dtype, {kNan, kNan, kNan}));
  }
}

TEST(Reports, tracel_ai_burn_4814_at_every_place_of_every_length) {
  for (int64_t n : {1, 2, 3, 5, 8, 16, 31, 64, 70, 1000}) {
    Array x{TN_F32, {3, n}, {}};
    for (int64_t at : {int64_t{0}, n / 2, n - 1})
      for (int64_t i = 0; i < n; ++i) x.v.push_back(i == at ? kNan : static_cast<Number>(i));
    expect(reduction("max", x, {1}), vec(TN_F32, repeated(3, kNan)), 0, n == 70);
    expect(reduction("min", x, {1}), vec(TN_F32, repeated(3, kNan)), 0, n == 70);
    expect(reduction("max", x, {0, 1}), array(TN_F32, {}, {kNan}), 0, n == 70);
  }
}

// ---- K03: onnx/onnx#7570, microsoft/onnxruntime#26997: integer division and remainder round the wrong way ----
TEST(Reports, onnx_onnx_7570_integer_division_truncates) {
  for (uint32_t dtype : {TN_I64, TN_I32, TN_I16, TN_I8}) {
    const Array a = vec(dtype, {8, -8, 7, -7, -11}), b = vec(dtype, {-3, 3, -2, 2, 3});
    expect({"div", {}, {a, b}}, vec(dtype, {-2, -2, -3, -3, -3}));
    expect({"rem", {}, {a, b}}, vec(dtype, {2, -2, 1, -1, -2}));
  }
}

TEST(Reports, onnx_onnx_7570_quotient_and_remainder_of_all_bytes_give_the_number_back) {
  Array a{TN_I8, {255, 256}, {}}, b = a, quotient = a, remainder = a;
  for (int x = -127; x < 128; ++x)
    for (int y = -128; y < 128; ++y) {
      a.v.push_back(x), b.v.push_back(y);
      quotient.v.push_back(y == 0 ? 0 : x / y), remainder.v.push_back(y == 0 ? 0 : x % y);
    }
  expect({"div", {}, {a, b}}, quotient);
  expect({"rem", {}, {a, b}}, remainder);
}

// ---- K06: pytorch/pytorch#180159, #140347: float to integer out of range differs between devices ----
TEST(Reports, pytorch_pytorch_180159_casts_saturate_and_nan_is_zero) {
  const Numbers values{kNan, kInf, -kInf, 3e9L, -3e9L, 1.9L, -1.9L, -0.5L, 300, -200, 127.9L, 70000};
  for (uint32_t from : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (uint32_t to : {TN_I8, TN_I16, TN_I32, TN_I64, TN_U8, TN_U16, TN_U32, TN_U64})
      for (int64_t n : {1, 7, 12, 16, 40}) {
        if (!full_run() && from != TN_F32 && n != 12) continue;
        Array x{from, {n}, {}}, y{to, {n}, {}};
        for (int64_t i = 0; i < n; ++i) {
          x.v.push_back(rounded(from, values[static_cast<size_t>(i + n) % values.size()]));
          y.v.push_back(rounded(to, x.v.back()));
        }
        expect({"cast", {ops::case_i64(TN_KEY_DTYPE, to)}, {x}}, y, 0, n == 40);
      }
  expect({"cast", {ops::case_i64(TN_KEY_DTYPE, TN_U8)}, {vec(TN_F32, {kNan, kInf, -kInf, 3e9L, -3e9L, 1.9L, -1.9L, -0.5L})}},
         vec(TN_U8, {0, 255, 0, 255, 0, 1, 0, 0}));
}

// ---- K07: onnx/onnx#5568, robertknight/rten#341: reducing no elements ----
TEST(Reports, onnx_onnx_5568_reducing_nothing_gives_the_identity) {
  struct Row { const char* op; Number of_float, of_int; };
  const Row rows[] = {{"sum", 0, 0}, {"prod", 1, 1}, {"max", -kInf, -2147483648.0L}, {"min", kInf, 2147483647.0L}};
  for (const Row& r : rows)
    for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_I32}) {
      const Number v = dtype == TN_I32 ? r.of_int : r.of_float;
      expect(reduction(r.op, array(dtype, {0, 3}, {}), {0}), vec(dtype, repeated(3, v)));
      expect(reduction(r.op, array(dtype, {2, 0, 3}, {}), {1}), array(dtype, {2, 3}, repeated(6, v)));
      expect(reduction(r.op, array(dtype, {2, 0, 3}, {}), {1}, 1), array(dtype, {2, 1, 3}, repeated(6, v)));
      expect(reduction(r.op, array(dtype, {2, 0, 3}, {}), {0}), array(dtype, {0, 3}, {}));
      expect(reduction(r.op, array(dtype, {0}, {}), {0}), array(dtype, {}, {v}));
    }
  expect(reduction("mean", array(TN_F32, {0, 3}, {}), {0}), vec(TN_F32, repeated(3, kNan)));
  expect(reduction("logsumexp", array(TN_F32, {0, 3}, {}), {0}), vec(TN_F32, repeated(3, -kInf)));
  expect(reduction("any", array(TN_BOOL, {0, 3}, {}), {0}), vec(TN_BOOL, repeated(3, 0)));
  expect(reduction("all", array(TN_BOOL, {0, 3}, {}), {0}), vec(TN_BOOL, repeated(3, 1)));
}

// ---- K09: pytorch/pytorch#16498, tensorflow/tensorflow#58517: halves round differently between code paths ----
TEST(Reports, pytorch_pytorch_16498_round_goes_to_even_and_keeps_the_sign_of_zero) {
  const Numbers x{-2.5L, -1.5L, -0.5L, 0.5L, 1.5L, 2.5L, 8388607.5L, 1e10L, kNan, kInf, -kInf, -0.0L, 4503599627370495.5L};
  const Numbers y{-2, -2, -0.0L, 0, 2, 2, 8388608, 1e10L, kNan, kInf, -kInf, -0.0L, 4503599627370496.0L};
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (size_t n = 1; n <= 17; ++n) {
      if (!full_run() && dtype != TN_F32 && n % 8 != 0) continue;
      Array in{dtype, {static_cast<int64_t>(n)}, {}}, out = in;
      for (size_t i = 0; i < n; ++i) {
        const size_t k = (i + n) % (dtype == TN_F64 ? x.size() : dtype == TN_F32 ? x.size() - 1 : 6);
        in.v.push_back(rounded(dtype, x[k])), out.v.push_back(y[k]);
      }
      expect({"round", {}, {in}}, out, 0, n == 17);
    }
}

// ---- K10: Tencent/ncnn#2698, ggml-org/llama.cpp#13607: half-precision sums stick or overflow ----
TEST(Reports, tencent_ncnn_2698_half_sums_accumulate_wide) {
  expect(reduction("mean", array(TN_F16, {256, 256}, repeated(65536, 1.5L)), {0, 1}), array(TN_F16, {}, {1.5L}));
  expect(reduction("sum", vec(TN_F16, repeated(4096, 1)), {0}), array(TN_F16, {}, {4096}));
  expect(reduction("sum", vec(TN_BF16, repeated(4096, 1)), {0}), array(TN_BF16, {}, {4096}));
  for (uint32_t dtype : {TN_F16, TN_BF16}) {
    const Array a = array(dtype, {1, 65536}, repeated(65536, 1)), b = array(dtype, {65536, 1}, repeated(65536, 1));
    expect({"matmul", {ops::case_i64(TN_KEY_DTYPE, TN_F32)}, {a, b}}, array(TN_F32, {1, 1}, {65536}));
  }
  expect({"softmax", {}, {vec(TN_F16, {60000, 59968, -60000})}}, vec(TN_F16, {1, std::exp(-32.0L), 0}), 64);
}

// ---- K13: iree-org/iree#24175, pytorch/pytorch#25110: rows of -inf ----
TEST(Reports, iree_org_iree_24175_softmax_of_masked_rows) {
  for (uint32_t dtype : {TN_F32, TN_F16, TN_F64, TN_BF16}) {
    expect({"softmax", {}, {vec(dtype, repeated(3, -kInf))}}, vec(dtype, repeated(3, kNan)));
    expect({"softmax", {}, {vec(dtype, {kNan, -kInf, -kInf})}}, vec(dtype, repeated(3, kNan)));
    expect({"softmax", {}, {vec(dtype, {1000, 1000})}}, vec(dtype, {0.5L, 0.5L}));
    expect({"softmax", {}, {vec(dtype, {-kInf, 0, -kInf})}}, vec(dtype, {0, 1, 0}));
  }
  for (size_t n : {63, 64, 65, 129}) {  // a tile or more of -inf, then one number
    Numbers x = repeated(n, -kInf), y = repeated(n, 0);
    x.back() = 7, y.back() = 1;
    expect({"softmax", {}, {vec(TN_F32, x)}}, vec(TN_F32, y));
  }
}

// ---- K15: ggml-org/llama.cpp#28247, iree-org/iree#12642: more than 65535 groups of a launch ----
// Bytes in, bytes out, without the detour over numbers.
class Long : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kSize = int64_t{65535} * 256 + 1;
  uint32_t type(uint32_t dtype) {
    tn_type t{};
    t.dtype = static_cast<uint8_t>(dtype), t.rank = 1, t.align_log2 = 6, t.dim[0] = kSize, t.stride[0] = 1;
    uint32_t id = 0;
    EXPECT_EQ(tn_type_intern(m_.runtime(), &t, &id, &d_), TN_OK) << d_.msg;
    return id;
  }

  // All elements 3, the last one 5, go through the op; false where it could not run.
  void check(const char* op, std::vector<tn_attr> attrs, uint64_t push, uint8_t most, uint8_t last) {
    tn_queue* queue = nullptr;
    ASSERT_EQ(tn_queue_get(m_.runtime(), m_.device(GetParam()), &queue, &d_), TN_OK) << d_.msg;
    std::vector<uint8_t> bytes(static_cast<size_t>(kSize), 3);
    bytes.back() = 5;
    tn_tensor *in[2] = {}, *out = nullptr;
    ASSERT_EQ(tn_tensor_create(queue, type(TN_U8), &in[0], &d_), TN_OK) << d_.msg;
    ASSERT_EQ(tn_tensor_write(queue, in[0], bytes.data(), bytes.size(), &d_), TN_OK) << d_.msg;
    uint32_t attr = 0;
    if (!attrs.empty()) {
      ASSERT_EQ(tn_attr_intern(m_.runtime(), m_.op(op), attrs.data(), static_cast<uint32_t>(attrs.size()), &attr, &d_), TN_OK) << d_.msg;
    }
    const uint32_t n_in = push != 0 ? 2 : 1;
    const tn_call_args a{m_.op(op), attr, TN_CALL_REQUIRE, push != 0 ? 8u : 0u, n_in, 1, in, &out, &push};
    ASSERT_EQ(tn_call(queue, &a, &d_), TN_OK) << d_.msg;
    ASSERT_EQ(tn_tensor_read(queue, out, bytes.data(), bytes.size(), &d_), TN_OK) << d_.msg;
    EXPECT_EQ(bytes.back(), last) << op;
    bytes.pop_back();
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), most), kSize - 1) << op;
    for (tn_tensor* t : {in[0], out}) tn_tensor_release(t);
    tn_memory_trim(m_.runtime(), m_.device(GetParam()), nullptr);
  }

  Machine& m_ = full_machine();
  tn_diag d_{};
};

TEST_P(Long, ggml_org_llama_cpp_28247_vectors_are_done_to_the_end) {
  if (!full_run() && GetParam()[0] == 's') GTEST_SKIP() << "with --full";
  tn_attr to{};
  to.key = TN_KEY_DTYPE, to.type = TN_ATTR_I64, to.v.i = TN_I8, to.len = 1;
  check("copy", {}, 0, 3, 5);
  check("add", {}, 4, 7, 9);
  check("cast", {to}, 0, 3, 5);
}

INSTANTIATE_TEST_SUITE_P(Device, Long, testing::Values("cpu:0", "sim:0"), [](const auto& info) { return std::string(info.param, 3); });

// ---- K16: ROCm/composable_kernel#3722, flagos FlagGems#4156: index times stride in 32 bits ----
// 2 GiB of address space of which few pages are touched.
class Far : public testing::Test {
 protected:
  static constexpr int64_t kSize = (int64_t{1} << 31) + 5;
  void SetUp() override {
    Machine& m = reference_machine();
    ASSERT_EQ(tn_queue_get(m.runtime(), m.device("cpu:0"), &queue_, &d_), TN_OK);
    if (tn_tensor_create(queue_, type({kSize}, {1}), &all_, &d_) != TN_OK) GTEST_SKIP() << "not enough memory: " << d_.msg;
    const int8_t seven = 7;
    tn_tensor* last = nullptr;
    ASSERT_EQ(tn_tensor_view(all_, type({1}, {1}), static_cast<uint64_t>(kSize - 1), &last, &d_), TN_OK) << d_.msg;
    ASSERT_EQ(tn_tensor_write(queue_, last, &seven, 1, &d_), TN_OK) << d_.msg;
    tn_tensor_release(last);
  }
  void TearDown() override { tn_tensor_release(all_); tn_memory_trim(reference_machine().runtime(), reference_machine().device("cpu:0"), &d_); }

  uint32_t type(std::vector<int64_t> dims, std::vector<int64_t> strides, uint32_t dtype = TN_I8) {
    tn_type t{};
    t.dtype = static_cast<uint8_t>(dtype);
    t.rank = static_cast<uint8_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) t.dim[i] = dims[i], t.stride[i] = strides[i];
    uint32_t id = 0;
    EXPECT_EQ(tn_type_intern(reference_machine().runtime(), &t, &id, &d_), TN_OK) << d_.msg;
    return id;
  }

  // The one element that a call on `in` gives.
  int64_t call(const char* op, std::vector<tn_attr> attrs, std::vector<tn_tensor*> in) {
    Machine& m = reference_machine();
    uint32_t attr = 0;
    EXPECT_EQ(tn_attr_intern(m.runtime(), m.op(op), attrs.data(), static_cast<uint32_t>(attrs.size()), &attr, &d_), TN_OK) << d_.msg;
    tn_tensor* out = nullptr;
    const tn_call_args a{m.op(op), attr, 0, 0, static_cast<uint32_t>(in.size()), 1, in.data(), &out, nullptr};
    if (tn_call(queue_, &a, &d_) != TN_OK) return ADD_FAILURE() << d_.msg, -1;
    int8_t got = 0;
    EXPECT_EQ(tn_tensor_read(queue_, out, &got, 1, &d_), TN_OK) << d_.msg;
    tn_tensor_release(out);
    return got;
  }

  static tn_attr ints(uint32_t key, const std::vector<int64_t>& v) {
    tn_attr a{};
    a.key = key, a.type = TN_ATTR_I64S, a.v.p = v.data(), a.len = v.size();
    return a;
  }

  tn_diag d_{};
  tn_queue* queue_ = nullptr;
  tn_tensor* all_ = nullptr;
};

TEST_F(Far, rocm_composable_kernel_3722_slice_finds_the_last_element) {
  const std::vector<int64_t> starts{kSize - 1}, dims{1}, steps{1};
  EXPECT_EQ(call("slice", {ints(TN_KEY_DIMS, dims), ints(TN_KEY_STARTS, starts), ints(TN_KEY_STEPS, steps)}, {all_}), 7);
}

TEST_F(Far, rocm_composable_kernel_3722_gather_finds_the_last_element) {
  tn_tensor* index = nullptr;
  ASSERT_EQ(tn_tensor_create(queue_, type({1}, {1}, TN_I64), &index, &d_), TN_OK) << d_.msg;
  const int64_t at = kSize - 1;
  ASSERT_EQ(tn_tensor_write(queue_, index, &at, 8, &d_), TN_OK) << d_.msg;
  tn_attr axis{};
  axis.key = TN_KEY_AXIS, axis.type = TN_ATTR_I64, axis.len = 1;
  EXPECT_EQ(call("gather", {axis}, {all_, index}), 7);
  tn_tensor_release(index);
}

TEST_F(Far, flagos_flaggems_4156_rows_far_apart_are_reached) {
  tn_tensor* rows = nullptr;  // row 16384 of stride 131072 begins at 2^31
  ASSERT_EQ(tn_tensor_view(all_, type({16385, 5}, {131072, 1}), 0, &rows, &d_), TN_OK) << d_.msg;
  const std::vector<int64_t> starts{16384, 4}, dims{1, 1}, steps{1, 1};
  EXPECT_EQ(call("slice", {ints(TN_KEY_DIMS, dims), ints(TN_KEY_STARTS, starts), ints(TN_KEY_STEPS, steps)}, {rows}), 7);
  tn_tensor_release(rows);
}

TEST(Reports, rocm_composable_kernel_3722_sum_of_a_broadcast_of_2_to_32_elements) {
  if (!full_run()) GTEST_SKIP() << "with --full: adds four thousand million numbers";
  Machine& m = full_machine();
  tn_diag d{};
  tn_queue* queue = nullptr;
  ASSERT_EQ(tn_queue_get(m.runtime(), m.device("cpu:0"), &queue, &d), TN_OK);
  tn_type one{}, wide{};
  one.dtype = wide.dtype = TN_F32, one.rank = wide.rank = 2;
  one.dim[0] = one.dim[1] = 1, one.stride[0] = one.stride[1] = 1;
  wide.dim[0] = wide.dim[1] = 65536;
  uint32_t one_id = 0, wide_id = 0;
  ASSERT_EQ(tn_type_intern(m.runtime(), &one, &one_id, &d), TN_OK);
  ASSERT_EQ(tn_type_intern(m.runtime(), &wide, &wide_id, &d), TN_OK);
  tn_tensor *x = nullptr, *view = nullptr, *y = nullptr;
  const float value = 1;
  float got = 0;
  ASSERT_EQ(tn_tensor_create(queue, one_id, &x, &d), TN_OK);
  ASSERT_EQ(tn_tensor_write(queue, x, &value, 4, &d), TN_OK);
  ASSERT_EQ(tn_tensor_view(x, wide_id, 0, &view, &d), TN_OK) << d.msg;
  const tn_call_args a{m.op("sum"), 0, 0, 0, 1, 1, &view, &y, nullptr};
  ASSERT_EQ(tn_call(queue, &a, &d), TN_OK) << d.msg;
  ASSERT_EQ(tn_tensor_read(queue, y, &got, 4, &d), TN_OK);
  EXPECT_EQ(got, 4294967296.0f);
  for (tn_tensor* t : {x, view, y}) tn_tensor_release(t);
}

// ---- A01: pytorch/pytorch#23395, #187297: the branch not taken poisons the gradient ----
TEST(Reports, pytorch_pytorch_23395_where_gives_the_branch_not_taken_exactly_zero) {
  for (uint32_t dtype : {TN_F32, TN_F64}) {
    const Call call{"where", {}, {vec(TN_BOOL, {1, 0, 1, 0}), vec(dtype, {1, kNan, 3, kInf}), vec(dtype, {kNan, 6, kInf, 8})}};
    const Array seed = vec(dtype, {kInf, kInf, kNan, kNan});
    expect_gradient(call, 2, seed, {kInf, 0, kNan, 0});
    expect_gradient(call, 4, seed, {0, kInf, 0, kNan});
  }
}

// ---- A03: pytorch/pytorch#56734: ties of max and min ----
TEST(Reports, pytorch_pytorch_56734_shares_of_ties_add_up_to_one) {
  const Array seed = vec(TN_F64, {1, 1});
  const Call both{"maximum", {}, {vec(TN_F64, {4, 5}), vec(TN_F64, {4, 2})}};
  expect_gradient(both, 1, seed, {0.5L, 1});
  expect_gradient(both, 2, seed, {0.5L, 0});
  const Array one = array(TN_F64, {}, {1});
  expect_gradient(reduction("max", vec(TN_F64, {1, 3, 3}), {0}), 1, one, {0, 0.5L, 0.5L});
  expect_gradient(reduction("min", vec(TN_F64, {1, 1, 3}), {0}), 1, one, {0.5L, 0.5L, 0});
  expect_gradient(reduction("max", vec(TN_F64, repeated(1000, 2)), {0}), 1, one, repeated(1000, 0.001L));
}

TEST(Reports, pytorch_pytorch_56734_max_pool_sends_all_to_the_first_of_equals) {
  const Call call{"max_pool2d", {ops::case_ints(TN_KEY_KERNEL, {2, 2}), ops::case_ints(TN_KEY_STRIDES, {2, 2})}, {array(TN_F64, {1, 1, 4, 4}, repeated(16, 3))}};
  expect_gradient(call, 1, array(TN_F64, {1, 1, 2, 2}, {1, 2, 3, 4}), {1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0});
}

// ---- A06: pytorch/pytorch#76185, #99523: the second derivative of prod, asked twice ----
TEST(Reports, pytorch_pytorch_99523_second_derivative_of_prod_is_right_each_time) {
  for (Machine* m : {&reference_machine(), &full_machine()}) {
    const Array x = array(TN_F64, {4, 4}, repeated(16, 1)), y = array(TN_F64, {}, {1}), seed = y;
    Array w = array(TN_F64, {4, 4}, repeated(16, 0));
    w.v[0] = 1;  // row of x00 of the second derivative
    const uint32_t first = m->derive(m->op("prod"), 1, 1), second = m->derive(first, 1, 3);
    for (int time = 0; time < 2; ++time) {
      const Outcome g = m->run_op(first, {"prod", {}, {x, y, seed}}, "cpu:0");
      ASSERT_TRUE(g.ok()) << g.message;
      const Outcome h = m->run_op(second, {"prod", {}, {x, y, seed, g.out[0], w}}, "cpu:0");
      ASSERT_TRUE(h.ok()) << h.message;
      // Through x, and through y where the rule reads it (dy/dx is 1 everywhere).
      const Number through_y = h.out.size() > 1 && !h.out[1].absent() ? h.out[1].v[0] : 0;
      for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(static_cast<double>((h.out[0].absent() ? 0 : h.out[0].v[i]) + through_y), i == 0 ? 0 : 1, 1e-12) << i;
    }
  }
}

// ---- A13: pytorch/pytorch#23151: scatter-add depends on the order of threads ----
TEST(Reports, pytorch_pytorch_23151_scatter_add_gives_the_same_bits_with_any_threads) {
  const size_t n = full_run() ? 1000000 : 100000;
  Array data = vec(TN_F32, {0, 0, 0}), index{TN_I64, {static_cast<int64_t>(n)}, {}}, updates{TN_F32, {static_cast<int64_t>(n)}, {}};
  uint32_t state = 5;
  for (size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    index.v.push_back(state >> 16 & 1 ? 0 : (state >> 17) % 3);
    updates.v.push_back(rounded(TN_F32, static_cast<Number>(state >> 8) / 16777216 - 0.5L));
  }
  const Call call{"scatter", {ops::case_i64(TN_KEY_AXIS, 0), ops::case_i64(TN_KEY_MODE, TN_SCATTER_ADD)}, {data, index, updates}};
  Numbers first;
  for (uint32_t threads : {1u, 2u, 7u}) {
    Machine m(plugin_files({"cpu", "sim"}), threads);
    for (int run = 0; run < (full_run() ? 20 : 2); ++run)
      for (const char* device : {"cpu:0", "sim:0"}) {
        const Outcome o = m.run(call, device);
        ASSERT_TRUE(o.ok()) << o.message;
        if (first.empty()) first = o.out[0].v;
        EXPECT_EQ(o.out[0].v, first) << threads << " threads on " << device;
      }
  }
}

TEST(Reports, pytorch_pytorch_23151_scatter_set_keeps_the_last_writer) {
  const Call call{"scatter", {ops::case_i64(TN_KEY_AXIS, 0), ops::case_i64(TN_KEY_MODE, TN_SCATTER_SET)},
                  {vec(TN_F32, {0, 0, 0}), vec(TN_I64, {1, 2, 1, -2}), vec(TN_F32, {10, 20, 30, 40})}};
  expect(call, vec(TN_F32, {0, 40, 20}));
}

}  // namespace
}  // namespace tenon::conformance
