// Shape rules, their messages and attribute defaults.
#include <gtest/gtest.h>

#include <set>

#include "tests/ops_nn/case_run.h"

namespace tenon::ops::test {
namespace {

std::string message(const Call& call, const std::vector<tn_type>& in, tn_status expected, uint32_t id) {
  tn_diag d{};
  EXPECT_EQ(infer_only(call, in, nullptr, &d), expected);
  EXPECT_EQ(d.id, id) << d.msg;
  return d.msg;
}

tn_type f32(const std::vector<int64_t>& dims) { return make_type(TN_F32, dims); }

TEST(Matmul, rejects_inner_dimensions_that_differ) {
  const std::string text = message({TN_OPID_MATMUL, {}, {}}, {f32({128, 256}), f32({512, 64})}, TN_E_SHAPE, error_id(kShape, 50));
  EXPECT_EQ(text, "matmul: inner dimensions differ\nwhy: a is f32[128,256], b is f32[512,64]; a[-1]=256 must equal b[-2]=512\n"
                  "try: reshape b, or transpose an operand");
}
TEST(Matmul, proposes_a_transpose_where_it_helps) {
  const std::string text = message({TN_OPID_MATMUL, {}, {}}, {f32({2, 3}), f32({4, 3})}, TN_E_SHAPE, error_id(kShape, 50));
  EXPECT_NE(text.find("try: transpose b"), std::string::npos);
}
TEST(Matmul, rejects_rank_one) { message({TN_OPID_MATMUL, {}, {}}, {f32({3}), f32({3, 2})}, TN_E_SHAPE, error_id(kShape, 51)); }
TEST(Matmul, rejects_batches_that_do_not_broadcast) {
  message({TN_OPID_MATMUL, {}, {}}, {f32({2, 3, 4}), f32({3, 4, 5})}, TN_E_SHAPE, error_id(kShape, 52));
}
TEST(Matmul, rejects_mixed_types) {
  message({TN_OPID_MATMUL, {}, {}}, {f32({3, 4}), make_type(TN_F64, {4, 5})}, TN_E_DTYPE, error_id(kDtype, 50));
}
TEST(Matmul, of_bytes_gives_i32) {
  std::vector<tn_type> out;
  tn_diag d{};
  ASSERT_EQ(infer_only({TN_OPID_MATMUL, {}, {}}, {make_type(TN_U8, {3, 4}), make_type(TN_I8, {4, 5})}, &out, &d), TN_OK) << d.msg;
  EXPECT_EQ(type_text(out[0]), "i32[3,5]");
}
TEST(Gather, rejects_an_index_of_another_rank) {
  message({TN_OPID_GATHER, {Attr::i64(TN_KEY_AXIS, 0)}, {}}, {f32({3, 4}), make_type(TN_I64, {3})}, TN_E_SHAPE, error_id(kShape, 53));
}
TEST(Gather, rejects_a_float_index) {
  message({TN_OPID_GATHER, {Attr::i64(TN_KEY_AXIS, 0)}, {}}, {f32({3}), f32({3})}, TN_E_DTYPE, error_id(kDtype, 51));
}
TEST(Pad, rejects_a_crop_of_more_than_there_is) {
  message({TN_OPID_PAD, {Attr::ints(TN_KEY_LO, {-4}), Attr::ints(TN_KEY_HI, {0})}, {literal(0, TN_F32)}}, {f32({3})}, TN_E_SHAPE, error_id(kShape, 56));
}
TEST(Pad, rejects_lists_of_the_wrong_length) {
  message({TN_OPID_PAD, {Attr::ints(TN_KEY_LO, {1, 1}), Attr::ints(TN_KEY_HI, {0})}, {literal(0, TN_F32)}}, {f32({3})}, TN_E_SHAPE, error_id(kShape, 55));
}
TEST(Concat, names_the_input_that_does_not_fit) {
  const std::string text = message({TN_OPID_CONCAT, {Attr::i64(TN_KEY_AXIS, 1)}, {}}, {f32({2, 3}), f32({4, 3})}, TN_E_SHAPE, error_id(kShape, 57));
  EXPECT_NE(text.find("input 0 is f32[2,3], input 1 is f32[4,3]"), std::string::npos) << text;
}
TEST(Softmax, rejects_an_axis_outside) {
  message({TN_OPID_SOFTMAX, {Attr::i64(TN_KEY_AXIS, 2)}, {}}, {f32({2, 3})}, TN_E_SHAPE, error_id(kShape, 54));
}
TEST(Softmax, rejects_integers) { message({TN_OPID_SOFTMAX, {}, {}}, {make_type(TN_I32, {2, 3})}, TN_E_DTYPE, error_id(kDtype, 52)); }
TEST(CrossEntropy, rejects_rows_that_differ) {
  message({TN_OPID_CROSS_ENTROPY, {}, {}}, {f32({4, 10}), make_type(TN_I64, {5})}, TN_E_SHAPE, error_id(kShape, 63));
}
TEST(Conv2d, rejects_channels_that_do_not_fit) {
  message({TN_OPID_CONV2D, {}, {}}, {f32({1, 3, 8, 8}), f32({4, 2, 3, 3}), tn_type{}}, TN_E_SHAPE, error_id(kShape, 60));
}
TEST(Conv2d, rejects_a_window_larger_than_the_padded_input) {
  const std::string text = message({TN_OPID_CONV2D, {}, {}}, {f32({1, 3, 2, 8}), f32({4, 3, 3, 3}), tn_type{}}, TN_E_SHAPE, error_id(kShape, 61));
  EXPECT_NE(text.find("along H the window reaches over 3, the padded input has 2"), std::string::npos) << text;
}
TEST(Conv2d, rejects_a_stride_of_zero) {
  message({TN_OPID_CONV2D, {Attr::ints(TN_KEY_STRIDES, {1, 0})}, {}}, {f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), tn_type{}}, TN_E_ARG, error_id(kShape, 66));
}
TEST(Conv2d, rejects_a_bias_of_another_size) {
  message({TN_OPID_CONV2D, {}, {}}, {f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), f32({3})}, TN_E_SHAPE, error_id(kShape, 64));
}
TEST(Conv2d, keeps_channels_last) {
  std::vector<tn_type> out;
  tn_diag d{};
  ASSERT_EQ(infer_only({TN_OPID_CONV2D, {}, {}}, {channels_last_type(TN_F32, {2, 3, 8, 8}), f32({4, 3, 3, 3}), tn_type{}}, &out, &d), TN_OK) << d.msg;
  const tn_type expected = channels_last_type(TN_F32, {2, 4, 6, 6});
  EXPECT_TRUE(std::equal(out[0].stride, out[0].stride + 4, expected.stride));
}
TEST(Linear, rejects_features_that_differ) {
  message({TN_OPID_LINEAR, {}, {}}, {f32({8, 16}), f32({16, 4}), tn_type{}}, TN_E_SHAPE, error_id(kShape, 67));
}
TEST(AdamStep, rejects_a_state_of_another_shape) {
  message({TN_OPID_ADAM_STEP, {}, std::vector<tn_push>(8), 3}, {f32({4}), f32({4}), f32({5}), f32({4})}, TN_E_SHAPE, error_id(kShape, 64));
}
TEST(SgdStep, without_a_buffer_has_an_absent_second_output) {
  std::vector<tn_type> out;
  tn_diag d{};
  ASSERT_EQ(infer_only({TN_OPID_SGD_STEP, {}, std::vector<tn_push>(5), 2}, {f32({4}), f32({4}), tn_type{}}, &out, &d), TN_OK);
  EXPECT_EQ(out[1].dtype, 0);
}

