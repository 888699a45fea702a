// What onednn.matmul and onednn.linear promise, against sums in double.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "tests/onednn/harness.h"

namespace onednn_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double tolerance(uint32_t out_dtype) { return out_dtype == TN_I32 ? 0 : out_dtype == TN_BF16 ? 5e-3 : 2e-5; }

// Index of a (or b) for an index of the output: leading axes broadcast.
Dims operand_index(const Tensor& t, const Dims& out, int64_t row, int64_t column) {
  const size_t missing = out.size() - t.type.rank;
  Dims index(out.begin() + static_cast<long>(missing), out.end());
  for (size_t i = 0; i + 2 < index.size(); ++i) {
    if (t.type.dim[i] == 1) index[i] = 0;
  }
  index[index.size() - 2] = row, index[index.size() - 1] = column;
  return index;
}

double dot(const Tensor& a, const Tensor& b, const Dims& out) {
  const int64_t k = a.type.dim[a.type.rank - 1];
  const int64_t a0 = a.offset(operand_index(a, out, out[out.size() - 2], 0).data());
  const int64_t b0 = b.offset(operand_index(b, out, 0, out.back()).data());
  const int64_t a_step = a.type.stride[a.type.rank - 1], b_step = b.type.stride[b.type.rank - 2];
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += a.load(a0 + i * a_step) * b.load(b0 + i * b_step);
  return sum;
}

Call matmul(Tensor& a, Tensor& b, Tensor& out) { return {"onednn.matmul", TN_OPID_MATMUL, {&a, &b}, {&out}, {}, {}, 0}; }

void expect_matmul(Tensor a, Tensor b, Dims out_dims, uint32_t out_dtype, uint32_t threads = 1) {
  a.fill(1), b.fill(2);
  Tensor out(out_dtype, std::move(out_dims));
  tn_diag diag{};
  ASSERT_EQ(Plugin::with_threads(threads).run(matmul(a, b, out), &diag), TN_OK) << diag.msg;
  expect_close(out, [&](const Dims& i) { return dot(a, b, i); }, tolerance(out_dtype));
}

TEST(OnednnMatmul, multiplies_odd_sizes) {
  for (int64_t n : {1, 2, 3, 7, 17, 33, 65}) {
    expect_matmul(Tensor(TN_F32, {n, n + 1}), Tensor(TN_F32, {n + 1, n + 2}), {n, n + 2}, TN_F32);
    expect_matmul(Tensor(TN_BF16, {n, n + 1}), Tensor(TN_BF16, {n + 1, n + 2}), {n, n + 2}, TN_BF16);
    expect_matmul(Tensor(TN_BF16, {n, n + 1}), Tensor(TN_BF16, {n + 1, n + 2}), {n, n + 2}, TN_F32);
    expect_matmul(Tensor(TN_U8, {n, n + 1}), Tensor(TN_I8, {n + 1, n + 2}), {n, n + 2}, TN_I32);
    expect_matmul(Tensor(TN_I8, {n, n + 1}), Tensor(TN_I8, {n + 1, n + 2}), {n, n + 2}, TN_I32);
  }
}

TEST(OnednnMatmul, takes_rows_and_columns_of_one) {
  for (uint32_t type : {TN_F32, TN_BF16}) {
    expect_matmul(Tensor(type, {1, 40}), Tensor(type, {40, 9}), {1, 9}, TN_F32);
    expect_matmul(Tensor(type, {9, 40}), Tensor(type, {40, 1}), {9, 1}, TN_F32);
    expect_matmul(Tensor(type, {9, 1}), Tensor(type, {1, 5}), {9, 5}, TN_F32);
    expect_matmul(Tensor(type, {1, 1}), Tensor(type, {1, 1}), {1, 1}, TN_F32);
    expect_matmul(Tensor(type, {9, 1}, {7, 3}), Tensor(type, {1, 5}, {9, 2}), {9, 5}, TN_F32);
  }
}

