// The six primitives against brute force written with indices.
#include <cmath>
#include <limits>
#include <random>

#include "tests/reference/helpers.h"

namespace tenon::reference::testing {
namespace {

std::vector<float> numbers(size_t n, uint32_t seed = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(rng);
  return v;
}

TEST(Pointwise, every_length_from_0_to_70_with_a_gapped_and_a_reversed_input) {
  const ProgramText p = single(TN_OP_SUB, TN_F32, TN_F32, 2);
  const tn_program view = p.view();
  for (int64_t n = 0; n <= 70; ++n) {
    const auto a = numbers(static_cast<size_t>(2 * n + 1)), b = numbers(static_cast<size_t>(n + 1), 2);
    std::vector<float> out(static_cast<size_t>(n) + 1, -99);
    ASSERT_EQ(execute(TN_OPID_POINTWISE, {type_of(TN_F32, {n}, {2}), type_of(TN_F32, {n}, {-1}), type_of(TN_F32, {n})}, 1,
                      {attr_of(TN_KEY_PROGRAM, view)}, {raw(a), raw(b) ? const_cast<float*>(b.data() + n) : nullptr, out.data()}), TN_OK);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], a[2 * i] - b[n - i]) << n;
    EXPECT_EQ(out[n], -99);
  }
}

TEST(Pointwise, broadcasts_and_counts_INDEX_in_row_major_order_whatever_the_strides) {
  ProgramText p;  // out0 = flat * 100 + axis1 + x,  out1 = x
  p.inst = {{TN_OP_INPUT, TN_I32, 0, 0, 0}, {TN_OP_INDEX, TN_I32, TN_INDEX_FLAT, 0, 0}, {TN_OP_INDEX, TN_I32, 1, 0, 0}, {TN_OP_CONST, TN_I32, 0, 0, 0},
            {TN_OP_MUL, TN_I32, 1, 3, 0}, {TN_OP_ADD, TN_I32, 4, 2, 0}, {TN_OP_ADD, TN_I32, 5, 0, 0}};
  p.out = {6, 0}, p.n_slots = 1;
  const tn_program view = p.view();
  const std::vector<int32_t> x = {10000, 20000, 30000};
  std::vector<int32_t> out(300 * 3), second(300 * 3);
  const uint64_t push = 100;
  // out[300,3] stored column by column
  ASSERT_EQ(execute(TN_OPID_POINTWISE, {type_of(TN_I32, {1, 3}), type_of(TN_I32, {300, 3}, {1, 300}), type_of(TN_I32, {300, 3})}, 2,
                    {attr_of(TN_KEY_PROGRAM, view)}, {raw(x), out.data(), second.data()}, &push), TN_OK);
  for (int i = 0; i < 300; ++i)
    for (int j = 0; j < 3; ++j) { ASSERT_EQ(out[j * 300 + i], (i * 3 + j) * 100 + j + x[j]); ASSERT_EQ(second[i * 3 + j], x[j]); }
}

TEST(Pointwise, an_output_may_be_the_view_of_an_input_that_is_also_passed_through) {
  ProgramText p;
  p.inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_ADD, TN_F32, 0, 0, 0}};
  p.out = {1, 0};
  const tn_program view = p.view();
  auto x = numbers(1000);
  const auto before = x;
  std::vector<float> old(1000);
  ASSERT_EQ(execute(TN_OPID_POINTWISE, {type_of(TN_F32, {1000}), type_of(TN_F32, {1000}), type_of(TN_F32, {1000})}, 2, {attr_of(TN_KEY_PROGRAM, view)}, {x.data(), x.data(), old.data()}), TN_OK);
  for (size_t i = 0; i < 1000; ++i) { ASSERT_EQ(x[i], 2 * before[i]); ASSERT_EQ(old[i], before[i]); }
}

