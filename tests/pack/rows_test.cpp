// Every kernel that reads a stored b, against loops in double or exact integers.
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/tenon.hpp>

#include <array>
#include <cmath>
#include <random>

namespace tenon::test {
namespace {

struct RowCase {
  const char* name;
  DType left, right;
  bool program;  // takes a program after the product
};
std::ostream& operator<<(std::ostream& out, const RowCase& c) { return out << c.name; }

uint32_t matmul_op() {
  uint32_t id = 0;
  EXPECT_EQ(tn_op_find(default_runtime().get(), "matmul", 0, &id, nullptr), TN_OK);
  return id;
}

struct Pin {
  explicit Pin(const char* kernel) { EXPECT_EQ(tn_pin(default_runtime().get(), matmul_op(), 0, kernel, nullptr), TN_OK); }
  ~Pin() { tn_pin(default_runtime().get(), matmul_op(), 0, nullptr, nullptr); }
};

// Values that the type holds exactly, of full range for bytes.
Tensor values(DType t, const Shape& dims, unsigned seed) {
  std::mt19937 rng(seed);
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i)
    v.push_back(t == DType::u8 ? float(rng() % 256) : t == DType::i8 ? float(int(rng() % 256) - 128) : std::normal_distribution<float>()(rng));
  return from_vector(v, dims).to(t);
}

void expect_product(const Tensor& a, const Tensor& b, const Tensor& y, const std::string& where) {
  const int64_t m = a.numel() / a.dim(-1), k = b.dim(0), n = b.dim(1);
  const auto av = a.to_vector<double>(), bv = b.to_vector<double>(), yv = y.to_vector<double>();
  const double bound = 1e-6 * (4 + std::sqrt(double(k)));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = 0, mass = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double t = av[size_t(i * k + p)] * bv[size_t(p * n + j)];
        want += t, mass += std::fabs(t);
      }
      const double got = yv[size_t(i * n + j)];
      if (y.dtype() == DType::i32) ASSERT_EQ(got, want) << where << " at " << i << "," << j;
      else ASSERT_NEAR(got, want, bound * mass + (y.dtype() == DType::bf16 ? std::fabs(want) / 256 : 0)) << where << " at " << i << "," << j;
    }
}

std::string winner(const Tensor& a, const Tensor& b) {
  const uint32_t in[2] = {a.type_id(), b.type_id()};
  const tn_spec spec{matmul_op(), 0, a.device().id(), 0, 2, 0, in};
  tn_candidate row{};
  row.size = sizeof row;
  uint32_t n = 0;
  EXPECT_EQ(tn_why(default_runtime().get(), &spec, &row, sizeof row, 1, &n, nullptr), TN_OK);
  return row.why == TN_WHY_WON ? row.kernel : "nobody";
}

