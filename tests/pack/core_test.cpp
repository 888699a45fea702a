// What the core promises about packed operands, with kernels made by hand.
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/pack/reversed.h"

namespace tenon::test {
namespace {

using Dims = std::vector<int64_t>;

class PackedOperand : public ::testing::Test {
 protected:
  void SetUp() override { reset_reversed(); }
  void TearDown() override {
    for (tn_tensor* t : tensors) tn_tensor_release(t);
    if (rt) { EXPECT_EQ(tn_runtime_destroy(rt, TN_FOREVER, clear()), TN_OK) << d.msg; }
  }

  // A runtime with the linked reference plugin, the first n of the hand-made ones, and plugin files if asked.
  void boot(int n, bool files = false) {
    tn_runtime_options o{};
    o.size = sizeof o;
    o.flags = files ? 0u : uint32_t{TN_RT_NO_SEARCH};
    ASSERT_EQ(tn_runtime_create(&o, &rt, clear()), TN_OK) << d.msg;
    for (int i = 0; i < n; ++i) ASSERT_EQ(link(i), TN_OK) << d.msg;
    ASSERT_EQ(tn_device_find(rt, "cpu:0", TN_POLICY_REQUIRE, &cpu, clear()), TN_OK) << d.msg;
    ASSERT_EQ(tn_queue_get(rt, cpu, &queue, clear()), TN_OK) << d.msg;
  }
  tn_status link(int i) {
    uint32_t index = 0;
    return tn_plugin_link(rt, ("test.reversed" + std::to_string(i)).c_str(), reversed_query(i), &index, clear());
  }
  tn_diag* clear() {
    d = {};
    d.size = sizeof d;
    return &d;
  }
  uint32_t op(const char* name) {
    uint32_t id = 0;
    EXPECT_EQ(tn_op_find(rt, name, 0, &id, clear()), TN_OK) << d.msg;
    return id;
  }
  static tn_type dense(const Dims& dims, uint32_t dtype = TN_F32, uint32_t layout = 0) {
    tn_type t{};
    t.dtype = static_cast<uint8_t>(dtype), t.rank = static_cast<uint8_t>(dims.size()), t.layout = static_cast<uint8_t>(layout), t.align_log2 = 6;
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 0; step *= dims[i]) t.dim[i] = dims[i], t.stride[i] = step;
    return t;
  }
  uint32_t intern(const tn_type& t) {
    uint32_t id = 0;
    EXPECT_EQ(tn_type_intern(rt, &t, &id, clear()), TN_OK) << d.msg;
    return id;
  }
  tn_tensor* keep(tn_tensor* t) { return tensors.push_back(t), t; }
  tn_tensor* tensor(const Dims& dims, float first = 1) {
    tn_tensor* t = nullptr;
    EXPECT_EQ(tn_tensor_create(queue, intern(dense(dims)), &t, clear()), TN_OK) << d.msg;
    std::vector<float> v;
    int64_t n = 1;
    for (int64_t x : dims) n *= x;
    for (int64_t i = 0; i < n; ++i) v.push_back(first + static_cast<float>(i % 7));
    EXPECT_EQ(tn_tensor_write(queue, t, v.data(), v.size() * 4, clear()), TN_OK) << d.msg;
    return keep(t);
  }
  std::vector<float> read(tn_tensor* t) {
    tn_type type;
    tn_tensor_describe(t, &type);
    int64_t n = 1;
    for (int i = 0; i < type.rank; ++i) n *= type.dim[i];
    std::vector<float> v(static_cast<size_t>(n));
    EXPECT_EQ(tn_tensor_read(queue, t, v.data(), v.size() * 4, clear()), TN_OK) << d.msg;
    return v;
  }
  tn_status call(const char* name, std::vector<tn_tensor*> in, tn_tensor** out, uint32_t attr = 0, tn_queue* on = nullptr, uint32_t flags = 0) {
    const tn_call_args a{op(name), attr, flags, 0, static_cast<uint32_t>(in.size()), 1, in.data(), out, nullptr};
    return tn_call(on ? on : queue, &a, clear());
  }
  tn_status pack(tn_tensor* b, tn_tensor** out, int64_t rows = 4, uint32_t operand = 1) {
    tn_type t;
    tn_tensor_describe(b, &t);
    const uint32_t in[2] = {intern(dense({rows, t.dim[0]})), intern(t)};
    const tn_spec spec{op("matmul"), 0, cpu, 0, 2, 0, in};
    return tn_tensor_pack(queue, &spec, operand, b, out, clear());
  }
  tn_tensor* packed(tn_tensor* b) {
    tn_tensor* p = nullptr;
    EXPECT_EQ(pack(b, &p), TN_OK) << d.msg;
    return keep(p);
  }
  std::vector<tn_candidate> why(const char* name, std::vector<uint32_t> types) {
    const tn_spec spec{op(name), 0, cpu, 0, static_cast<uint32_t>(types.size()), 0, types.data()};
    std::vector<tn_candidate> rows(64);
    uint32_t n = 0;
    EXPECT_EQ(tn_why(rt, &spec, rows.data(), sizeof rows[0], 64, &n, clear()), TN_OK) << d.msg;
    rows.resize(n);
    return rows;
  }
  static const tn_candidate* find(const std::vector<tn_candidate>& rows, const std::string& kernel) {
    for (const tn_candidate& r : rows)
      if (r.kernel == kernel) return &r;
    return nullptr;
  }
  // The four parts of an error: what, why, try, and its number.
  void expect_error(tn_status have, tn_status want, uint32_t number, const char* text, uint32_t family = 6) {
    EXPECT_EQ(have, want) << d.msg;
    EXPECT_EQ(d.id, family << 16 | number) << d.msg;
    EXPECT_NE(std::strstr(d.msg, text), nullptr) << d.msg;
    EXPECT_NE(std::strstr(d.msg, "\nwhy: "), nullptr) << d.msg;
    EXPECT_NE(std::strstr(d.msg, "\ntry: "), nullptr) << d.msg;
  }