TEST(Reduce, sums_over_every_set_of_axes_match_brute_force) {
  const Dims dims = {5, 7, 37};
  const auto x = numbers(5 * 7 * 37);
  const Dims permuted = {37 * 7, 1, 7};  // axis 1 innermost in memory
  for (unsigned set = 1; set < 8; ++set)
    for (const Dims& strides : {Dims{259, 37, 1}, permuted}) {
      Dims axes, out_dims;
      for (int d = 0; d < 3; ++d) (set >> d & 1 ? axes : out_dims).push_back(set >> d & 1 ? d : dims[d]);
      const tn_type out = type_of(TN_F32, out_dims);
      std::vector<float> got(5 * 7 * 37, -1);
      std::vector<double> want(5 * 7 * 37, 0), magnitude(5 * 7 * 37, 0);
      for (int64_t i = 0; i < 5; ++i) for (int64_t j = 0; j < 7; ++j) for (int64_t k = 0; k < 37; ++k) {
        const int64_t at[] = {i, j, k};
        int64_t flat = 0;
        for (int d = 0; d < 3; ++d) if (!(set >> d & 1)) flat = flat * dims[d] + at[d];
        const double v = x[i * strides[0] + j * strides[1] + k * strides[2]];
        want[flat] += v, magnitude[flat] += std::fabs(v);
      }
      ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_F32, dims, strides), out}, 1, {attr_of(TN_KEY_AXES, axes), attr_of(TN_KEY_MONOID, TN_MONOID_SUM)}, {raw(x), got.data()}), TN_OK);
      int64_t count = 1;
      for (int64_t d : out_dims) count *= d;
      for (int64_t i = 0; i < count; ++i) ASSERT_NEAR(got[i], want[i], magnitude[i] * 1.2e-7) << "axes " << set;
    }
}

// onnx/onnx#5568, onnxruntime PR #28353, tensorflow#3510: reducing an empty axis.
TEST(Reduce, K07_an_empty_axis_gives_the_identity) {
  const float inf = std::numeric_limits<float>::infinity();
  const struct { int64_t monoid; float f; int32_t i; } rows[] = {{TN_MONOID_SUM, 0, 0}, {TN_MONOID_PROD, 1, 1}, {TN_MONOID_MAX, -inf, INT32_MIN}, {TN_MONOID_MIN, inf, INT32_MAX}};
  const Dims first = {0}, middle = {1}, keep = {1};
  for (const auto& r : rows) {
    std::vector<float> f(6, -5);
    std::vector<int32_t> n(6, -5);
    ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_F32, {0, 3}), type_of(TN_F32, {3})}, 1, {attr_of(TN_KEY_AXES, first), attr_of(TN_KEY_MONOID, r.monoid)}, {nullptr, f.data()}), TN_OK);
    ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_I32, {2, 0, 3}), type_of(TN_I32, {2, 1, 3})}, 1, {attr_of(TN_KEY_AXES, middle), attr_of(TN_KEY_KEEPDIMS, 1), attr_of(TN_KEY_MONOID, r.monoid)}, {nullptr, n.data()}), TN_OK);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(f[i], r.f);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(n[i], r.i);
    EXPECT_EQ(f[3], -5);
  }
  uint8_t all = 7, any = 7;
  ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_BOOL, {0}), type_of(TN_BOOL, {})}, 1, {attr_of(TN_KEY_AXES, first), attr_of(TN_KEY_MONOID, TN_MONOID_AND)}, {nullptr, &all}), TN_OK);
  ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_BOOL, {0}), type_of(TN_BOOL, {})}, 1, {attr_of(TN_KEY_AXES, first), attr_of(TN_KEY_MONOID, TN_MONOID_OR)}, {nullptr, &any}), TN_OK);
  EXPECT_EQ(all, 1); EXPECT_EQ(any, 0);
  int64_t where = 0;
  EXPECT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_F32, {0}), type_of(TN_I64, {})}, 1, {attr_of(TN_KEY_AXES, first), attr_of(TN_KEY_MONOID, TN_MONOID_ARGMAX)}, {nullptr, &where}), TN_E_SHAPE);
}

