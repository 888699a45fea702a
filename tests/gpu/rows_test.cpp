// tests/gpu/rows_test.cpp - what the rows' data refuse, supports() refuses too, with words.
#include <gtest/gtest.h>
#include <tenon/ops.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "ops/gpu/diag.h"
#include "ops/gpu/recipe.h"

namespace tenon::gpu {
namespace {

Caps processor() {
  Caps caps;
  caps.storage = caps.arithmetic = ~uint64_t{0};
  caps.device_class = DeviceClass::Processor;
  return caps;
}

uint32_t row_named(std::string_view name) {
  for (uint32_t row = 0; row < row_count(); ++row)
    if (name == row_info(row).name) return row;
  ADD_FAILURE() << name << " is no row";
  return 0;
}

struct Product {
  tn_type type[3]{};
  tn_op op{};
  explicit Product(uint8_t dtype) {
    const int64_t dims[3][2] = {{16, 8}, {8, 16}, {16, 16}};
    for (int k = 0; k < 3; ++k) {
      type[k].dtype = dtype, type[k].rank = 2, type[k].layout = TN_LAYOUT_STRIDED;
      type[k].dim[0] = dims[k][0], type[k].dim[1] = dims[k][1];
      type[k].stride[0] = dims[k][1], type[k].stride[1] = 1;
    }
    op.op_id = TN_OPID_MATMUL, op.type = type, op.n_in = 2, op.n_out = 1;
  }
};

TEST(GpuRows, supports_takes_what_the_constraints_take) {
  tn_diag diag{};
  EXPECT_EQ(row_supports(row_named("matmul.block"), processor(), Product(TN_F32).op, nullptr, &diag), TN_OK) << diag.msg;
}

TEST(GpuRows, supports_refuses_a_type_that_the_constraints_refuse) {
  tn_diag diag{};
  EXPECT_EQ(row_supports(row_named("matmul.block"), processor(), Product(TN_F64).op, nullptr, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("it is f64, the row takes"), std::string::npos) << diag.msg;
}

TEST(GpuRows, supports_refuses_what_a_device_can_never_run) {
  Caps gpu = processor();
  gpu.device_class = DeviceClass::Gpu;
  ASSERT_TRUE(row_constraints(row_named("matmul.block"), gpu).empty());
  tn_diag diag{};
  EXPECT_EQ(row_supports(row_named("matmul.block"), gpu, Product(TN_F32).op, nullptr, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("the device cannot run this row"), std::string::npos) << diag.msg;
}

TEST(GpuRows, refusals_have_their_id_and_agree_with_the_golden_text) {
  tn_diag refused{}, bad{};
  row_supports(row_named("matmul.block"), processor(), Product(TN_F64).op, nullptr, &refused);
  KernelSpec spec;
  spec.name = "gather";
  const uint32_t word[4] = {kFailIndex, 7, 3, 5};
  describe_failure(spec, word, &bad);
  const std::string text = "[TN-DEVICE-072]\nwhat: " + std::string(refused.msg) + "\n\n[TN-DEVICE-073]\nwhat: " + bad.msg + "\n\n";
  EXPECT_EQ(refused.id, kErrNotTaken);
  EXPECT_EQ(bad.id, kErrKernelFailed);
  const char* path = TENON_GOLDEN_DIR "/TN-DEVICE-texts.txt";
  if (std::getenv("TENON_GOLDEN_UPDATE") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST(GpuRows, supports_refuses_a_layout_that_the_constraints_refuse) {
  Product p(TN_F32);
  p.type[1].layout = TN_LAYOUT_OPAQUE;
  tn_diag diag{};
  EXPECT_EQ(row_supports(row_named("matmul.block"), processor(), p.op, nullptr, &diag), TN_E_UNSUPPORTED);
  EXPECT_NE(std::string(diag.msg).find("operand 1 is packed"), std::string::npos) << diag.msg;
}

}  // namespace
}  // namespace tenon::gpu
