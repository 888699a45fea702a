// Launches: parameters, bindings, order, many of them.
#include <cstring>

#include "tests/vulkan/fixture.h"

namespace tenon::vulkan::test {
namespace {

class Dispatch : public VulkanTest {};

void expect_affine(const std::vector<uint32_t>& y, uint32_t n, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], i < n ? i * a + b : i) << i;
}
std::vector<uint32_t> counting(size_t n) {
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint32_t>(i);
  return v;
}

TEST_F(Dispatch, passes_parameters_as_push_constants_and_in_a_buffer_alike) {
  for (const bool in_buffer : {false, true}) {
    const auto k = kernel(affine_spec(), affine_text(in_buffer), {gpu::Dialect::Glsl, in_buffer});
    ASSERT_NE(k, nullptr);
    std::vector<uint32_t> y = counting(1000);
    const auto m = alloc(4000);
    auto s = stream();
    put(*s, m, y.data(), 4000);
    launch_affine(*s, *k, m, {777, 3, 5, 0});
    std::fill(y.begin(), y.end(), 0);
    get(*s, y.data(), m, 4000);
    finish(*s);
    expect_affine(y, 777, 3, 5);
    device().free(m.handle);
  }
}

TEST_F(Dispatch, runs_thousands_in_order) {
  const auto k = kernel(affine_spec(), affine_text(false));
  const auto m = alloc(256);
  auto s = stream();
  std::vector<uint32_t> y(64, 1);
  put(*s, m, y.data(), 256);
  uint32_t expected = 1;
  for (uint32_t i = 0; i < 5000; ++i) {
    launch_affine(*s, *k, m, {64, 3, i, 0});
    expected = expected * 3 + i;
  }
  get(*s, y.data(), m, 256);
  finish(*s);
  for (const uint32_t v : y) ASSERT_EQ(v, expected);
  device().free(m.handle);
}

TEST_F(Dispatch, runs_thousands_with_parameters_in_buffers_and_a_fence_after_each) {
  const auto k = kernel(affine_spec(), affine_text(true), {gpu::Dialect::Glsl, true});
  const auto m = alloc(256);
  auto s = stream();
  std::vector<uint32_t> y(64, 1);
  put(*s, m, y.data(), 256);
  uint32_t expected = 1;
  std::shared_ptr<gpu::Fence> fence;
  for (uint32_t i = 0; i < 1000; ++i) {
    launch_affine(*s, *k, m, {64, 3, i, 0});
    expected = expected * 3 + i;
    ASSERT_EQ(s->fence(&fence, nullptr), TN_OK);
  }
  get(*s, y.data(), m, 256);
  finish(*s);
  for (const uint32_t v : y) ASSERT_EQ(v, expected);
  device().free(m.handle);
}

TEST_F(Dispatch, binds_from_an_aligned_offset_and_leaves_the_rest_alone) {
  const auto k = kernel(affine_spec(), affine_text(false));
  const uint64_t align = device().caps().binding_align;
  std::vector<uint32_t> y = counting(1000), back(1000);
  const auto m = alloc(4000);
  auto s = stream();
  put(*s, m, y.data(), 4000);
  const gpu::Binding binding{m.handle, align, 40};
  const AffineParams params{10, 2, 1, 0};
  gpu::Dispatch d;
  d.kernel = k.get(), d.bindings = &binding, d.n_bindings = 1, d.params = &params, d.param_bytes = sizeof params;
  ASSERT_EQ(s->dispatch(d, nullptr), TN_OK);
  get(*s, back.data(), m, 4000);
  finish(*s);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(back[i], i >= align / 4 && i < align / 4 + 10 ? i * 2 + 1 : i);
  device().free(m.handle);
}