// tracel-ai/burn#4814, apache/tvm#19518: a NaN is dropped on one backend and wins on another.
TEST(Reduce, K01_a_nan_wins_at_every_length_and_place) {
  const Dims axis = {0};
  for (int64_t n = 1; n <= 70; ++n)
    for (int64_t place : {int64_t{0}, n / 2, n - 1}) {
      auto x = numbers(static_cast<size_t>(n));
      x[place] = NAN;
      for (int64_t monoid : {TN_MONOID_MAX, TN_MONOID_MIN}) {
        float got = 0;
        execute(TN_OPID_REDUCE, {type_of(TN_F32, {n}), type_of(TN_F32, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, monoid)}, {x.data(), &got});
        ASSERT_TRUE(std::isnan(got)) << n << " " << place;
      }
      int64_t where = -1;
      execute(TN_OPID_REDUCE, {type_of(TN_F32, {n}), type_of(TN_I64, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_ARGMAX)}, {x.data(), &where});
      ASSERT_EQ(where, place);
    }
  const std::vector<float> ties = {1, 3, 3, -2, -2};
  int64_t most = -1, least = -1;
  execute(TN_OPID_REDUCE, {type_of(TN_F32, {5}), type_of(TN_I64, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_ARGMAX)}, {raw(ties), &most});
  execute(TN_OPID_REDUCE, {type_of(TN_F32, {5}), type_of(TN_I64, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_ARGMIN)}, {raw(ties), &least});
  EXPECT_EQ(most, 1); EXPECT_EQ(least, 3);
}

// Tencent/ncnn#2698, ggml-org/llama.cpp#13607: half-precision accumulators stop growing or overflow.
TEST(Reduce, K10_narrow_floats_accumulate_wide) {
  const Dims axis = {0};
  const std::vector<uint16_t> ones(4096, 0x3C00), large(65536, 0x3E00);  // 1.0 and 1.5
  uint16_t sum = 0, mean = 0;
  execute(TN_OPID_REDUCE, {type_of(TN_F16, {4096}), type_of(TN_F16, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_SUM)}, {raw(ones), &sum});
  EXPECT_EQ(f16_to_f32(sum), 4096);
  ProgramText post;  // mean: scale in f32, then narrow
  post.inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_CONST, TN_F32, 0, 0, 0}, {TN_OP_MUL, TN_F32, 0, 1, 0}, {TN_OP_CAST, TN_F16, 2, 0, 0}};
  post.out = {3}, post.n_slots = 1;
  const tn_program view = post.view();
  const float scale = 1.f / 65536;
  uint64_t push = 0;
  std::memcpy(&push, &scale, 4);
  execute(TN_OPID_REDUCE, {type_of(TN_F16, {65536}), type_of(TN_F16, {})}, 1, {attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_SUM), attr_of(TN_KEY_POST, view)}, {raw(large), &mean}, &push);
  EXPECT_EQ(f16_to_f32(mean), 1.5f);
  float dot = 0;
  const std::vector<uint16_t> k(65536, 0x3C00);
  execute(TN_OPID_MATMUL, {type_of(TN_F16, {1, 65536}), type_of(TN_F16, {65536, 1}), type_of(TN_F32, {1, 1})}, 1, {}, {raw(k), raw(k), &dot});
  EXPECT_EQ(dot, 65536);
  const std::vector<int32_t> index(4096, 0);
  std::vector<uint16_t> zero(1, 0), scattered(1);
  execute(TN_OPID_SCATTER, {type_of(TN_F16, {1}), type_of(TN_I32, {4096}), type_of(TN_F16, {4096}), type_of(TN_F16, {1})}, 1, {attr_of(TN_KEY_AXIS, 0), attr_of(TN_KEY_MODE, TN_SCATTER_ADD)}, {zero.data(), raw(index), raw(ones), scattered.data()});
  EXPECT_EQ(f16_to_f32(scattered[0]), 4096);
}

TEST(Reduce, pre_program_over_two_inputs_feeds_the_sum) {
  const ProgramText pre = single(TN_OP_MUL, TN_F32, TN_F32, 2);
  const tn_program view = pre.view();
  const auto a = numbers(40 * 33), b = numbers(33, 5);
  std::vector<float> out(40);
  const Dims axis = {1};
  ASSERT_EQ(execute(TN_OPID_REDUCE, {type_of(TN_F32, {40, 33}), type_of(TN_F32, {33}), type_of(TN_F32, {40})}, 1, {attr_of(TN_KEY_PRE, view), attr_of(TN_KEY_AXES, axis), attr_of(TN_KEY_MONOID, TN_MONOID_SUM)}, {raw(a), raw(b), out.data()}), TN_OK);
  for (int i = 0; i < 40; ++i) {
    double want = 0, magnitude = 0;
    for (int j = 0; j < 33; ++j) want += static_cast<double>(a[i * 33 + j]) * b[j], magnitude += std::fabs(a[i * 33 + j] * b[j]);
    EXPECT_NEAR(out[i], want, magnitude * 2e-7);
  }
}

