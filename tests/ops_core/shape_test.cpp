// Shape rules: layouts they give, and what they refuse, with ids and values.
#include <gtest/gtest.h>

#include <cmath>

#include "kernel/dims.h"
#include "ops/op.h"
#include "tests/ops_core/fake_builder.h"

namespace tenon::ops {
namespace {

using test::Lab;

tn_type type_of(uint32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides = {}) {
  tn_type t{};
  t.dtype = static_cast<uint8_t>(dtype);
  t.rank = static_cast<uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), t.dim);
  kernel::ConcreteDims d;
  const tn_dims table = d.table();
  set_dense(&t, &table);
  std::copy(strides.begin(), strides.end(), t.stride);
  return t;
}

struct Inferred {
  tn_status status;
  tn_type type{};
  int64_t offset = 0;
  tn_status view = TN_OK;
  tn_diag diag{};
};

Inferred infer(uint64_t op_id, std::vector<tn_type> in, const std::vector<Attr>& attrs = {}) {
  std::vector<tn_attr> list;
  for (const Attr& a : attrs) {
    tn_attr t{a.key, a.type, {}, 1};
    if (a.type == TN_ATTR_I64) t.v.i = a.i;
    else t.v.p = a.list.data(), t.len = a.list.size();
    list.push_back(t);
  }
  tn_op op{};
  op.size = sizeof op, op.op_id = op_id, op.n_in = static_cast<uint16_t>(in.size()), op.n_out = 1;
  op.n_attr = static_cast<uint16_t>(list.size()), op.attr = list.data(), op.type = in.data();
  const OpDecl& decl = *find_op(op_id);
  kernel::ConcreteDims d;
  const tn_dims table = d.table();
  Inferred r{};
  r.status = decl.def.infer(decl.def.ctx, &op, &table, &r.type, &r.diag);
  if (r.status == TN_OK && decl.def.view) r.view = decl.def.view(decl.def.ctx, &op, &table, &r.offset, &r.diag);
  return r;
}

std::vector<int64_t> dims(const tn_type& t) { return {t.dim, t.dim + t.rank}; }
std::vector<int64_t> strides(const tn_type& t) { return {t.stride, t.stride + t.rank}; }
using Ints = std::vector<int64_t>;

void expect_refusal(const Inferred& r, tn_status status, uint32_t id, const char* text) {
  EXPECT_EQ(r.status, status);
  EXPECT_EQ(r.diag.id, id);
  EXPECT_NE(std::string(r.diag.msg).find(text), std::string::npos) << r.diag.msg;
  EXPECT_NE(std::string(r.diag.msg).find("\ntry: "), std::string::npos) << r.diag.msg;
}

