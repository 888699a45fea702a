// Derivatives by rule against central differences in f64, over every case of every op of these families; and the
// derivative of the derivative for those where it is cheap.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops_nn/case_run.h"

namespace tenon::ops::test {
namespace {

class Derivatives : public testing::TestWithParam<uint64_t> {};

TEST_P(Derivatives, agree_with_finite_differences) {
  const OpDecl& decl = *find_op(GetParam());
  size_t number = 0;
  for (const Case& c : decl.cases()) {
    const size_t k = number++;
    if (!c.differentiable || total_elements(c) > 100) continue;
    SCOPED_TRACE(std::string(decl.def.name) + " case " + std::to_string(k));
    const CaseCall call = make_call(decl, c);
    EXPECT_LT(gradient_error(call.call, call.in), 2e-4);
  }
}

TEST_P(Derivatives, have_derivatives) {
  const OpDecl& decl = *find_op(GetParam());
  int tried = 0;
  for (const Case& c : decl.cases()) {
    if (!c.differentiable || total_elements(c) > 40 || total_elements(c) == 0 || tried == 3) continue;
    SCOPED_TRACE(decl.def.name);
    const CaseCall call = make_call(decl, c);
    EXPECT_LT(gradient_error(call.call, call.in, 2), 2e-3);
    ++tried;
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, Derivatives, testing::ValuesIn(own_ops()), [](const auto& info) { return std::string(find_op(info.param)->def.name); });

TEST(Derivatives, of_max_pool_send_all_to_the_first_of_equals) {
  const Call pool{TN_OPID_MAX_POOL2D_GRAD, {Attr::ints(TN_KEY_KERNEL, {2, 2})}, {}};
  const Array x{TN_F64, {1, 1, 3, 3}, std::vector<Number>(9, 1)}, y{TN_F64, {1, 1, 2, 2}, {1, 1, 1, 1}}, dy{TN_F64, {1, 1, 2, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(run(pool, {x, y, dy})[0].data, (std::vector<Number>{1, 2, 0, 3, 4, 0, 0, 0, 0}));
}

TEST(Derivatives, of_max_pool_find_a_real_minus_infinity_behind_padding) {
  const Call pool{TN_OPID_MAX_POOL2D_GRAD,
                  {Attr::ints(TN_KEY_KERNEL, {2, 2}), Attr::ints(TN_KEY_LO, {1, 1}), Attr::ints(TN_KEY_STRIDES, {2, 2})}, {}};
  const Array x{TN_F64, {1, 1, 1, 1}, {-INFINITY}}, y = x, dy{TN_F64, {1, 1, 1, 1}, {5}};
  EXPECT_EQ(run(pool, {x, y, dy})[0].data, (std::vector<Number>{5}));
}

TEST(Derivatives, of_scatter_set_go_to_the_last_writer) {
  tn_builder b;
  b.types = {make_type(TN_F64, {3}), make_type(TN_I64, {4}), make_type(TN_F64, {4}), make_type(TN_F64, {3})};
  const auto out = emit(b, {TN_OPID_SCATTER, {Attr::i64(TN_KEY_AXIS, 0), Attr::i64(TN_KEY_MODE, TN_SCATTER_SET)}, {}}, {0, 1, 2});
  const auto grads = derive(b, {0, 2}, out, {3});
  const std::vector<Array> in{{TN_F64, {3}, {1, 2, 3}}, {TN_I64, {4}, {0, 1, 0, -3}}, {TN_F64, {4}, {4, 5, 6, 7}}, {TN_F64, {3}, {10, 20, 30}}};
  const auto got = evaluate(b, {0, 1, 2, 3}, in, grads);
  EXPECT_EQ(got[0].data, (std::vector<Number>{0, 0, 30}));
  EXPECT_EQ(got[1].data, (std::vector<Number>{0, 20, 0, 10}));
}

TEST(Derivatives, of_scatter_max_share_ties) {
  tn_builder b;
  b.types = {make_type(TN_F64, {2}), make_type(TN_I64, {3}), make_type(TN_F64, {3}), make_type(TN_F64, {2})};
  const auto out = emit(b, {TN_OPID_SCATTER, {Attr::i64(TN_KEY_AXIS, 0), Attr::i64(TN_KEY_MODE, TN_SCATTER_MAX)}, {}}, {0, 1, 2});
  const auto grads = derive(b, {0, 2}, out, {3});
  const std::vector<Array> in{{TN_F64, {2}, {5, 1}}, {TN_I64, {3}, {0, 0, 1}}, {TN_F64, {3}, {5, 4, 2}}, {TN_F64, {2}, {1, 1}}};
  const auto got = evaluate(b, {0, 1, 2, 3}, in, grads);
  EXPECT_EQ(got[0].data, (std::vector<Number>{0.5, 0}));
  EXPECT_EQ(got[1].data, (std::vector<Number>{0.5, 0, 1}));
}

}  // namespace
}  // namespace tenon::ops::test