TEST(Declarations, are_complete) {
  for (uint64_t id : own_ops()) {
    const OpDecl* decl = find_op(id);
    ASSERT_NE(decl, nullptr) << id;
    SCOPED_TRACE(decl->def.name);
    EXPECT_TRUE(decl->def.infer && decl->def.cost && decl->cases);
    EXPECT_TRUE(decl->summary && decl->formula && decl->semantics && decl->example);
    EXPECT_TRUE(decl->def.expand || id <= TN_OPID_SCATTER);
    const std::vector<Case> cases = decl->cases();
    EXPECT_GE(cases.size(), 20u);
    for (uint32_t i = 1; i < decl->def.n_attr_defs; ++i) EXPECT_NE(decl->def.attr_defs[i].key, decl->def.attr_defs[i - 1].key);
  }
}

TEST(Declarations, cases_all_pass_infer_in_every_type) {
  for (uint64_t id : own_ops()) {
    const OpDecl& decl = *find_op(id);
    for (uint32_t dtype = 1; dtype < 64; ++dtype) {
      if ((decl.dtypes >> dtype & 1) == 0) continue;
      size_t number = 0;
      for (const Case& c : decl.cases()) {
        const CaseCall call = make_call(decl, c);
        std::vector<tn_type> types;
        for (size_t i = 0; i < c.in.size(); ++i)
          types.push_back(c.in[i].absent ? tn_type{} : make_type(c.in[i].dtype != 0 ? c.in[i].dtype : dtype, c.in[i].dims));
        tn_diag d{};
        EXPECT_EQ(infer_only(call.call, types, nullptr, &d), TN_OK) << decl.def.name << " " << dtype_name(dtype) << " case " << number << ": " << d.msg;
        ++number;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::ops::test