TEST(Elementwise, keeps_the_axis_order_of_the_first_dense_input) {
  const tn_type last = type_of(TN_F32, {2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_EQ(strides(infer(TN_OPID_RELU, {last}).type), (Ints{60, 1, 15, 3}));
  EXPECT_EQ(strides(infer(TN_OPID_ADD, {type_of(TN_F32, {1, 3, 1, 1}), last}).type), (Ints{60, 1, 15, 3}));
  EXPECT_EQ(strides(infer(TN_OPID_ADD, {type_of(TN_F32, {2, 3, 4, 5}), last}).type), (Ints{60, 20, 5, 1}));
  EXPECT_EQ(strides(infer(TN_OPID_NEG, {type_of(TN_F32, {3, 4}, {8, 2})}).type), (Ints{4, 1})) << "gaps are not kept";
}

TEST(Elementwise, broadcasts_as_numpy_also_over_empty_axes) {
  EXPECT_EQ(dims(infer(TN_OPID_ADD, {type_of(TN_F32, {2, 1}), type_of(TN_F32, {0})}).type), (Ints{2, 0}));
  EXPECT_EQ(dims(infer(TN_OPID_ADD, {type_of(TN_F32, {}), type_of(TN_F32, {})}).type), Ints{});
}

TEST(Elementwise, refuses_shapes_that_do_not_broadcast) {
  const Inferred r = infer(TN_OPID_ADD, {type_of(TN_F32, {2, 3}), type_of(TN_F32, {2})});
  expect_refusal(r, TN_E_SHAPE, error_id(kShape, 1), "f32[2,3]");
  expect_refusal(r, TN_E_SHAPE, error_id(kShape, 1), "axis -1 is 2 against 3");
}

TEST(Elementwise, refuses_types_that_differ_or_do_not_fit) {
  expect_refusal(infer(TN_OPID_ADD, {type_of(TN_F32, {3}), type_of(TN_I32, {3})}), TN_E_DTYPE, error_id(kDtype, 1), "i32[3]");
  expect_refusal(infer(TN_OPID_SQRT, {type_of(TN_I32, {3})}), TN_E_DTYPE, error_id(kDtype, 3), "i32");
  expect_refusal(infer(TN_OPID_WHERE, {type_of(TN_F32, {3}), type_of(TN_F32, {3}), type_of(TN_F32, {3})}), TN_E_DTYPE,
                 error_id(kDtype, 4), "f32[3]");
  expect_refusal(infer(TN_OPID_ADD, {tn_type{}, tn_type{}}), TN_E_ARG, error_id(kArg, 3), "absent");
}

TEST(Reductions, drop_or_keep_the_axes) {
  const tn_type x = type_of(TN_F32, {2, 3, 4});
  EXPECT_EQ(dims(infer(TN_OPID_SUM, {x}).type), Ints{});
  EXPECT_EQ(dims(infer(TN_OPID_SUM, {x}, {Attr::ints(TN_KEY_AXES, {-1, 0})}).type), Ints{3});
  EXPECT_EQ(dims(infer(TN_OPID_SUM, {x}, {Attr::ints(TN_KEY_AXES, {1}), Attr::i64(TN_KEY_KEEPDIMS, 1)}).type), (Ints{2, 1, 4}));
  EXPECT_EQ(dims(infer(TN_OPID_SUM, {x}, {Attr::ints(TN_KEY_AXES, {})}).type), (Ints{2, 3, 4}));
  EXPECT_EQ(infer(TN_OPID_ARGMAX, {x}).type.dtype, TN_I64);
}

TEST(Reductions, refuse_bad_axes_and_what_has_no_value) {
  const tn_type x = type_of(TN_F32, {2, 0}), i = type_of(TN_I32, {2, 0});
  expect_refusal(infer(TN_OPID_SUM, {x}, {Attr::ints(TN_KEY_AXES, {2})}), TN_E_SHAPE, error_id(kShape, 5), "axis 2");
  expect_refusal(infer(TN_OPID_SUM, {x}, {Attr::ints(TN_KEY_AXES, {1, -1})}), TN_E_SHAPE, error_id(kShape, 6), "axis 1");
  expect_refusal(infer(TN_OPID_ARGMAX, {x}), TN_E_SHAPE, error_id(kShape, 10), "f32[2,0]");
  expect_refusal(infer(TN_OPID_MEAN, {i}), TN_E_SHAPE, error_id(kShape, 21), "i32[2,0]");
}

TEST(Reshape, is_a_view_where_strides_admit_one) {
  const Inferred a = infer(TN_OPID_RESHAPE, {type_of(TN_F32, {4, 6}, {12, 2})}, {Attr::ints(TN_KEY_DIMS, {2, 2, 6})});
  EXPECT_EQ(a.view, TN_OK);
  EXPECT_EQ(strides(a.type), (Ints{24, 12, 2}));
  const Inferred b = infer(TN_OPID_RESHAPE, {type_of(TN_F32, {3, 2}, {1, 3})}, {Attr::ints(TN_KEY_DIMS, {6})});
  EXPECT_EQ(b.view, TN_E_UNSUPPORTED);
  EXPECT_EQ(strides(b.type), Ints{1}) << "then the copy's strides";
}

TEST(Reshape, works_out_one_open_size) {
  const tn_type x = type_of(TN_F32, {2, 3, 4});
  EXPECT_EQ(dims(infer(TN_OPID_RESHAPE, {x}, {Attr::ints(TN_KEY_DIMS, {-1, 6})}).type), (Ints{4, 6}));
  expect_refusal(infer(TN_OPID_RESHAPE, {x}, {Attr::ints(TN_KEY_DIMS, {-1, 5})}), TN_E_SHAPE, error_id(kShape, 11), "f32[2,3,4]");
  expect_refusal(infer(TN_OPID_RESHAPE, {x}, {Attr::ints(TN_KEY_DIMS, {-1, -1})}), TN_E_SHAPE, error_id(kShape, 12), "-1");
  expect_refusal(infer(TN_OPID_RESHAPE, {type_of(TN_F32, {0})}, {Attr::ints(TN_KEY_DIMS, {-1, 0})}), TN_E_SHAPE, error_id(kShape, 11), "f32[0]");
}

// Published results of NumPy's slicing of 0..9 and 0..19.
TEST(Slice, with_negative_steps_reads_backward) {
  const auto run = [](int64_t n, int64_t start, int64_t length, int64_t step) {
    Lab lab;
    std::vector<test::Real> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<test::Real>(i));
    const auto y = lab.call(TN_OPID_SLICE, {lab.value(TN_F64, {n}, x)},
                            {Attr::ints(TN_KEY_STARTS, {start}), Attr::ints(TN_KEY_DIMS, {length}), Attr::ints(TN_KEY_STEPS, {step})});
    return lab.read(y.at(0));
  };
  EXPECT_EQ(run(10, 9, 9, -1), (std::vector<test::Real>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(run(10, 9, 3, -3), (std::vector<test::Real>{9, 6, 3}));
  EXPECT_EQ(run(20, 19, 7, -3), (std::vector<test::Real>{19, 16, 13, 10, 7, 4, 1}));
  EXPECT_EQ(run(10, 0, 0, -1), std::vector<test::Real>{});
}

TEST(Views, refuse_what_lies_outside) {
  const tn_type x = type_of(TN_F32, {10});
  const auto slice = [&](int64_t start, int64_t length, int64_t step) {
    return infer(TN_OPID_SLICE, {x}, {Attr::ints(TN_KEY_STARTS, {start}), Attr::ints(TN_KEY_DIMS, {length}), Attr::ints(TN_KEY_STEPS, {step})});
  };
  expect_refusal(slice(8, 3, 1), TN_E_SHAPE, error_id(kShape, 16), "start 8");
  expect_refusal(slice(1, 3, -1), TN_E_SHAPE, error_id(kShape, 16), "step -1");
  expect_refusal(slice(0, 2, 0), TN_E_SHAPE, error_id(kShape, 16), "step 0");
  expect_refusal(infer(TN_OPID_PERMUTE, {x}, {Attr::ints(TN_KEY_PERM, {1})}), TN_E_SHAPE, error_id(kShape, 14), "f32[10]");
  expect_refusal(infer(TN_OPID_EXPAND, {x}, {Attr::ints(TN_KEY_DIMS, {5})}), TN_E_SHAPE, error_id(kShape, 15), "f32[5]");
  expect_refusal(infer(TN_OPID_FLIP, {x}, {Attr::ints(TN_KEY_AXES, {0, 0})}), TN_E_SHAPE, error_id(kShape, 5), "axis 0");
  expect_refusal(infer(TN_OPID_WINDOWS, {type_of(TN_F32, {2, 2})}, {Attr::ints(TN_KEY_KERNEL, {3, 3})}), TN_E_SHAPE, error_id(kShape, 19), "f32[2,2]");
}

TEST(Gradient, of_a_row_maximum_is_shared_by_its_ties) {
  Lab lab;
  const uint32_t x = lab.value(TN_F64, {3}, {1, 3, 3});
  const auto y = lab.call(TN_OPID_MAX, {x});
  const auto g = lab.gradient(y, {lab.value(TN_F64, {}, {1})}, {x});
  EXPECT_EQ(lab.read(g[0]), (std::vector<test::Real>{0, 0.5L, 0.5L}));
}

TEST(Gradient, of_a_product_is_exact_with_zeros) {
  const auto gradient = [](std::vector<test::Real> values) {
    Lab lab;
    const uint32_t x = lab.value(TN_F64, {3}, values);
    const auto g = lab.gradient(lab.call(TN_OPID_PROD, {x}), {lab.value(TN_F64, {}, {1})}, {x});
    return lab.read(g.at(0));
  };
  EXPECT_EQ(gradient({2, 3, 5}), (std::vector<test::Real>{15, 10, 6}));
  EXPECT_EQ(gradient({2, 0, 5}), (std::vector<test::Real>{0, 10, 0}));
  EXPECT_EQ(gradient({0, 0, 5}), (std::vector<test::Real>{0, 0, 0}));
}

TEST(Gradient, of_relu_at_zero_is_zero_and_of_clamp_at_its_bounds_one) {
  Lab lab;
  const uint32_t x = lab.value(TN_F64, {3}, {-1, 0, 2}), one = lab.value(TN_F64, {3}, {1, 1, 1});
  EXPECT_EQ(lab.read(lab.gradient(lab.call(TN_OPID_RELU, {x}), {one}, {x})[0]), (std::vector<test::Real>{0, 0, 1}));
  Lab other;
  const uint32_t y = other.value(TN_F64, {3}, {-1, 0, 2}), seed = other.value(TN_F64, {3}, {1, 1, 1});
  const auto c = other.call(TN_OPID_CLAMP, {y}, {}, {literal(0, TN_F64), literal(2, TN_F64)});
  EXPECT_EQ(other.read(other.gradient(c, {seed}, {y})[0]), (std::vector<test::Real>{0, 1, 1}));
}

TEST(LogSumExp, of_infinities_is_what_the_sum_is) {
  const test::Real inf = HUGE_VALL;
  const auto value = [](std::vector<test::Real> x) {
    Lab lab;
    return lab.read(lab.call(TN_OPID_LOGSUMEXP, {lab.value(TN_F64, {2}, x)})[0])[0];
  };
  EXPECT_EQ(value({-inf, -inf}), -inf);
  EXPECT_EQ(value({inf, 1}), inf);
  EXPECT_NEAR(static_cast<double>(value({1000, 1000})), 1000 + std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace tenon::ops