TEST_F(Dispatch, puts_the_error_word_after_the_parameter_buffer) {
  gpu::KernelSpec spec = affine_spec();
  spec.can_fail = true;
  const std::string text =
      "#version 450\nlayout(local_size_x = 64) in;\nlayout(std430, set = 0, binding = 0) buffer Y { uint y[]; };\n"
      "layout(std430, set = 0, binding = 1) readonly buffer P { uint n, a, b; };\nlayout(std430, set = 0, binding = 2) buffer E { uint e[4]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; if (i < n && y[i] == a) if (atomicCompSwap(e[0], 0u, 1u) == 0u) { e[1] = i; e[2] = b; } }\n";
  const auto k = kernel(spec, text, {gpu::Dialect::Glsl, true});
  const auto m = alloc(400), error = alloc(16);
  auto s = stream();
  const std::vector<uint32_t> y = counting(100);
  put(*s, m, y.data(), 400);
  ASSERT_EQ(s->fill_zero(error.handle, 0, 16, nullptr), TN_OK);
  const gpu::Binding bindings[2] = {{m.handle, 0, 400}, {error.handle, 0, 16}};
  const AffineParams params{100, 42, 9, 0};
  gpu::Dispatch d;
  d.kernel = k.get(), d.bindings = bindings, d.n_bindings = 2, d.params = &params, d.param_bytes = sizeof params;
  d.groups[0] = 2;
  ASSERT_EQ(s->dispatch(d, nullptr), TN_OK);
  uint32_t word[4] = {7, 7, 7, 7};
  get(*s, word, error, 16);
  finish(*s);
  EXPECT_EQ(word[0], 1u);
  EXPECT_EQ(word[1], 42u);
  EXPECT_EQ(word[2], 9u);
  EXPECT_EQ(word[3], 0u);
  device().free(m.handle), device().free(error.handle);
}

TEST_F(Dispatch, takes_operands_of_no_bytes) {
  gpu::KernelSpec spec = affine_spec();
  spec.buffers.push_back({"x", TN_U32, false});
  spec.scalars.clear();
  const auto k = kernel(spec, "#version 450\nlayout(local_size_x = 1) in;\nlayout(std430, set = 0, binding = 0) buffer Y { uint y[]; };\n"
                              "layout(std430, set = 0, binding = 1) readonly buffer X { uint x[]; };\nvoid main() { y[0] = 4u; if (y[0] == 5u) y[0] = x[0]; }\n");
  const auto m = alloc(4), none = alloc(0);
  auto s = stream();
  const gpu::Binding bindings[2] = {{m.handle, 0, 4}, {none.handle, 0, 0}};
  gpu::Dispatch d;
  d.kernel = k.get(), d.bindings = bindings, d.n_bindings = 2;
  tn_diag diag{};
  ASSERT_EQ(s->dispatch(d, &diag), TN_OK) << diag.msg;
  uint32_t y = 0;
  get(*s, &y, m, 4);
  finish(*s);
  EXPECT_EQ(y, 4u);
  device().free(m.handle), device().free(none.handle);
}

TEST_F(Dispatch, refuses_what_does_not_fit_the_kernel_with_both_numbers) {
  const auto k = kernel(affine_spec(), affine_text(false));
  const auto m = alloc(256);
  auto s = stream();
  const AffineParams params{64, 1, 0, 0};
  const gpu::Binding good{m.handle, 0, 256}, outside{m.handle, 0, 260};
  gpu::Dispatch d;
  d.kernel = k.get(), d.bindings = &good, d.n_bindings = 0, d.params = &params, d.param_bytes = sizeof params;
  tn_diag diag{};
  EXPECT_EQ(s->dispatch(d, &diag), TN_E_ARG);
  EXPECT_NE(std::string(diag.msg).find("0 bindings and 16 parameter bytes given, 1 and 16 needed"), std::string::npos) << diag.msg;
  d.bindings = &outside, d.n_bindings = 1;
  EXPECT_EQ(s->dispatch(d, &diag), TN_E_ARG);
  d.bindings = &good, d.groups[1] = static_cast<uint32_t>(device().caps().max_groups[1] + 1);
  EXPECT_EQ(s->dispatch(d, &diag), TN_E_LIMIT);
  d.groups[1] = 0;  // nothing to do is no fault
  EXPECT_EQ(s->dispatch(d, &diag), TN_OK);
  finish(*s);
  device().free(m.handle);
}

}  // namespace
}  // namespace tenon::vulkan::test