TEST(OnednnMatmul, takes_transposed_and_gapped_operands) {
  for (uint32_t type : {TN_F32, TN_BF16, TN_I8}) {
    const uint32_t out = type == TN_I8 ? TN_I32 : TN_F32;
    expect_matmul(Tensor(type, {20, 30}, {1, 20}), Tensor(type, {30, 10}), {20, 10}, out);
    expect_matmul(Tensor(type, {20, 30}), Tensor(type, {30, 10}, {1, 30}), {20, 10}, out);
    expect_matmul(Tensor(type, {20, 30}, {1, 23}), Tensor(type, {30, 10}, {1, 37}), {20, 10}, out);
    expect_matmul(Tensor(type, {20, 30}, {35, 1}), Tensor(type, {30, 10}, {13, 1}), {20, 10}, out);
  }
}

TEST(OnednnMatmul, broadcasts_batch_axes) {
  for (uint32_t type : {TN_F32, TN_BF16}) {
    expect_matmul(Tensor(type, {3, 5, 8}), Tensor(type, {3, 8, 6}), {3, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {3, 5, 8}), Tensor(type, {8, 6}), {3, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {5, 8}), Tensor(type, {3, 8, 6}), {3, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {2, 1, 5, 8}), Tensor(type, {1, 3, 8, 6}), {2, 3, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {2, 3, 1, 5, 8}), Tensor(type, {4, 8, 6}), {2, 3, 4, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {4, 5, 8}, {8, 32, 1}), Tensor(type, {4, 8, 6}), {4, 5, 6}, TN_F32);
    expect_matmul(Tensor(type, {3, 5, 8}, {0, 8, 1}), Tensor(type, {3, 8, 6}), {3, 5, 6}, TN_F32);
  }
  expect_matmul(Tensor(TN_U8, {3, 5, 8}), Tensor(TN_I8, {3, 8, 6}), {3, 5, 6}, TN_I32);
}

TEST(OnednnMatmul, cuts_large_problems_over_the_pool) {
  for (uint32_t threads : {2u, 3u}) {
    expect_matmul(Tensor(TN_F32, {201, 200}), Tensor(TN_F32, {200, 190}), {201, 190}, TN_F32, threads);
    expect_matmul(Tensor(TN_F32, {8, 200}), Tensor(TN_F32, {200, 1200}), {8, 1200}, TN_F32, threads);
    expect_matmul(Tensor(TN_F32, {7, 70, 100}), Tensor(TN_F32, {7, 100, 110}), {7, 70, 110}, TN_F32, threads);
    expect_matmul(Tensor(TN_BF16, {331, 300}), Tensor(TN_BF16, {300, 390}), {331, 390}, TN_BF16, threads);
    expect_matmul(Tensor(TN_U8, {331, 300}, {1, 331}), Tensor(TN_I8, {300, 390}, {1, 300}), {331, 390}, TN_I32, threads);
  }
}

TEST(OnednnMatmul, keeps_integer_sums_exact_beyond_the_precision_of_float) {
  const int64_t k = 4099;
  for (uint32_t type : {TN_U8, TN_I8}) {
    Tensor a(type, {3, k}), b(TN_I8, {k, 18}), out(TN_I32, {3, 18});
    a.each([&](const Dims& i) { a.set(i, type == TN_U8 ? 255 : -128); });
    b.each([&](const Dims& i) { b.set(i, i[1] % 2 == 0 ? -128 : 127); });
    ASSERT_EQ(Plugin::with_threads(1).run(matmul(a, b, out)), TN_OK);
    expect_close(out, [&](const Dims& i) { return dot(a, b, i); }, 0);
  }
}

TEST(OnednnMatmul, passes_nan_and_inf_through) {
  for (uint32_t type : {TN_F32, TN_BF16}) {
    Tensor a(type, {3, 20}), b(type, {20, 5}), out(TN_F32, {3, 5});
    a.fill(1), b.fill(2);
    a.set({0, 3}, kNaN);
    a.set({1, 4}, kInf);
    b.set({4, 0}, 0), b.set({4, 1}, -1), b.set({4, 2}, 1), b.set({4, 3}, -kInf), b.set({4, 4}, kNaN);
    ASSERT_EQ(Plugin::with_threads(1).run(matmul(a, b, out)), TN_OK);
    expect_close(out, [&](const Dims& i) { return dot(a, b, i); }, 2e-5);
  }
}