  tn_diag d{};
  tn_runtime* rt = nullptr;
  uint32_t cpu = 0;
  tn_queue* queue = nullptr;
  std::vector<tn_tensor*> tensors;
};

TEST_F(PackedOperand, is_stored_once_and_serves_every_number_of_rows) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b);
  for (int64_t m : {1, 2, 4, 31}) {
    tn_tensor *a = tensor({m, 5}, 2), *plain = nullptr, *y = nullptr;
    ASSERT_EQ(call("matmul", {a, b}, &plain), TN_OK) << d.msg;
    ASSERT_EQ(call("matmul", {a, p}, &y), TN_OK) << d.msg;
    EXPECT_EQ(read(keep(y)), read(keep(plain)));
  }
  EXPECT_EQ(reversed(0).n_pack, 1);
  EXPECT_EQ(reversed(0).n_launch, 4);
}

TEST_F(PackedOperand, is_read_with_its_own_strides) {
  boot(1);
  tn_tensor *w = tensor({3, 5}), *t = nullptr, *y = nullptr, *plain = nullptr, *a = tensor({2, 5});
  tn_type type = dense({5, 3});
  type.stride[0] = 1, type.stride[1] = 5;
  ASSERT_EQ(tn_tensor_view(w, intern(type), 0, &t, clear()), TN_OK) << d.msg;
  keep(t);
  ASSERT_EQ(call("matmul", {a, packed(t)}, &y), TN_OK) << d.msg;
  ASSERT_EQ(call("matmul", {a, t}, &plain), TN_OK) << d.msg;
  EXPECT_EQ(read(keep(y)), read(keep(plain)));
}

