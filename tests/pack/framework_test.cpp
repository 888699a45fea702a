// prepack(): what a person who serves a model sees.
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

namespace tenon::test {
namespace {

class Prepack : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      const NoGrad off;
      packed = prepack(weight, 4);
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  static void expect(const char* id, const std::function<void()>& f) {
    try {
      f();
      FAIL() << "no error, " << id << " was expected";
    } catch (const Error& e) {
      EXPECT_EQ(e.id(), id) << e.what();
      EXPECT_FALSE(e.why().empty()) << e.what();
      EXPECT_FALSE(e.advice().empty()) << e.what();
    }
  }
  Tensor weight = rand({48, 20}), packed;
};

TEST_F(Prepack, a_product_with_a_packed_weight_is_the_product) {
  const Tensor x = rand({7, 48});
  const auto got = matmul(x, packed).to_vector<float>(), want = matmul(x, weight).to_vector<float>();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
}

TEST_F(Prepack, the_packed_weight_says_what_it_is) {
  EXPECT_TRUE(packed.is_packed());
  EXPECT_FALSE(weight.is_packed());
  EXPECT_EQ(packed.shape(), weight.shape());
  EXPECT_EQ(packed.dtype(), DType::f32);
  EXPECT_EQ(packed.type_text().rfind("f32[48,20] packed as ", 0), 0u) << packed.type_text();
  EXPECT_EQ(packed.host_data(), nullptr);
}

TEST_F(Prepack, gradients_through_a_packed_weight_are_refused_at_the_call) {
  const Tensor x = rand({7, 48}).set_requires_grad(true);
  expect("TN-GRAD-016", [&] { matmul(x, packed); });
  const NoGrad off;
  EXPECT_EQ(matmul(x, packed).dim(1), 20);
}

TEST_F(Prepack, a_weight_that_requires_a_gradient_is_packed_under_no_grad_only) {
  Tensor w = rand({48, 20});
  w.set_requires_grad(true);
  expect("TN-GRAD-016", [&] { prepack(w); });
  EXPECT_TRUE(prepack(w.detach()).is_packed());
  const NoGrad off;
  EXPECT_TRUE(prepack(w).is_packed());
}

TEST_F(Prepack, nothing_else_can_be_done_with_it) {
  expect("TN-OP-130", [&] { packed.to_vector<float>(); });
  expect("TN-OP-130", [&] { packed.write(std::vector<float>(960).data(), 3840); });
  expect("TN-OP-130", [&] { to_dlpack(packed); });
  expect("TN-OP-131", [&] { packed.t(); });
  expect("TN-OP-131", [&] { packed.reshape({20, 48}); });
  expect("TN-OP-135", [&] { prepack(packed); });
  expect("TN-OP-019", [&] { add(packed, packed); });
  EXPECT_THROW(linear(rand({4, 20}), packed), Error);
  try {
    const Device sim = default_runtime().device("sim:0", TN_POLICY_REQUIRE);
    expect("TN-OP-130", [&] { packed.to(sim); });
    expect("TN-OP-134", [&] { matmul(rand({4, 48}).to(sim), packed); });
    expect("TN-OP-133", [&] { prepack(weight.to(sim)); });
  } catch (const Error&) {  // no simulated device here
  }
}

TEST_F(Prepack, a_weight_is_a_matrix_and_rows_are_counted) {
  expect("TN-SHAPE-112", [] { prepack(rand({3, 4, 5})); });
  expect("TN-SHAPE-112", [] { prepack(rand({3})); });
  expect("TN-ARG-118", [&] { prepack(weight, 0); });
  expect("TN-OP-133", [] { prepack(ones({4, 4}).to(i64)); });
}

}  // namespace
}  // namespace tenon::test