// acc -> [+ bias] -> [limit from below by slot 0] -> [cast]
struct Post {
  std::vector<tn_inst> inst;
  tn_program program{};
  enum Limit { None, Max, Select };
  Post(bool bias, Limit limit, uint32_t bias_dtype, uint32_t out_dtype) {
    const auto add = [&](uint8_t op, uint32_t type, int a, int b) {
      inst.push_back({op, static_cast<uint8_t>(type), static_cast<uint16_t>(a), static_cast<uint16_t>(b), 0});
      return static_cast<int>(inst.size() - 1);
    };
    int value = add(TN_OP_INPUT, TN_F32, 0, 0);
    if (bias) {
      int row = add(TN_OP_INPUT, bias_dtype, 1, 0);
      if (bias_dtype != TN_F32) row = add(TN_OP_CAST, TN_F32, row, 0);
      value = add(TN_OP_ADD, TN_F32, value, row);
    }
    if (limit == Max) value = add(TN_OP_MAX, TN_F32, value, add(TN_OP_CONST, TN_F32, 0, 0));
    if (limit == Select) {
      const int constant = add(TN_OP_CONST, TN_F32, 0, 0), test = add(TN_OP_LE, TN_BOOL, value, constant);
      const int chosen = add(TN_OP_SELECT, TN_F32, test, constant);
      inst.back().c = static_cast<uint16_t>(value);
      value = chosen;
    }
    if (out_dtype != TN_F32) value = add(TN_OP_CAST, out_dtype, value, 0);
    program = {sizeof program, 0, 0, static_cast<uint8_t>(inst.size()), static_cast<uint8_t>(bias ? 2 : 1), 1,
               static_cast<uint8_t>(limit != None ? 1 : 0), {static_cast<uint16_t>(value)}, 0, inst.data()};
  }
};