TEST_F(PackedOperand, keeps_dtype_and_dims_and_names_its_layout) {
  boot(1);
  tn_tensor* p = packed(tensor({5, 3}));
  tn_type t;
  tn_tensor_describe(p, &t);
  EXPECT_EQ(t.dtype, TN_F32);
  EXPECT_EQ(t.dim[0], 5);
  EXPECT_EQ(t.dim[1], 3);
  EXPECT_GE(t.layout, TN_LAYOUT_OPAQUE);
  EXPECT_STREQ(tn_layout_name(rt, t.layout), "test.reversed");
  EXPECT_STREQ(tn_layout_name(rt, TN_LAYOUT_STRIDED), "strided");
  EXPECT_EQ(tn_layout_name(rt, 1), nullptr);
  EXPECT_EQ(tn_layout_name(rt, 255), nullptr);
  tn_tensor_info info{};
  info.size = sizeof info;
  tn_tensor_inspect(p, &info);
  EXPECT_EQ(info.host, nullptr);
  EXPECT_GE(info.storage_bytes, 5u * 3 * 4 + 8);
}

TEST_F(PackedOperand, one_layout_name_is_one_number_and_other_names_are_others) {
  reversed(1).layout = "test.other";
  reversed(2).layout = "test.reversed";
  boot(3);
  auto number = [&](const char* kernel) {
    EXPECT_EQ(tn_pin(rt, op("matmul"), cpu, kernel, clear()), TN_OK);
    tn_type t;
    tn_tensor_describe(packed(tensor({2, 2})), &t);
    return t.layout;
  };
  const int first = number("test.matmul.reversed0"), second = number("test.matmul.reversed1"), third = number("test.matmul.reversed2");
  EXPECT_EQ(first, third);
  EXPECT_NE(first, second);
}

TEST_F(PackedOperand, is_stored_as_the_fastest_kernel_wants_it) {
  reversed(0).layout = "test.slow", reversed(0).est_ns = 900;
  reversed(1).layout = "test.fast", reversed(1).est_ns = 5;
  boot(2);
  tn_type t;
  tn_tensor_describe(packed(tensor({4, 4})), &t);
  EXPECT_STREQ(tn_layout_name(rt, t.layout), "test.fast");
}

TEST_F(PackedOperand, falls_to_the_next_kernel_when_the_fastest_cannot_store_it) {
  reversed(0).layout = "test.fast", reversed(0).est_ns = 5, reversed(0).refuse_bytes = true;
  reversed(1).layout = "test.slow", reversed(1).est_ns = 900;
  boot(2);
  tn_type t;
  tn_tensor_describe(packed(tensor({4, 4})), &t);
  EXPECT_STREQ(tn_layout_name(rt, t.layout), "test.slow");
  EXPECT_EQ(reversed(0).n_bytes, 1);
  EXPECT_EQ(reversed(0).n_pack, 0);
}

TEST_F(PackedOperand, why_says_who_reads_what) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *a = tensor({4, 5});
  const auto plain = why("matmul", {tn_tensor_type(a), tn_tensor_type(b)});
  const tn_candidate* row = find(plain, "test.matmul.reversed0");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->why, TN_WHY_CONSTRAINT);
  EXPECT_STREQ(row->reason, "operand 1 is not stored as test.reversed (see tn_tensor_pack)");
  EXPECT_EQ(plain[0].why, TN_WHY_WON);
  const auto stored = why("matmul", {tn_tensor_type(a), tn_tensor_type(p)});
  EXPECT_STREQ(stored[0].kernel, "test.matmul.reversed0");
  EXPECT_EQ(stored[0].why, TN_WHY_WON);
  for (size_t i = 1; i < stored.size(); ++i) {
    if (stored[i].kind != TN_ROW_KERNEL) continue;
    EXPECT_STREQ(stored[i].reason, "operand 1 is stored as test.reversed, which this kernel does not read") << stored[i].kernel;
    EXPECT_EQ(stored[i].why, TN_WHY_CONSTRAINT);
  }
}

