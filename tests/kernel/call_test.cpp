// The call path: results, caching, views, derivatives, errors.
#include "tests/kernel/harness.h"

using namespace tenon::test;

namespace {

class Call : public RuntimeTest {};

TEST_F(Call, adds_two_tensors) {
  tn_tensor* a = tensor({3}, {1, 2, 3});
  tn_tensor* b = tensor({3}, {10, 20, 30});
  auto y = call(op("add"), 0, {a, b});
  ASSERT_NE(y[0], nullptr);
  EXPECT_EQ(read(y[0]), (std::vector<float>{11, 22, 33}));
  for (tn_tensor* t : {a, b, y[0]}) tn_tensor_release(t);
}

TEST_F(Call, broadcasts_like_numpy) {
  tn_tensor* a = tensor({2, 1}, {1, 2});
  tn_tensor* b = tensor({3}, {10, 20, 30});
  auto y = call(op("mul"), 0, {a, b});
  EXPECT_EQ(read(y[0]), (std::vector<float>{10, 20, 30, 20, 40, 60}));
  for (tn_tensor* t : {a, b, y[0]}) tn_tensor_release(t);
}

TEST_F(Call, takes_an_absent_operand_from_the_push_slot) {
  tn_tensor* a = tensor({3}, {1, 2, 3});
  uint64_t bits = 0;
  const float two = 2;
  std::memcpy(&bits, &two, 4);
  auto y = call(op("mul"), 0, {a, nullptr}, 1, {bits});
  EXPECT_EQ(read(y[0]), (std::vector<float>{2, 4, 6}));
  auto z = call(op("sub"), 0, {nullptr, a}, 1, {bits});
  EXPECT_EQ(read(z[0]), (std::vector<float>{1, 0, -1}));
  for (tn_tensor* t : {a, y[0], z[0]}) tn_tensor_release(t);
}

TEST_F(Call, multiplies_matrices) {
  tn_tensor* a = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  tn_tensor* b = tensor({3, 2}, {1, 0, 0, 1, 1, 1});
  auto y = call(op("matmul"), 0, {a, b});
  EXPECT_EQ(read(y[0]), (std::vector<float>{4, 5, 10, 11}));
  for (tn_tensor* t : {a, b, y[0]}) tn_tensor_release(t);
}

TEST_F(Call, makes_views_without_copying) {
  tn_tensor* a = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const uint32_t permute = op("permute");
  auto y = call(permute, ints(permute, TN_KEY_PERM, {1, 0}), {a});
  EXPECT_EQ(y[0]->storage, a->storage);
  EXPECT_EQ(read(y[0]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const uint32_t reshape = op("reshape");
  auto z = call(reshape, ints(reshape, TN_KEY_DIMS, {6}), {y[0]});
  EXPECT_NE(z[0]->storage, a->storage) << "these strides admit no view";
  EXPECT_EQ(read(z[0]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  for (tn_tensor* t : {a, y[0], z[0]}) tn_tensor_release(t);
}

TEST_F(Call, names_both_shapes_when_they_do_not_fit) {
  tn_tensor* a = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  tn_tensor* b = tensor({4}, {1, 2, 3, 4});
  tn_tensor* in[2] = {a, b};
  tn_tensor* out = nullptr;
  tn_diag d{};
  const tn_call_args args{op("add"), 0, 0, 0, 2, 1, in, &out, nullptr};
  EXPECT_EQ(tn_call(queue, &args, &d), TN_E_SHAPE);
  EXPECT_NE(std::string(d.msg).find("2,3"), std::string::npos) << d.msg;
  EXPECT_NE(std::string(d.msg).find("device cpu:0"), std::string::npos) << d.msg;
  EXPECT_EQ(out, nullptr);
  tn_tensor_release(a);
  tn_tensor_release(b);
}

TEST_F(Call, derives_a_product) {
  tn_tensor* a = tensor({3}, {1, 2, 3});
  tn_tensor* b = tensor({3}, {10, 20, 30});
  tn_tensor* seed = tensor({3}, {1, 1, 2});
  const uint32_t mul = op("mul");
  auto y = call(mul, 0, {a, b});
  tn_derive how{sizeof how, TN_RULE_VJP, 1, 3, nullptr};
  uint32_t vjp = 0;
  TN_ASSERT_OK(tn_op_derive(runtime.get(), mul, &how, &vjp, diag));
  auto g = call(vjp, 0, {a, b, y[0], seed}, 2);
  EXPECT_EQ(read(g[0]), (std::vector<float>{10, 20, 60}));
  EXPECT_EQ(read(g[1]), (std::vector<float>{1, 2, 6}));
  // x * x: the same tensor at both operands keeps two derivatives.
  auto h = call(vjp, 0, {a, a, y[0], seed}, 2);
  EXPECT_EQ(read(h[0]), (std::vector<float>{1, 2, 6}));
  for (tn_tensor* t : {a, b, seed, y[0], g[0], g[1], h[0], h[1]}) tn_tensor_release(t);
}

TEST_F(Call, derives_twice) {
  // y = x^3 as x * x * x through mul; second derivative of square is 2.
  tn_tensor* x = tensor({2}, {3, 5});
  tn_tensor* one = tensor({2}, {1, 1});
  const uint32_t square = op("square");
  auto y = call(square, 0, {x});
  tn_derive how{sizeof how, TN_RULE_VJP, 1, 1, nullptr};
  uint32_t first = 0, second = 0;
  TN_ASSERT_OK(tn_op_derive(runtime.get(), square, &how, &first, diag));
  auto g = call(first, 0, {x, y[0], one});
  EXPECT_EQ(read(g[0]), (std::vector<float>{6, 10}));
  TN_ASSERT_OK(tn_op_derive(runtime.get(), first, &how, &second, diag));
  auto gg = call(second, 0, {x, y[0], one, g[0], one});
  EXPECT_EQ(read(gg[0]), (std::vector<float>{2, 2}));
  for (tn_tensor* t : {x, one, y[0], g[0], gg[0]}) tn_tensor_release(t);
}

TEST_F(Call, says_which_operands_a_derivative_reads) {
  const uint32_t add = op("add");
  tn_derive how{sizeof how, TN_RULE_VJP, 1, 3, nullptr};
  uint32_t vjp = 0;
  TN_ASSERT_OK(tn_op_derive(runtime.get(), add, &how, &vjp, diag));
  const uint32_t t = type(TN_F32, {4});
  const uint32_t in[4] = {t, t, t, t};
  const tn_spec spec{vjp, 0, cpu, 0, 4, 0, in};
  uint64_t reads_in = 9, reads_out = 9;
  TN_ASSERT_OK(tn_op_reads(runtime.get(), &spec, &reads_in, &reads_out, diag));
  EXPECT_EQ(reads_in, 0u);
  EXPECT_EQ(reads_out, 0u);
  tn_tensor* seed = tensor({4}, {1, 2, 3, 4});
  auto g = call(vjp, 0, {TN_TYPE_ONLY(t), TN_TYPE_ONLY(t), TN_TYPE_ONLY(t), seed}, 2);
  EXPECT_EQ(read(g[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(g[0], seed) << "a gradient that passes through is the seed itself";
  for (tn_tensor* x : {seed, g[0], g[1]}) tn_tensor_release(x);
}

TEST_F(Call, runs_every_composite_of_a_small_network) {
  tn_tensor* x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  auto s = call(op("softmax"), 0, {x});
  const std::vector<float> p = read(s[0]);
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
  EXPECT_NEAR(p[2], 0.66524096, 1e-6);
  tn_tensor_release(x);
  tn_tensor_release(s[0]);
}

TEST_F(Call, lists_every_candidate_with_its_reason) {
  const uint32_t t = type(TN_F32, {512, 512});
  const uint32_t in[2] = {t, t};
  const tn_spec spec{op("matmul"), 0, cpu, 0, 2, 0, in};
  tn_candidate rows[16]{};
  for (tn_candidate& r : rows) r.size = sizeof r;
  uint32_t n = 0;
  TN_ASSERT_OK(tn_why(runtime.get(), &spec, rows, sizeof rows[0], 16, &n, diag));
  ASSERT_GE(n, 1u);
  EXPECT_STREQ(rows[0].kernel, "reference.matmul");
  EXPECT_EQ(rows[0].why, uint32_t{TN_WHY_WON});
  EXPECT_GT(rows[0].est_ns, 0);
}

TEST_F(Call, launches_a_prepared_plan) {
  const uint32_t t = type(TN_F32, {4});
  const uint32_t in[2] = {t, t};
  const tn_spec spec{op("add"), 0, cpu, 0, 2, 0, in};
  tn_plan* plan = nullptr;
  TN_ASSERT_OK(tn_plan_prepare(runtime.get(), &spec, &plan, diag));
  tn_tensor* x[2] = {tensor({4}, {1, 2, 3, 4}), tensor({4}, {1, 1, 1, 1})};
  tn_tensor* y = nullptr;
  tn_call_args args{0, 0, 0, 0, 2, 1, x, &y, nullptr};
  TN_ASSERT_OK(tn_plan_launch(queue, plan, &args, diag));
  EXPECT_EQ(read(y), (std::vector<float>{2, 3, 4, 5}));
  tn_plan_release(plan);
  for (tn_tensor* v : {x[0], x[1], y}) tn_tensor_release(v);
}

TEST_F(Call, writes_in_place_where_the_kernel_can_and_through_a_copy_elsewhere) {
  tn_tensor* a = tensor({3}, {1, 2, 3});
  tn_tensor* in[2] = {a, a};
  tn_tensor* out = a;
  tn_diag d{};
  const tn_call_args args{op("add"), 0, 0, 0, 2, 1, in, &out, nullptr};
  ASSERT_EQ(tn_call(queue, &args, &d), TN_OK) << d.msg;
  EXPECT_EQ(read(a), (std::vector<float>{2, 4, 6}));
  tn_tensor* m = tensor({2, 2}, {1, 1, 1, 0});
  tn_tensor* mm[2] = {m, m};
  tn_tensor* same = m;
  const tn_call_args product{op("matmul"), 0, 0, 0, 2, 1, mm, &same, nullptr};
  ASSERT_EQ(tn_call(queue, &product, &d), TN_OK) << d.msg;
  EXPECT_EQ(read(m), (std::vector<float>{2, 1, 1, 1}));
  tn_tensor_release(a);
  tn_tensor_release(m);
}

// A sanitizer slows a new plan down so much that fewer than fill the table must do there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kManyShapes = 2000;
#else
constexpr int kManyShapes = 20000;
#endif

TEST_F(Call, keeps_bounded_tables_over_many_shapes) {
  const uint32_t add = op("add");
  for (int n = 1; n < kManyShapes; ++n) {
    const uint32_t t = type(TN_F32, {n % 7 + 1, n});
    tn_tensor* x = nullptr;
    TN_ASSERT_OK(tn_tensor_create(queue, t, &x, diag));
    auto y = call(add, 0, {x, x});
    tn_tensor_release(x);
    tn_tensor_release(y[0]);
    if (n % 1000 == 0) tn_memory_trim(runtime.get(), cpu, nullptr);
  }
  EXPECT_LE(runtime->core.plan_count(), tenon::kernel::Runtime::kPlanLimit);
}

TEST_F(Call, gives_new_shapes_of_a_class_the_right_results) {
  const uint32_t add = op("add");
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{5}, {6}, {7}, {2, 3}, {7, 1}, {1, 6}, {1}, {4, 1, 1}, {64}, {65}, {2, 2, 2}}) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    std::vector<float> values(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i);
    tn_tensor* x = tensor(dims, values);
    auto y = call(add, 0, {x, x});
    const std::vector<float> got = read(y[0]);
    ASSERT_EQ(got.size(), values.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 2 * values[i]);
    EXPECT_EQ(y[0]->type.rank, dims.size());
    tn_tensor_release(x);
    tn_tensor_release(y[0]);
  }
}

TEST_F(Call, takes_an_empty_tensor_whose_other_sizes_have_no_product) {
  tn_tensor* x = nullptr;
  TN_ASSERT_OK(tn_tensor_create(queue, type(TN_F32, {int64_t{1} << 40, int64_t{1} << 40, 0}), &x, diag));
  EXPECT_EQ(read(x).size(), 0u);
  tn_tensor_release(x);
}

TEST_F(Call, reports_what_is_held_when_memory_runs_out) {
  TN_ASSERT_OK(tn_memory_limit(runtime.get(), cpu, 1 << 20, diag));
  tn_tensor* t = nullptr;
  tn_diag d{};
  EXPECT_EQ(tn_tensor_create(queue, type(TN_F32, {1 << 20}), &t, &d), TN_E_OOM);
  EXPECT_NE(std::string(d.msg).find("limit 1.0 MiB"), std::string::npos) << d.msg;
}

}  // namespace