class PackedRow : public ::testing::TestWithParam<RowCase> {
 protected:
  void SetUp() override {
    set_default_runtime(Runtime({.threads = 2}));
    set_default_device(default_runtime().device("cpu:0"));
    pin = std::make_unique<Pin>(GetParam().name);
    try {
      stored(values(GetParam().right, {8, 8}, 1), 8);
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  void TearDown() override { pin.reset(); }
  Tensor left(const Shape& dims, unsigned seed = 1) { return values(GetParam().left, dims, seed); }
  Tensor right(const Shape& dims, unsigned seed = 2) { return values(GetParam().right, dims, seed); }
  Tensor stored(const Tensor& b, int64_t rows) { return prepack(b, rows); }

  // Depths that oneDNN's tiles get wrong are declined.
  bool declines(int64_t k) const {
    const std::string name = GetParam().name;
    if (name.rfind("onednn", 0) != 0 || GetParam().left == DType::f32) return false;
    return GetParam().left == DType::bf16 ? k % 32 == 31 : k % 64 > 60;
  }

  void check(int64_t m, int64_t n, int64_t k) {
    if (declines(k)) return;
    const Tensor a = left({m, k}), b = right({k, n}), p = stored(b, m);
    ASSERT_EQ(winner(a, p), GetParam().name);
    expect_product(a, b, matmul(a, p), std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
  }

  const NoGrad off;
  std::unique_ptr<Pin> pin;
};
INSTANTIATE_TEST_SUITE_P(Kernels, PackedRow,
                         testing::Values(RowCase{"cpu.matmul.f32_packed", DType::f32, DType::f32, true}, RowCase{"cpu.matmul.amx_bf16_packed", DType::bf16, DType::bf16, true},
                                         RowCase{"cpu.matmul.amx_u8s8_packed", DType::u8, DType::i8, true}, RowCase{"onednn.matmul.f32_packed", DType::f32, DType::f32, true},
                                         RowCase{"onednn.matmul.bf16_packed", DType::bf16, DType::bf16, true}, RowCase{"onednn.matmul.u8s8_packed", DType::u8, DType::i8, false}),
                         [](auto& i) {
                           std::string s = i.param.name;
                           std::replace(s.begin(), s.end(), '.', '_');
                           return s;
                         });

TEST_P(PackedRow, products_of_all_small_sizes_are_right) {
  std::mt19937 rng(7);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) check(1 + rng() % 70, 1 + rng() % 70, 1 + rng() % 70);
}

TEST_P(PackedRow, products_of_edge_sizes_are_right) {
  constexpr std::array<int64_t, 3> kSizes[] = {{1, 1, 1}, {1, 70, 70}, {32, 32, 32}, {33, 31, 65}, {64, 64, 64}, {70, 64, 512}, {3, 65, 1025}, {130, 130, 600}, {600, 520, 64}, {40, 700, 1100}, {513, 129, 257}};
  for (auto [m, n, k] : kSizes)
    if (!HasFatalFailure()) check(m, n, k);
}

TEST_P(PackedRow, one_stored_weight_serves_every_number_of_rows) {
  const Tensor b = right({67, 130}), p = stored(b, 33);
  for (int64_t m : {1, 2, 6, 7, 31, 32, 33, 64, 65, 129, 700}) {
    const Tensor a = left({m, 67}, static_cast<unsigned>(m));
    ASSERT_EQ(winner(a, p), GetParam().name);
    expect_product(a, b, matmul(a, p), "m " + std::to_string(m));
    if (HasFatalFailure()) return;
  }
}

TEST_P(PackedRow, leading_axes_are_more_rows_and_a_vector_is_one) {
  const Tensor b = right({20, 33}), p = stored(b, 10), a = left({3, 4, 5, 20}), v = left({20});
  const Tensor y = matmul(a, p);
  EXPECT_EQ(y.shape(), (Shape{3, 4, 5, 33}));
  expect_product(a, b, y, "batch");
  expect_product(v, b, matmul(v, p), "vector");
  expect_product(left({7, 1, 20}), b, matmul(left({7, 1, 20}), p), "one row each");
}

TEST_P(PackedRow, a_transposed_weight_is_stored_like_any_other) {
  const Tensor w = right({45, 70}), b = w.t(), a = left({9, 70});
  expect_product(a, b.contiguous(), matmul(a, stored(b, 9)), "transposed");
}

TEST_P(PackedRow, rows_of_a_may_lie_apart) {
  const Tensor b = right({20, 33}), p = stored(b, 10), wide = left({6, 40});
  const Tensor a = wide.narrow(1, 10, 20);
  expect_product(a.contiguous(), b, matmul(a, p), "rows apart");
}

TEST_P(PackedRow, special_values_pass_through) {
  if (GetParam().left == DType::u8) GTEST_SKIP() << "integers have none";
  const float inf = INFINITY;
  const Tensor a = from_vector(std::vector<float>{1, NAN, 0, inf, 1, 0}, {3, 2}).to(GetParam().left);
  const Tensor b = from_vector(std::vector<float>{1, 2, 3, 4}, {2, 2}).to(GetParam().right);
  const auto y = matmul(a, stored(b, 3)).to(f32).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_TRUE(y[2] == inf && y[3] == inf);
  EXPECT_EQ(y[4], 1);
  EXPECT_EQ(y[5], 2);
}

// bias and a lower limit after the product, through the C functions.
std::vector<double> with_post(const Tensor& a, const Tensor& b, const Tensor& bias, bool integer, tn_status* status, tn_diag* diag) {
  const uint8_t type = integer ? TN_I32 : TN_F32;
  const tn_inst inst[] = {{TN_OP_INPUT, type, 0, 0, 0}, {TN_OP_INPUT, type, 1, 0, 0}, {TN_OP_ADD, type, 0, 1, 0}, {TN_OP_CONST, type, 0, 0, 0}, {TN_OP_MAX, type, 2, 3, 0}};
  const tn_program program{sizeof program, 0, 0, 5, 2, 1, 1, {4, 0, 0, 0}, 0, inst};
  tn_attr attr{};
  attr.key = TN_KEY_POST, attr.type = TN_ATTR_PROGRAM, attr.v.p = &program, attr.len = 1;
  uint32_t id = 0;
  tn_queue* q = nullptr;
  EXPECT_EQ(tn_attr_intern(default_runtime().get(), matmul_op(), &attr, 1, &id, diag), TN_OK) << diag->msg;
  EXPECT_EQ(tn_queue_get(default_runtime().get(), a.device().id(), &q, diag), TN_OK);
  tn_tensor *in[3] = {a.handle(), b.handle(), bias.handle()}, *out = nullptr;
  const uint64_t push = 0;
  const tn_call_args args{matmul_op(), id, 0, 8, 3, 1, in, &out, &push};
  if ((*status = tn_call(q, &args, diag)) != TN_OK) return {};
  const size_t n = static_cast<size_t>(a.dim(0) * b.dim(1));
  std::vector<double> result(n);
  std::vector<int32_t> whole(n);
  std::vector<float> real(n);
  EXPECT_EQ(tn_tensor_read(q, out, integer ? static_cast<void*>(whole.data()) : real.data(), 4 * n, diag), TN_OK) << diag->msg;
  for (size_t i = 0; i < n; ++i) result[i] = integer ? whole[i] : double(real[i]);
  tn_tensor_release(out);
  return result;
}

TEST_P(PackedRow, a_program_after_the_product_gives_what_it_gives_on_a_plain_weight) {
  const bool integer = GetParam().left == DType::u8;
  for (auto [m, n, k] : {std::array<int64_t, 3>{5, 33, 17}, {64, 128, 70}, {300, 200, 130}}) {
    const Tensor a = left({m, k}), b = right({k, n}), p = stored(b, m), bias = integer ? values(DType::i8, {n}, 5).to(i32) : values(DType::f32, {n}, 5);
    tn_diag diag{};
    diag.size = sizeof diag;
    tn_status status = TN_OK;
    const auto got = with_post(a, p, bias, integer, &status, &diag);
    if (!GetParam().program) {
      EXPECT_EQ(status, TN_E_UNSUPPORTED);
      EXPECT_NE(std::string(diag.msg).find(GetParam().name), std::string::npos) << diag.msg;
      return;
    }
    ASSERT_EQ(status, TN_OK) << diag.msg;
    pin.reset();
    const auto want = with_post(a, b, bias, integer, &status, &diag);
    pin = std::make_unique<Pin>(GetParam().name);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], integer ? 0 : 1e-4) << i;
  }
}