TEST_F(PackedOperand, cannot_be_read_written_copied_or_viewed) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *out = nullptr;
  std::vector<float> host(15);
  const char* what = "a packed tensor cannot be read, written, copied or viewed";
  expect_error(tn_tensor_read(queue, p, host.data(), 60, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_write(queue, p, host.data(), 60, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_copy(queue, p, b, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_copy(queue, b, p, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_view(p, tn_tensor_type(b), 0, &out, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_view(b, tn_tensor_type(p), 0, &out, clear()), TN_E_UNSUPPORTED, 130, what);
  expect_error(tn_tensor_create(queue, tn_tensor_type(p), &out, clear()), TN_E_UNSUPPORTED, 130, what);
  alignas(64) static float memory[64];
  expect_error(tn_tensor_from_host(rt, cpu, tn_tensor_type(p), memory, sizeof memory, nullptr, nullptr, &out, clear()), TN_E_UNSUPPORTED, 130, what);
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, has_no_view_ops) {
  boot(1);
  tn_tensor *p = packed(tensor({5, 3})), *out = nullptr;
  const int64_t perm[] = {1, 0};
  tn_attr a{};
  a.key = TN_KEY_PERM, a.type = TN_ATTR_I64S, a.v.p = perm, a.len = 2;
  uint32_t attr = 0;
  ASSERT_EQ(tn_attr_intern(rt, op("permute"), &a, 1, &attr, clear()), TN_OK) << d.msg;
  expect_error(call("permute", {p}, &out, attr), TN_E_UNSUPPORTED, 131, "permute: a packed tensor has no views");
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, is_refused_by_every_other_kernel_and_op) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *a = tensor({4, 5}), *out = nullptr;
  // A plan of the same class of shapes exists already: it must not serve a packed operand.
  ASSERT_EQ(call("add", {b, b}, &out), TN_OK) << d.msg;
  keep(std::exchange(out, nullptr));
  expect_error(call("add", {b, p}, &out), TN_E_UNSUPPORTED, 19, "operand 1 is stored as test.reversed");
  expect_error(call("add", {p, p}, &out), TN_E_UNSUPPORTED, 19, "stored as test.reversed");
  expect_error(call("neg", {p}, &out), TN_E_UNSUPPORTED, 19, "operand 0 is stored as test.reversed");
  expect_error(call("copy", {p}, &out), TN_E_UNSUPPORTED, 19, "nothing on cpu:0 takes copy");
  expect_error(call("linear", {a, p, nullptr}, &out), TN_E_SHAPE, 67, "features do not fit", 2);  // as for any [in, out] weight
  tn_tensor *square = tensor({5, 5}), *stored = packed(square);
  expect_error(call("linear", {a, stored, nullptr}, &out), TN_E_UNSUPPORTED, 131, "a packed tensor has no views");
  expect_error(call("matmul", {stored, square}, &out), TN_E_UNSUPPORTED, 19, "operand 0 is stored as test.reversed");
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, a_result_cannot_be_written_into_it) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *out = p;
  EXPECT_EQ(call("add", {b, b}, &out), TN_E_UNSUPPORTED);
  EXPECT_EQ(d.id, 6u << 16 | 130) << d.msg;
}

TEST_F(PackedOperand, has_no_derivative) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *a = tensor({4, 5}), *y = nullptr, *da = nullptr;
  ASSERT_EQ(call("matmul", {a, p}, &y), TN_OK) << d.msg;
  keep(y);
  tn_derive how{};
  how.size = sizeof how, how.rule = TN_RULE_VJP, how.seeds = 1, how.need = 1;
  uint32_t vjp = 0;
  ASSERT_EQ(tn_op_derive(rt, op("matmul"), &how, &vjp, clear()), TN_OK) << d.msg;
  tn_tensor* in[4] = {a, p, y, y};
  const tn_call_args args{vjp, 0, 0, 0, 4, 1, in, &da, nullptr};
  expect_error(tn_call(queue, &args, clear()), TN_E_UNSUPPORTED, 132, "a packed operand has no derivative");
  EXPECT_EQ(da, nullptr);
}

TEST_F(PackedOperand, cannot_be_packed_again_nor_in_place_of_another_operand) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *out = nullptr;
  const uint32_t in[2] = {intern(dense({4, 5})), tn_tensor_type(b)};
  tn_spec spec{op("matmul"), 0, cpu, 0, 2, 0, in};
  expect_error(tn_tensor_pack(queue, &spec, 1, p, &out, clear()), TN_E_ARG, 135, "packed already");
  expect_error(tn_tensor_pack(queue, &spec, 2, b, &out, clear()), TN_E_ARG, 136, "no operand 2");
  expect_error(tn_tensor_pack(queue, &spec, 1, tensor({5, 4}), &out, clear()), TN_E_SHAPE, 137, "not the operand of the spec");
  expect_error(tn_tensor_pack(queue, &spec, 0, tensor({4, 5}), &out, clear()), TN_E_UNSUPPORTED, 133, "packs operand 0 of matmul");
  const uint32_t wrong[2] = {intern(dense({4, 6})), tn_tensor_type(b)};
  spec.in = wrong;
  expect_error(tn_tensor_pack(queue, &spec, 1, b, &out, clear()), TN_E_SHAPE, 50, "inner dimensions differ", 2);
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, nobody_to_pack_it_is_an_error_with_the_nearest_reason) {
  boot(0);
  tn_tensor* out = nullptr;
  expect_error(pack(tensor({5, 3}), &out), TN_E_UNSUPPORTED, 133, "no kernel of the op reads it in a layout of its own");
  ASSERT_EQ(link(0), TN_OK) << d.msg;
  reversed(0).refuse_supports = true;
  expect_error(pack(tensor({5, 3}), &out), TN_E_UNSUPPORTED, 133, "test.matmul.reversed0: reversed: not today");
  reversed(0).refuse_supports = false;
  reversed(0).refuse_bytes = true;
  expect_error(pack(tensor({5, 3}), &out), TN_E_UNSUPPORTED, 133, "too large for it");
  reversed(0).refuse_bytes = false;
  reversed(0).bytes = UINT64_MAX;
  EXPECT_EQ(pack(tensor({5, 3}), &out), TN_E_BUG);
  reversed(0).bytes = 0;
  reversed(0).fail_pack = true;
  EXPECT_EQ(pack(tensor({5, 3}), &out), TN_E_FAILED);
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, a_pin_decides_the_layout) {
  reversed(0).layout = "test.a", reversed(1).layout = "test.b";
  boot(2);
  ASSERT_EQ(tn_pin(rt, op("matmul"), cpu, "test.matmul.reversed1", clear()), TN_OK);
  tn_type t;
  tn_tensor_describe(packed(tensor({4, 4})), &t);
  EXPECT_STREQ(tn_layout_name(rt, t.layout), "test.b");
  ASSERT_EQ(tn_pin(rt, op("matmul"), cpu, "reference.matmul", clear()), TN_OK);
  tn_tensor* out = nullptr;
  expect_error(pack(tensor({4, 4}), &out), TN_E_UNSUPPORTED, 133, "pinned to reference.matmul");
}