uint64_t slot(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

void expect_epilogue(uint32_t type, uint32_t out_type, bool bias, Post::Limit limit, float low, uint32_t threads, Dims a_dims,
                     Dims b_dims, Dims out_dims) {
  Tensor a(type, std::move(a_dims)), b(type, std::move(b_dims)), out(out_type, std::move(out_dims));
  Tensor row(type, {out.type.dim[out.type.rank - 1]});
  a.fill(3), b.fill(4), row.fill(5);
  const bool clamp = limit != Post::None;
  if (clamp) a.set(Dims(a.type.rank, 0), kNaN);
  const Post post(bias, limit, type, out_type);
  Call call = matmul(a, b, out);
  if (bias) call.in.push_back(&row);
  call.attrs.set(TN_KEY_POST, &post.program);
  if (clamp) call.push = {slot(low)};
  tn_diag diag{};
  ASSERT_EQ(Plugin::with_threads(threads).run(call, &diag), TN_OK) << diag.msg;
  const auto want = [&](const Dims& i) {
    double v = dot(a, b, i) + (bias ? row.at({i.back()}) : 0);
    return clamp && v < low ? low : v;
  };
  expect_close(out, want, tolerance(out_type));
}

TEST(OnednnMatmul, runs_bias_and_a_lower_limit_as_epilogue) {
  for (bool bias : {false, true}) {
    for (Post::Limit clamp : {Post::None, Post::Max, Post::Select}) {
      expect_epilogue(TN_F32, TN_F32, bias, clamp, 0.f, 1, {9, 20}, {20, 7}, {9, 7});
      expect_epilogue(TN_F32, TN_F32, bias, clamp, 0.25f, 2, {3, 9, 20}, {3, 20, 7}, {3, 9, 7});
      expect_epilogue(TN_BF16, TN_BF16, bias, clamp, -0.5f, 1, {9, 20}, {20, 7}, {9, 7});
      expect_epilogue(TN_BF16, TN_F32, bias, clamp, 0.f, 1, {9, 20}, {20, 7}, {9, 7});
      expect_epilogue(TN_F32, TN_F32, bias, clamp, 0.f, 2, {300, 200}, {200, 170}, {300, 170});
      expect_epilogue(TN_F32, TN_F32, bias, clamp, 0.f, 2, {6, 400}, {400, 1170}, {6, 1170});
      expect_epilogue(TN_F32, TN_F32, bias, clamp, 0.f, 3, {2, 200, 100}, {2, 100, 170}, {2, 200, 170});
    }
  }
}

TEST(OnednnMatmul, max_orders_signed_zeros_as_the_opcode_table_says) {
  for (float low : {0.f, -0.f}) {
    Tensor a(TN_F32, {2, 1}), b(TN_F32, {1, 1}), out(TN_F32, {2, 1});
    a.set({0, 0}, 0.0), a.set({1, 0}, -1e-30);
    b.set({0, 0}, 1e-30);  // the second product underflows to -0
    const Post post(false, Post::Max, TN_F32, TN_F32);
    Call call = matmul(a, b, out);
    call.attrs.set(TN_KEY_POST, &post.program);
    call.push = {slot(low)};
    ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
    EXPECT_FALSE(std::signbit(out.at({0, 0})));  // max(+0, either) = +0
    EXPECT_EQ(std::signbit(out.at({1, 0})), std::signbit(low));  // max(-0, low) = low
  }
}

TEST(OnednnMatmul, a_nan_limit_wins_under_max_and_limits_nothing_under_select) {
  for (Post::Limit limit : {Post::Max, Post::Select}) {
    Tensor a(TN_F32, {2, 3}), b(TN_F32, {3, 2}), out(TN_F32, {2, 2});
    a.fill(1), b.fill(2);
    const Post post(false, limit, TN_F32, TN_F32);
    Call call = matmul(a, b, out);
    call.attrs.set(TN_KEY_POST, &post.program);
    call.push = {slot(std::numeric_limits<float>::quiet_NaN())};
    ASSERT_EQ(Plugin::with_threads(1).run(call), TN_OK);
    expect_close(out, [&](const Dims& i) { return limit == Post::Max ? kNaN : dot(a, b, i); }, 2e-5);
  }
}

TEST(OnednnMatmul, refuses_what_it_would_get_wrong) {
  Tensor a(TN_F32, {4, 0}), b(TN_F32, {0, 5}), out(TN_F32, {4, 5});
  tn_diag diag{};
  Plugin& plugin = Plugin::with_threads(1);
  EXPECT_EQ(plugin.supports(matmul(a, b, out), &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("empty"), std::string::npos) << diag.msg;
  Tensor d(TN_F32, {4, 6}, {12, 2}), e(TN_F32, {6, 5});
  EXPECT_EQ(plugin.supports(matmul(d, e, out), &diag), TN_E_UNSUPPORTED);
  Tensor f(TN_F32, {4, 6}, {3, 1});
  EXPECT_EQ(plugin.supports(matmul(f, e, out), &diag), TN_E_UNSUPPORTED);
  Tensor g(TN_I8, {4, 6}), h(TN_U8, {6, 5}), i(TN_I32, {4, 5});
  EXPECT_EQ(plugin.supports(matmul(g, h, i), &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("i8"), std::string::npos) << diag.msg;
}

TEST(OnednnMatmul, refuses_an_unknown_epilogue_and_names_its_opcode) {
  Tensor a(TN_F32, {4, 6}), b(TN_F32, {6, 5}), out(TN_F32, {4, 5});
  const tn_inst inst[] = {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_TANH, TN_F32, 0, 0, 0}};
  const tn_program program{sizeof program, 0, 0, 2, 1, 1, 0, {1}, 0, inst};
  Call call = matmul(a, b, out);
  call.attrs.set(TN_KEY_POST, &program);
  tn_diag diag{};
  EXPECT_EQ(Plugin::with_threads(1).supports(call, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("24"), std::string::npos) << diag.msg;
}

TEST(OnednnMatmul, refuses_bf16_where_subnormals_are_demanded) {
  Tensor a(TN_BF16, {4, 6}), b(TN_BF16, {6, 5}), out(TN_BF16, {4, 5});
  Call call = matmul(a, b, out);
  call.math_flags = TN_MATH_SUBNORMAL;
  EXPECT_EQ(Plugin::with_threads(1).supports(call), TN_E_UNSUPPORTED);
}

TEST(OnednnMatmul, keeps_f32_subnormals) {
  Tensor a(TN_F32, {2, 2}), b(TN_F32, {2, 2}), out(TN_F32, {2, 2});
  a.set({0, 0}, 1e-30), b.set({0, 0}, 1e-10);
  ASSERT_EQ(Plugin::with_threads(1).run(matmul(a, b, out)), TN_OK);
  EXPECT_EQ(static_cast<float>(out.at({0, 0})), 1e-30f * 1e-10f);
}

TEST(OnednnMatmul, one_plan_runs_in_several_threads_at_once) {
  Plugin& plugin = Plugin::with_threads(2);
  Tensor a(TN_F32, {150, 140}), b(TN_F32, {140, 130}), sample(TN_F32, {150, 130});
  a.fill(1), b.fill(2);
  const Call first = matmul(a, b, sample);
  const tn_kernel_plan* plan = plugin.prepare(first);
  ASSERT_EQ(plugin.launch(plan, first), TN_OK);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Tensor out(TN_F32, {150, 130});
        Call call = matmul(a, b, out);
        if (plugin.launch(plan, call) != TN_OK || out.bytes != sample.bytes) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  plugin.retire(first, plan);
  EXPECT_EQ(wrong, 0);
}

TEST(OnednnMatmul, equal_plans_share_and_retire_to_nothing) {
  Plugin& plugin = Plugin::with_threads(1);
  const uint32_t before = plugin.live();
  Tensor a(TN_F32, {40, 50}), b(TN_F32, {50, 60}), out(TN_F32, {40, 60});
  a.fill(1), b.fill(2);
  const Call call = matmul(a, b, out);
  const tn_kernel_plan *p = plugin.prepare(call), *q = plugin.prepare(call);
  EXPECT_EQ(plugin.live(), before + 2);
  plugin.retire(call, p);
  EXPECT_EQ(plugin.launch(q, call), TN_OK);
  plugin.retire(call, q);
  EXPECT_EQ(plugin.live(), before);
}

TEST(OnednnLinear, computes_x_times_w_transposed_plus_bias) {
  for (uint32_t type : {TN_F32, TN_BF16}) {
    for (bool with_bias : {false, true}) {
      for (const Dims& x_dims : {Dims{30}, Dims{9, 30}, Dims{2, 3, 30}, Dims{1, 30}}) {
        Dims out_dims = x_dims;
        out_dims.back() = 11;
        Tensor x(type, x_dims), w(type, {11, 30}), out(type, out_dims), bias(type, {11}), none;
        x.fill(1), w.fill(2), bias.fill(3);
        const Call call{"onednn.linear", TN_OPID_LINEAR, {&x, &w, with_bias ? &bias : &none}, {&out}, {}, {}, 0};
        tn_diag diag{};
        ASSERT_EQ(Plugin::with_threads(1).run(call, &diag), TN_OK) << diag.msg;
        const auto want = [&](const Dims& i) {
          double sum = with_bias ? bias.at({i.back()}) : 0;
          Dims xi = i;
          for (int64_t k = 0; k < 30; ++k) xi.back() = k, sum += x.at(xi) * w.at({i.back(), k});
          return sum;
        };
        expect_close(out, want, tolerance(type));
      }
    }
  }
}

TEST(OnednnLinear, takes_rows_with_gaps) {
  Tensor x(TN_F32, {3, 4, 30}, {200, 40, 1}), w(TN_F32, {11, 30}, {1, 11}), out(TN_F32, {3, 4, 11}), none;
  x.fill(1), w.fill(2);
  const Call call{"onednn.linear", TN_OPID_LINEAR, {&x, &w, &none}, {&out}, {}, {}, 0};
  tn_diag diag{};
  ASSERT_EQ(Plugin::with_threads(1).run(call, &diag), TN_OK) << diag.msg;
  const auto want = [&](const Dims& i) {
    double sum = 0;
    for (int64_t k = 0; k < 30; ++k) sum += x.at({i[0], i[1], k}) * w.at({i[2], k});
    return sum;
  };
  expect_close(out, want, 2e-5);
}

}  // namespace
}  // namespace onednn_test