TEST_P(PackedRow, an_empty_weight_is_not_stored) {
  try {
    prepack(right({0, 4}), 3);
    FAIL() << "stored";
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-OP-133") << e.what();
  }
}

TEST(PackedProducts, bf16_weights_give_f32_results_when_asked) {
  const NoGrad off;
  const Tensor a = values(DType::bf16, {9, 70}, 1), b = values(DType::bf16, {70, 40}, 2);
  Tensor p;
  try {
    p = prepack(b, 9);
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  tn_attr attr{};
  attr.key = TN_KEY_DTYPE, attr.type = TN_ATTR_I64, attr.v.i = TN_F32;
  uint32_t id = 0;
  tn_diag diag{};
  diag.size = sizeof diag;
  ASSERT_EQ(tn_attr_intern(default_runtime().get(), matmul_op(), &attr, 1, &id, &diag), TN_OK) << diag.msg;
  tn_queue* q = nullptr;
  ASSERT_EQ(tn_queue_get(default_runtime().get(), a.device().id(), &q, &diag), TN_OK);
  tn_tensor *in[2] = {a.handle(), p.handle()}, *out = nullptr;
  const tn_call_args args{matmul_op(), id, 0, 0, 2, 1, in, &out, nullptr};
  ASSERT_EQ(tn_call(q, &args, &diag), TN_OK) << diag.msg;
  std::vector<float> got(9 * 40);
  ASSERT_EQ(tn_tensor_read(q, out, got.data(), got.size() * 4, &diag), TN_OK) << diag.msg;
  tn_tensor_release(out);
  expect_product(a, b, from_vector(got, {9, 40}), "f32 result");
}

}  // namespace
}  // namespace tenon::test