template <class T> void check_matmul(uint32_t dtype, uint32_t out_dtype, int64_t m, int64_t k, int64_t n, bool transposed) {
  std::vector<T> a(static_cast<size_t>(2 * m * k)), b(static_cast<size_t>(k * n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(static_cast<int>(i * 37 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(static_cast<int>(i * 53 % 13) - 6);
  const Dims sb = transposed ? Dims{1, k} : Dims{n, 1};
  using Out = std::conditional_t<sizeof(T) == 1, int32_t, T>;
  std::vector<Out> got(static_cast<size_t>(2 * m * n), Out(77));
  ASSERT_EQ(execute(TN_OPID_MATMUL, {type_of(dtype, {2, m, k}), type_of(dtype, {k, n}, sb), type_of(out_dtype, {2, m, n})}, 1, {}, {a.data(), b.data(), got.data()}), TN_OK);
  for (int64_t q = 0; q < 2 * m; ++q)
    for (int64_t j = 0; j < n; ++j) {
      Out want = 0;  // small whole numbers: exact in every type
      for (int64_t d = 0; d < k; ++d) want = static_cast<Out>(want + static_cast<Out>(a[q * k + d]) * static_cast<Out>(b[d * sb[0] + j * sb[1]]));
      ASSERT_EQ(got[q * n + j], want) << m << "x" << k << "x" << n << " at " << q << "," << j;
    }
}
TEST(Matmul, batches_strides_and_odd_sizes_match_brute_force_in_every_type) {
  for (int64_t m : {1, 3, 4, 65}) for (int64_t k : {0, 1, 7, 129, 300}) for (int64_t n : {1, 8, 9, 131}) for (bool t : {false, true}) check_matmul<float>(TN_F32, TN_F32, m, k, n, t);
  check_matmul<double>(TN_F64, TN_F64, 5, 130, 10, true), check_matmul<int32_t>(TN_I32, TN_I32, 6, 17, 33, false);
  check_matmul<int64_t>(TN_I64, TN_I64, 6, 17, 33, true), check_matmul<int8_t>(TN_I8, TN_I32, 9, 200, 12, false), check_matmul<float>(TN_F32, TN_F32, 0, 3, 4, false);
  for (int64_t n = 0; n <= 70; ++n) check_matmul<float>(TN_F32, TN_F32, 2, 5, n, false);
}
TEST(Matmul, post_program_adds_a_broadcast_bias_and_clamps) {
  ProgramText post;
  post.inst = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_INPUT, TN_F32, 1, 0, 0}, {TN_OP_ADD, TN_F32, 0, 1, 0}, {TN_OP_CONST, TN_F32, 0, 0, 0}, {TN_OP_MAX, TN_F32, 2, 3, 0}};
  post.out = {4}, post.n_in = 2, post.n_slots = 1;
  const tn_program view = post.view();
  const std::vector<float> a = {1, 2, 3, 4}, b = {1, -1, 2, 0.5f}, bias = {-6, 1};
  const uint64_t zero = 0;
  std::vector<float> out(4);
  ASSERT_EQ(execute(TN_OPID_MATMUL, {type_of(TN_F32, {2, 2}), type_of(TN_F32, {2, 2}), type_of(TN_F32, {2}), type_of(TN_F32, {2, 2})}, 1, {attr_of(TN_KEY_POST, view)}, {raw(a), raw(b), raw(bias), out.data()}, &zero), TN_OK);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 5, 0}));  // [5,0;11,-1] + [-6,1], below 0 cut
}

TEST(Copy, moves_transposed_and_reversed_elements_of_every_size) {
  for (uint32_t dtype : {TN_U8, TN_BF16, TN_F32, TN_F64, TN_C128}) {
    const int64_t bytes = dtype_bytes(dtype);
    std::vector<uint8_t> in(static_cast<size_t>(300 * 7 * bytes)), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 31);
    ASSERT_EQ(execute(TN_OPID_COPY, {type_of(dtype, {7, 300}, {1, -7}), type_of(dtype, {7, 300})}, 1, {}, {in.data() + 299 * 7 * bytes, out.data()}), TN_OK);
    for (int64_t i = 0; i < 7; ++i) for (int64_t j = 0; j < 300; ++j)
      ASSERT_EQ(std::memcmp(&out[(i * 300 + j) * bytes], &in[((299 - j) * 7 + i) * bytes], static_cast<size_t>(bytes)), 0);
  }
}

