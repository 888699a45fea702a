// gather and scatter on an OpenCL device: index types, negative and outside indices, broadcasting, modes, duplicates, low limits.
#include <cmath>

#include "tests/gpu_prims/case.h"

namespace tenon::test {
namespace {

class Index : public testing::Test {
 protected:
  void SetUp() override {
    if (ClMachine::get() == nullptr) GTEST_SKIP() << "no OpenCL device";
    as_processor = ClMachine::get()->caps(), as_gpu = as_processor;
    as_gpu.device_class = gpu::DeviceClass::Gpu, as_gpu.compute_units = 4;
    all = {as_processor, as_gpu, lowered(as_gpu), lowered(as_processor)};
  }
  gpu::Caps as_processor, as_gpu;
  std::vector<gpu::Caps> all;
  std::mt19937 g{13};

  Operand indices(uint32_t dtype, const Dims& dims, int64_t size, Layout layout) {
    Operand o = make_operand(dtype, dims, layout, 1);
    fill_random(&o, g, static_cast<double>(-size), static_cast<double>(size));
    return o;
  }
  Layout layout() { return std::vector<Layout>{Layout::Dense, Layout::Transposed, Layout::Reversed, Layout::Spread}[g() % 4]; }
};

void check(Case& c, const char* row, const gpu::Caps& caps, uint32_t n_in, double ulps = 0, double scale = 0) {
  std::vector<Operand> got;
  const auto word = c.run(row, caps, &got);
  ASSERT_TRUE(word.has_value()) << c.refusal;
  EXPECT_EQ(*word, 0u);
  expect_same(c, c.reference(), got, n_in, ulps, scale);
}

TEST_F(Index, gather_of_every_element_size_along_any_axis) {
  for (int round = 0; round < 120; ++round) {
    const int rank = static_cast<int>(g() % 3) + 1, axis = static_cast<int>(g() % static_cast<unsigned>(rank));
    Dims data, index, out;
    for (int d = 0; d < rank; ++d) {
      data.push_back(static_cast<int64_t>(g() % 30 + 1));
      index.push_back(d == axis ? static_cast<int64_t>(g() % 40) : g() % 2 ? 1 : data.back());
      out.push_back(d == axis ? index.back() : data.back());
    }
    const uint32_t dtype = std::vector<uint32_t>{TN_BOOL, TN_I16, TN_F32, TN_F64, TN_I64, TN_F16, TN_C128}[g() % 7], idx = g() % 2 ? TN_I32 : TN_I64;
    SCOPED_TRACE(testing::Message() << "round " << round << testing::PrintToString(data) << testing::PrintToString(index) << " axis " << axis << " dtype " << dtype);
    Case c(TN_OPID_GATHER, 2);
    Operand x = make_operand(dtype, data, layout(), 2);
    for (unsigned char& b : x.bytes) b = static_cast<unsigned char>(g());
    c.operand = {x, indices(idx, index, data[static_cast<size_t>(axis)], layout()), make_operand(dtype, out, Layout::Dense, 1)};
    c.attr_int(TN_KEY_AXIS, axis);
    check(c, "gather", all[g() % 4], 2);
  }
}

TEST_F(Index, gather_from_a_table_larger_than_a_binding) {
  for (const gpu::Caps& caps : all) {
    Case c(TN_OPID_GATHER, 2);
    Operand x = make_operand(TN_F32, {3000, 70}, Layout::Dense);
    fill_random(&x, g, -1, 1);
    c.operand = {x, indices(TN_I64, {500, 1}, 3000, Layout::Dense), make_operand(TN_F32, {500, 70}, Layout::Dense)};
    c.attr_int(TN_KEY_AXIS, 0);
    check(c, "gather", caps, 2);
  }
}

TEST_F(Index, an_index_outside_is_reported) {
  for (const char* row : {"gather", "scatter"})
    for (double bad : {-6.0, 5.0, 1e9}) {
      const bool gather = std::string(row) == "gather";
      Case c(gather ? TN_OPID_GATHER : TN_OPID_SCATTER, gather ? 2 : 3);
      Operand index = make_operand(TN_I32, {12}, Layout::Dense);
      set(&index, {9}, bad);
      c.operand = {make_operand(TN_F32, {5}, Layout::Dense), index};
      c.operand.push_back(make_operand(TN_F32, {12}, Layout::Dense));
      if (!gather) c.operand.push_back(make_operand(TN_F32, {5}, Layout::Dense));
      c.attr_int(TN_KEY_AXIS, 0);
      for (const gpu::Caps& caps : all) {
        std::vector<Operand> got;
        EXPECT_EQ(c.run(row, caps, &got).value_or(99), uint32_t{gpu::kFailIndex});
      }
    }
}

TEST_F(Index, gather_from_an_empty_axis_reports) {
  Case c(TN_OPID_GATHER, 2);
  c.operand = {make_operand(TN_F32, {0}, Layout::Dense), make_operand(TN_I32, {3}, Layout::Dense), make_operand(TN_F32, {3}, Layout::Dense)};
  c.attr_int(TN_KEY_AXIS, 0);
  std::vector<Operand> got;
  EXPECT_EQ(c.run("gather", as_gpu, &got).value_or(99), uint32_t{gpu::kFailIndex});
}

TEST_F(Index, scatter_in_every_mode_applies_duplicates_in_order) {
  const uint32_t types[] = {TN_BOOL, TN_U8, TN_I8, TN_I16, TN_I32, TN_U32, TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};
  for (int round = 0; round < 250; ++round) {
    const int rank = static_cast<int>(g() % 3) + 1, axis = static_cast<int>(g() % static_cast<unsigned>(rank));
    Dims data, index, updates;
    for (int d = 0; d < rank; ++d) {
      data.push_back(static_cast<int64_t>(g() % 12 + 1));
      index.push_back(d == axis ? static_cast<int64_t>(g() % 4 == 0 ? g() % 9 : g() % 90) : g() % 2 ? 1 : data.back());
      updates.push_back(d == axis ? index.back() : data.back());
    }
    const int64_t mode = static_cast<int64_t>(g() % 5);
    const uint32_t dtype = types[g() % std::size(types)];
    SCOPED_TRACE(testing::Message() << "round " << round << " mode " << mode << " dtype " << dtype << testing::PrintToString(data) << testing::PrintToString(index) << " axis " << axis);
    Case c(TN_OPID_SCATTER, 3);
    Operand x = make_operand(dtype, data, layout(), 2), u = make_operand(dtype, updates, layout(), 1);
    fill_random(&x, g, dtype == TN_BOOL ? 0 : dtype == TN_U8 || dtype == TN_U32 ? 0 : -2, dtype == TN_BOOL ? 1 : 2);
    fill_random(&u, g, dtype == TN_BOOL ? 0 : dtype == TN_U8 || dtype == TN_U32 ? 0 : -2, dtype == TN_BOOL ? 1 : 2);
    c.operand = {x, indices(g() % 2 ? TN_I32 : TN_I64, index, data[static_cast<size_t>(axis)], layout()), u, make_operand(dtype, data, Layout::Dense, 1)};
    c.attr_int(TN_KEY_AXIS, axis);
    c.attr_int(TN_KEY_MODE, mode);
    check(c, "scatter", all[g() % 4], 3);  // one order of application, so floats agree to the bit
  }
}

TEST_F(Index, scatter_larger_than_a_binding) {
  for (const gpu::Caps& caps : all)
    for (uint32_t dtype : {TN_F32, TN_F16}) {
      Case c(TN_OPID_SCATTER, 3);
      Operand x = make_operand(dtype, {1000, 40}, Layout::Dense), u = make_operand(dtype, {700, 40}, Layout::Dense);
      fill_random(&x, g, -1, 1), fill_random(&u, g, -1, 1);
      c.operand = {x, indices(TN_I64, {700, 1}, 1000, Layout::Dense), u, make_operand(dtype, {1000, 40}, Layout::Dense)};
      c.attr_int(TN_KEY_AXIS, 0);
      c.attr_int(TN_KEY_MODE, TN_SCATTER_ADD);
      check(c, "scatter", caps, 3);
    }
}

TEST_F(Index, adding_thousands_of_ones_in_f16_is_exact) {
  for (const gpu::Caps& caps : all) {
    Case c(TN_OPID_SCATTER, 3);
    Operand u = make_operand(TN_F16, {4096}, Layout::Dense);
    for_each_index(u, [&](const Dims& at) { set(&u, at, 1); });
    c.operand = {make_operand(TN_F16, {2}, Layout::Dense), make_operand(TN_I32, {4096}, Layout::Dense), u, make_operand(TN_F16, {2}, Layout::Dense)};
    c.attr_int(TN_KEY_AXIS, 0);
    c.attr_int(TN_KEY_MODE, TN_SCATTER_ADD);
    std::vector<Operand> got;
    ASSERT_EQ(c.run("scatter", caps, &got).value_or(99), 0u) << c.refusal;
    EXPECT_EQ(get(got[3], {0}), 4096);
  }
}

}  // namespace
}  // namespace tenon::test