TEST_F(PackedOperand, types_of_unknown_layouts_are_refused) {
  boot(1);
  uint32_t id = 0;
  for (uint32_t layout : {1u, 127u, 200u, 255u}) {
    const tn_type t = dense({2, 2}, TN_F32, layout);
    expect_error(tn_type_intern(rt, &t, &id, clear()), TN_E_ARG, 138, "no such layout");
  }
}

TEST_F(PackedOperand, a_row_that_says_nonsense_is_refused_when_its_plugin_is_linked) {
  boot(0);
  reversed(0).layout = "has a space";
  expect_error(link(0), TN_E_FAILED, 19, "malformed layout name", 8);
  reversed(1).layout = std::string(64, 'x');
  expect_error(link(1), TN_E_FAILED, 19, "malformed layout name", 8);
  reversed(2).other.id = TN_EXT_CRITICAL | 9;
  expect_error(link(2), TN_E_FAILED, 19, "unknown critical extension", 8);
  reversed(3).other.id = 9;  // not critical: skipped
  EXPECT_EQ(link(3), TN_OK) << d.msg;
}

TEST_F(PackedOperand, a_simulated_accelerator_packs_nothing_and_takes_nothing_packed_elsewhere) {
  boot(1, true);
  uint32_t sim = 0;
  if (tn_device_find(rt, "sim:0", TN_POLICY_REQUIRE, &sim, clear()) != TN_OK) GTEST_SKIP() << "no simulated device here";
  tn_queue* far = nullptr;
  ASSERT_EQ(tn_queue_get(rt, sim, &far, clear()), TN_OK) << d.msg;
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *out = nullptr, *there = nullptr, *a = tensor({4, 5});
  for (uint32_t flags : {0u, uint32_t{TN_CALL_REQUIRE}})
    expect_error(call("matmul", {a, p}, &out, 0, far, flags), TN_E_UNSUPPORTED, 134, "operand 1 is packed for another device");
  ASSERT_EQ(tn_tensor_create(far, tn_tensor_type(b), &there, clear()), TN_OK) << d.msg;
  keep(there);
  const uint32_t in[2] = {tn_tensor_type(a), tn_tensor_type(b)};
  tn_spec spec{op("matmul"), 0, sim, 0, 2, 0, in};
  expect_error(tn_tensor_pack(far, &spec, 1, there, &out, clear()), TN_E_UNSUPPORTED, 133, "nothing on sim:0 packs");
  expect_error(tn_tensor_pack(far, &spec, 1, b, &out, clear()), TN_E_ARG, 139, "packed where it lies");
  expect_error(tn_tensor_pack(queue, &spec, 1, b, &out, clear()), TN_E_ARG, 139, "packed where it lies");
  tn_plan* plan = nullptr;
  const uint32_t stored[2] = {tn_tensor_type(a), tn_tensor_type(p)};
  spec.in = stored, spec.flags = TN_CALL_REQUIRE;
  expect_error(tn_plan_prepare(rt, &spec, &plan, clear()), TN_E_UNSUPPORTED, 19, "nothing on sim:0 takes matmul");
  EXPECT_EQ(out, nullptr);
}

