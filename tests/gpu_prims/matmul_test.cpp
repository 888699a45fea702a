// matmul on an OpenCL device: all rows, types, strides, batches, epilogues, low limits.
#include <cstring>

#include "tests/gpu_prims/case.h"

namespace tenon::test {
namespace {

constexpr const char* kRows[] = {"matmul.block", "matmul.tiled", "matmul.direct"};

class Matmul : public testing::Test {
 protected:
  void SetUp() override {
    if (ClMachine::get() == nullptr) GTEST_SKIP() << "no OpenCL device";
    as_processor = ClMachine::get()->caps(), as_gpu = as_processor;
    as_gpu.device_class = gpu::DeviceClass::Gpu, as_gpu.compute_units = 4;
  }
  gpu::Caps caps_for(const char* row, bool low) const {
    const gpu::Caps& c = std::strcmp(row, "matmul.block") == 0 ? as_processor : as_gpu;
    return low ? lowered(c) : c;
  }
  gpu::Caps as_processor, as_gpu;
  std::mt19937 g{11};
};

Case product(uint32_t a_type, uint32_t b_type, uint32_t out_type, const Dims& a_dims, const Dims& b_dims, Layout la, Layout lb, std::mt19937& g) {
  Case c(TN_OPID_MATMUL, 2);
  Operand a = make_operand(a_type, a_dims, la, 2), b = make_operand(b_type, b_dims, lb, 1);
  fill_random(&a, g, gpu::Caps{}.index64 && a_type == TN_U8 ? 0 : -3, 3), fill_random(&b, g, b_type == TN_U8 || b_type == TN_U32 || b_type == TN_U64 ? 0 : -3, 3);
  Dims out;
  const size_t rank = std::max(a_dims.size(), b_dims.size());
  for (size_t d = 0; d + 2 < rank; ++d) {
    auto dim = [&](const Dims& x) { return d + x.size() < rank ? int64_t{1} : x[d + x.size() - rank]; };
    out.push_back(dim(a_dims) == 1 ? dim(b_dims) : dim(a_dims));
  }
  out.push_back(a_dims[a_dims.size() - 2]), out.push_back(b_dims.back());
  c.operand = {a, b, make_operand(out_type, out, Layout::Dense, 3)};
  return c;
}

void check(Case& c, const char* row, const gpu::Caps& caps, bool exact, double k, bool must = true) {
  std::vector<Operand> got;
  const auto word = c.run(row, caps, &got);
  if (!word.has_value()) {
    EXPECT_FALSE(must) << c.refusal;
    return;
  }
  expect_same(c, c.reference(), got, static_cast<uint32_t>(c.op().n_in), exact ? 0 : 16, 9 * k);
}

TEST_F(Matmul, every_type_in_every_row) {
  struct Types { uint32_t a, b, out; bool exact; };
  const Types all[] = {{TN_F32, TN_F32, TN_F32, false}, {TN_F16, TN_F16, TN_F16, false}, {TN_BF16, TN_BF16, TN_F32, false}, {TN_F64, TN_F64, TN_F64, false},
                       {TN_U8, TN_I8, TN_I32, true}, {TN_I8, TN_I8, TN_I32, true}, {TN_I32, TN_I32, TN_I32, true}, {TN_I64, TN_I64, TN_I64, true},
                       {TN_U32, TN_U32, TN_U32, true}, {TN_I16, TN_I16, TN_I16, true}};
  for (const char* row : kRows)
    for (const Types& t : all) {
      if (std::strcmp(row, "matmul.block") == 0 && (t.exact || t.a == TN_F64)) continue;
      SCOPED_TRACE(testing::Message() << row << " " << t.a);
      Case c = product(t.a, t.b, t.out, {37, 53}, {53, 41}, Layout::Dense, Layout::Dense, g);
      check(c, row, caps_for(row, false), t.exact, 53);
    }
}

TEST_F(Matmul, random_sizes_strides_and_batches_under_all_limits) {
  for (int round = 0; round < 150; ++round) {
    const char* row = kRows[g() % 3];
    auto size = [&] { return static_cast<int64_t>(g() % 8 == 0 ? g() % 3 : g() % 70); };
    const int64_t m = size(), n = size(), k = size(), batch = static_cast<int64_t>(g() % 4);
    Dims a{m, k}, b{k, n};
    if (g() % 2) a.insert(a.begin(), batch);
    if (g() % 2) b.insert(b.begin(), a.size() == 3 && g() % 2 ? 1 : batch);
    if (g() % 4 == 0) a.size() == 3 ? a.insert(a.begin(), 2) : a.insert(a.begin(), {2, 1});
    auto layout = [&] { return std::vector<Layout>{Layout::Dense, Layout::Transposed, Layout::Reversed, Layout::Spread}[g() % 4]; };
    const bool low = g() % 2;
    SCOPED_TRACE(testing::Message() << "round " << round << " " << row << " " << testing::PrintToString(a) << testing::PrintToString(b) << (low ? " low" : ""));
    Case c = product(TN_F32, TN_F32, TN_F32, a, b, layout(), layout(), g);
    check(c, row, caps_for(row, low), false, static_cast<double>(k), false);
  }
}

TEST_F(Matmul, large_products_are_cut_where_bindings_are_small) {
  for (const char* row : kRows)
    for (const auto& [a, b] : {std::pair<Dims, Dims>{{200, 300}, {300, 170}}, {{9, 20000}, {20000, 33}}, {{3, 64, 64}, {64, 700}}, {{700, 8}, {8, 900}}}) {
      SCOPED_TRACE(testing::Message() << row << " " << testing::PrintToString(a) << testing::PrintToString(b));
      Case c = product(TN_F32, TN_F32, TN_F32, a, b, Layout::Dense, Layout::Transposed, g);
      check(c, row, caps_for(row, true), false, static_cast<double>(a.back()));
      EXPECT_GT(c.steps, 1u);
      check(c, row, caps_for(row, false), false, static_cast<double>(a.back()));
    }
}

TEST_F(Matmul, a_depth_of_zero_gives_zeros_through_the_program) {
  for (const char* row : {"matmul.direct"}) {
    Case c = product(TN_F32, TN_F32, TN_F32, {5, 0}, {0, 6}, Layout::Dense, Layout::Dense, g);
    c.operand[2].bytes.assign(c.operand[2].bytes.size(), 0x55);
    check(c, row, caps_for(row, false), false, 1);
  }
}

// relu(acc * scale[n] + c[m, n]) cast to f16.
TEST_F(Matmul, programs_take_further_inputs) {
  for (const char* row : kRows)
    for (bool low : {false, true}) {
      SCOPED_TRACE(row);
      Case two = product(TN_F32, TN_F32, TN_F16, {70, 90}, {90, 130}, Layout::Dense, Layout::Dense, g);
      Case c(TN_OPID_MATMUL, 4);
      Operand scale = make_operand(TN_F32, {130}, Layout::Dense), add = make_operand(TN_F16, {70, 130}, Layout::Transposed);
      fill_random(&scale, g, -1, 1), fill_random(&add, g, -1, 1);
      c.operand = {two.operand[0], two.operand[1], scale, add, two.operand[2]};
      c.attr_program(TN_KEY_POST, {{TN_OP_INPUT, TN_F32, 0, 0, 0}, {TN_OP_INPUT, TN_F32, 1, 0, 0}, {TN_OP_INPUT, TN_F16, 2, 0, 0}, {TN_OP_CAST, TN_F32, 2, 0, 0},
                                   {TN_OP_FMA, TN_F32, 0, 1, 3}, {TN_OP_CONST, TN_F32, 0, 0, 0}, {TN_OP_MAX, TN_F32, 4, 5, 0}, {TN_OP_CAST, TN_F16, 6, 0, 0}}, 3, {7}, 1);
      c.push = {0};
      check(c, row, caps_for(row, low), false, 90);
    }
}

TEST_F(Matmul, nothing_times_infinity_is_skipped) {
  for (const char* row : kRows) {
    Case c = product(TN_F32, TN_F32, TN_F32, {16, 20}, {20, 40}, Layout::Dense, Layout::Dense, g);
    set(&c.operand[0], {3, 4}, 0), set(&c.operand[1], {4, 7}, INFINITY), set(&c.operand[0], {5, 6}, NAN);
    check(c, row, caps_for(row, false), false, 20);
  }
}

// GFLOP per second of processor time; printed, not judged.
TEST(MatmulSpeed, DISABLED_of_square_products) {
  if (ClMachine::get() == nullptr) GTEST_SKIP() << "no OpenCL device";
  std::mt19937 g{1};
  for (int64_t n : {256, 512, 1024}) {
    Case c = product(TN_F32, TN_F32, TN_F32, {n, n}, {n, n}, Layout::Dense, Layout::Dense, g);
    gpu::Recipe r;
    tn_diag diag{};
    const tn_op op = c.op();
    ASSERT_EQ(gpu::make_recipe(ClMachine::get()->caps(), row_named("matmul.block"), op, &r, &diag), TN_OK) << diag.msg;
    std::vector<HostView> views;
    for (Operand& o : c.operand) views.push_back({&o.bytes, o.offset});
    const double s = ClMachine::get()->seconds(ClMachine::get()->caps(), r, views, 12);
    std::printf("{\"case\": \"matmul f32 %lld\", \"row\": \"matmul.block\", \"gflop_per_cpu_second\": %.1f}\n", static_cast<long long>(n), 2e-9 * static_cast<double>(n * n * n) / s);
  }
}

}  // namespace
}  // namespace tenon::test
