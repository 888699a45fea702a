// tests/kernel/harness.h - a runtime with the core ops and the linked reference plugin, without the loader's file steps.
#pragma once
#include <gtest/gtest.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#include <string>
#include <vector>

#include "kernel/runtime.h"
#include "ops/op.h"
#include "ops/reference/plugin.h"

namespace tenon::test {

#define TN_ASSERT_OK(expr)                                                                   \
  do {                                                                                       \
    tn_diag d_{};                                                                            \
    d_.size = sizeof d_;                                                                     \
    tn_diag* diag = &d_;                                                                     \
    (void)diag;                                                                              \
    const tn_status s_ = (expr);                                                             \
    ASSERT_EQ(s_, TN_OK) << tn_status_text(s_) << "\n" << d_.msg;                            \
  } while (0)

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override { boot(nullptr); }

  void boot(const tn_runtime_options* options) {
    runtime = std::make_unique<tn_runtime>(options);
    for (const ops::OpDecl* op : ops::all_ops()) TN_ASSERT_OK(runtime->core.define_op(&op->def, diag));
    runtime->core.set_op_roles(TN_OPID_ADD, TN_OPID_COPY);
    kernel::PluginSlot* slot = runtime->core.add_slot();
    std::snprintf(slot->entry.id, sizeof slot->entry.id, "%s", TN_REFERENCE_ID);
    slot->table = tn_reference_query(TN_ABI_CURRENT, &slot->host);
    ASSERT_NE(slot->table, nullptr);
    TN_ASSERT_OK(runtime->core.attach(slot, diag));
    TN_ASSERT_OK(tn_device_find(runtime.get(), "cpu:0", TN_POLICY_REQUIRE, &cpu, diag));
    TN_ASSERT_OK(tn_queue_get(runtime.get(), cpu, &queue, diag));
  }

  uint32_t op(const char* name) {
    uint32_t id = 0;
    tn_diag d{};
    EXPECT_EQ(tn_op_find(runtime.get(), name, 0, &id, &d), TN_OK) << d.msg;
    return id;
  }

  uint32_t type(uint32_t dtype, const std::vector<int64_t>& dims) {
    tn_type t{};
    t.dtype = static_cast<uint8_t>(dtype);
    t.rank = static_cast<uint8_t>(dims.size());
    t.align_log2 = 6;
    for (size_t i = 0; i < dims.size(); ++i) t.dim[i] = dims[i];
    kernel::set_dense_strides(&t);
    uint32_t id = 0;
    tn_diag d{};
    EXPECT_EQ(tn_type_intern(runtime.get(), &t, &id, &d), TN_OK) << d.msg;
    return id;
  }

  tn_tensor* tensor(const std::vector<int64_t>& dims, const std::vector<float>& values) {
    tn_tensor* t = nullptr;
    tn_diag d{};
    EXPECT_EQ(tn_tensor_create(queue, type(TN_F32, dims), &t, &d), TN_OK) << d.msg;
    EXPECT_EQ(tn_tensor_write(queue, t, values.data(), values.size() * 4, &d), TN_OK) << d.msg;
    return t;
  }

  std::vector<float> read(tn_tensor* t) {
    std::vector<float> out(kernel::element_count(t->type));
    tn_diag d{};
    EXPECT_EQ(tn_tensor_read(queue, t, out.data(), out.size() * 4, &d), TN_OK) << d.msg;
    return out;
  }

  // Calls an op with f32 results; fails the test on an error.
  std::vector<tn_tensor*> call(uint32_t op, uint32_t attr, std::vector<tn_tensor*> in, uint32_t n_out = 1, std::vector<uint64_t> push = {}) {
    std::vector<tn_tensor*> out(n_out, nullptr);
    tn_diag d{};
    d.size = sizeof d;
    const tn_call_args a{op, attr, 0, static_cast<uint32_t>(8 * push.size()), static_cast<uint32_t>(in.size()), n_out, in.data(), out.data(), push.data()};
    EXPECT_EQ(tn_call(queue, &a, &d), TN_OK) << d.msg;
    return out;
  }

  uint32_t ints(uint32_t op, uint32_t key, std::vector<int64_t> values) {
    tn_attr a{};
    a.key = key;
    a.type = TN_ATTR_I64S;
    a.v.p = values.data();
    a.len = values.size();
    uint32_t id = 0;
    tn_diag d{};
    EXPECT_EQ(tn_attr_intern(runtime.get(), op, &a, 1, &id, &d), TN_OK) << d.msg;
    return id;
  }

  std::unique_ptr<tn_runtime> runtime;
  uint32_t cpu = 0;
  tn_queue* queue = nullptr;
};

}  // namespace tenon::test