TEST(Gather, broadcast_rows_and_negative_indices) {
  const auto data = numbers(5 * 40);
  const std::vector<int64_t> index = {4, -5, 2};
  std::vector<float> out(3 * 40);
  ASSERT_EQ(execute(TN_OPID_GATHER, {type_of(TN_F32, {5, 40}), type_of(TN_I64, {3, 1}), type_of(TN_F32, {3, 40})}, 1, {attr_of(TN_KEY_AXIS, 0)}, {raw(data), raw(index), out.data()}), TN_OK);
  const int rows[] = {4, 0, 2};
  for (int i = 0; i < 3; ++i) for (int j = 0; j < 40; ++j) ASSERT_EQ(out[i * 40 + j], data[rows[i] * 40 + j]);
  const std::vector<int32_t> each = {1, 0, -1, 2};
  std::vector<float> picked(4);
  ASSERT_EQ(execute(TN_OPID_GATHER, {type_of(TN_F32, {2, 3}), type_of(TN_I32, {2, 2}), type_of(TN_F32, {2, 2})}, 1, {attr_of(TN_KEY_AXIS, 1)}, {raw(data), raw(each), picked.data()}), TN_OK);
  EXPECT_EQ(picked, (std::vector<float>{data[1], data[0], data[5], data[5]}));
}
TEST(Gather, an_index_outside_fails_with_value_position_and_limit_and_writes_nothing) {
  const auto data = numbers(5);
  const std::vector<int64_t> index = {4, 5, 9};
  std::vector<float> out(3, -7);
  tn_diag diag{};
  EXPECT_EQ(execute(TN_OPID_GATHER, {type_of(TN_F32, {5}), type_of(TN_I64, {3}), type_of(TN_F32, {3})}, 1, {attr_of(TN_KEY_AXIS, 0)}, {raw(data), raw(index), out.data()}, nullptr, &diag), TN_E_FAILED);
  EXPECT_NE(std::strstr(diag.msg, "index[1] (row-major) is 5; axis 0 has 5 elements"), nullptr) << diag.msg;
  EXPECT_EQ(out, (std::vector<float>{-7, -7, -7}));
}
TEST(Scatter, modes_apply_in_row_major_order_and_set_keeps_the_last) {
  const std::vector<float> data = {1, 2, 3}, updates = {10, 20, 30, 5};
  const std::vector<int32_t> index = {0, 2, 0, -1};
  const struct { int64_t mode; std::vector<float> want; } rows[] = {{TN_SCATTER_SET, {30, 2, 5}}, {TN_SCATTER_ADD, {41, 2, 28}}, {TN_SCATTER_MUL, {300, 2, 300}}, {TN_SCATTER_MIN, {1, 2, 3}}, {TN_SCATTER_MAX, {30, 2, 20}}};
  for (const auto& r : rows) {
    std::vector<float> out(3);
    ASSERT_EQ(execute(TN_OPID_SCATTER, {type_of(TN_F32, {3}), type_of(TN_I32, {4}), type_of(TN_F32, {4}), type_of(TN_F32, {3})}, 1, {attr_of(TN_KEY_AXIS, 0), attr_of(TN_KEY_MODE, r.mode)}, {raw(data), raw(index), raw(updates), out.data()}), TN_OK);
    EXPECT_EQ(out, r.want) << r.mode;
  }
  const std::vector<int32_t> bad = {0, 1, -4, 0};
  std::vector<float> out(3, -7);
  EXPECT_EQ(execute(TN_OPID_SCATTER, {type_of(TN_F32, {3}), type_of(TN_I32, {4}), type_of(TN_F32, {4}), type_of(TN_F32, {3})}, 1, {attr_of(TN_KEY_AXIS, 0)}, {raw(data), raw(bad), raw(updates), out.data()}), TN_E_FAILED);
  EXPECT_EQ(out, (std::vector<float>{-7, -7, -7}));
}

}  // namespace
}  // namespace tenon::reference::testing