TEST_F(PackedOperand, a_prepared_plan_takes_it_and_refuses_the_plain_one) {
  boot(1);
  tn_tensor *b = tensor({5, 3}), *p = packed(b), *a = tensor({4, 5}), *y = nullptr, *plain = nullptr;
  const uint32_t in[2] = {tn_tensor_type(a), tn_tensor_type(p)};
  const tn_spec spec{op("matmul"), 0, cpu, 0, 2, 0, in};
  tn_plan* plan = nullptr;
  ASSERT_EQ(tn_plan_prepare(rt, &spec, &plan, clear()), TN_OK) << d.msg;
  tn_tensor* operands[2] = {a, p};
  tn_call_args args{0, 0, 0, 0, 2, 1, operands, &y, nullptr};
  ASSERT_EQ(tn_plan_launch(queue, plan, &args, clear()), TN_OK) << d.msg;
  ASSERT_EQ(call("matmul", {a, b}, &plain), TN_OK) << d.msg;
  EXPECT_EQ(read(keep(y)), read(keep(plain)));
  operands[1] = b;
  tn_tensor* none = nullptr;
  args.out = &none;
  EXPECT_EQ(tn_plan_launch(queue, plan, &args, clear()), TN_E_SHAPE);
  tn_plan_release(plan);
}

TEST_F(PackedOperand, outlives_the_plugin_but_is_then_read_by_nobody) {
  boot(0);
  uint32_t index = 0;
  ASSERT_EQ(tn_plugin_link(rt, "test.reversed0", reversed_query(0), &index, clear()), TN_OK) << d.msg;
  tn_tensor *p = packed(tensor({5, 3})), *a = tensor({4, 5}), *out = nullptr;
  ASSERT_EQ(tn_plugin_unload(rt, index, TN_FOREVER, clear()), TN_OK) << d.msg;
  expect_error(call("matmul", {a, p}, &out), TN_E_UNSUPPORTED, 19, "stored as test.reversed");
}

}  // namespace
}  // namespace tenon::test
