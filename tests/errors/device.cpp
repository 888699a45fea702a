// TN-DEVICE: devices, and what their plugins say when they are used directly.
#include <tenon/tenon.hpp>

#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

Said find(Stage& s, const char* spec, uint32_t policy = TN_POLICY_REQUIRE) {
  uint32_t device;
  return refused([&](tn_diag* d) { return tn_device_find(s.rt, spec, policy, &device, d); });
}

// A runtime under TENON_DEVICES, on a machine with a processor and nothing else.
Said filtered(const char* filter) {
  setenv("TENON_DEVICES", filter, 1);
  const char* nowhere = "/no/such/folder";
  tn_runtime_options options{};
  options.size = sizeof options;
  options.paths = &nowhere;
  options.n_paths = 1;
  const Said said = refused([&](tn_diag* d) { tn_runtime* rt; return tn_runtime_create(&options, &rt, d); });
  unsetenv("TENON_DEVICES");
  return said;
}

// The simulated accelerator's own functions, on an opened device.
Said on_sim(const std::function<tn_status(const tn_plugin&, tn_device*, tn_dev_queue*, tn_dev_timeline*, tn_diag*)>& body) {
  Direct sim("sim", "sim.memory_bytes", "4096");
  const tn_plugin& t = *sim.table;
  tn_device* device = nullptr;
  tn_dev_queue* queue = nullptr;
  tn_dev_timeline* line = nullptr;
  if (t.device_open(sim.instance, 0, nullptr, &device, nullptr) || t.queue_open(device, 0, 0, &queue, nullptr) || t.timeline_open(device, 0, &line, nullptr)) return {};
  const Said said = refused([&](tn_diag* d) { return body(t, device, queue, line, d); });
  t.timeline_close(line);
  t.queue_close(queue);
  t.device_close(device);
  return said;
}

Said launch_with_two_views() {
  Direct sim("sim");
  tn_type types[3] = {type_of("f32[2,2]"), type_of("f32[2,2]"), type_of("f32[2,2]")};
  tn_op op{};
  op.size = sizeof op;
  op.op_id = TN_OPID_MATMUL, op.op_version = 1, op.n_in = 2, op.n_out = 1, op.type = types;
  const tn_kernel_info* row = sim.kernel("sim.matmul");
  const tn_kernel_plan* plan = nullptr;
  tn_diag diag{};
  if (row->prepare(sim.instance, &sim.ref, &op, &plan, &diag)) return {};
  tn_view views[2] = {};
  const Said said = refused([&](tn_diag* d) {
    const tn_launch launch{views, 2, 0, nullptr, nullptr, d, nullptr};
    return plan->launch(plan, &launch);
  });
  row->retire(sim.instance, &sim.ref, plan);
  return said;
}

Said prepare_arithmetic_on_a_storage_type() {
  Direct sim("sim");
  tn_type types[3] = {type_of("c64[2,2]"), type_of("c64[2,2]"), type_of("c64[2,2]")};
  tn_op op{};
  op.size = sizeof op;
  op.op_id = TN_OPID_MATMUL, op.op_version = 1, op.n_in = 2, op.n_out = 1, op.type = types;
  const tn_kernel_info* row = sim.kernel("sim.matmul");
  const tn_kernel_plan* plan = nullptr;
  return refused([&](tn_diag* d) { return row->prepare(sim.instance, &sim.ref, &op, &plan, d); });
}

// The first launch, a product of nothing, loses the device; then nothing can be allocated on it.
Said lost_by(Direct& sim) {
  tn_type types[3] = {type_of("f32[0,2]"), type_of("f32[2,2]"), type_of("f32[0,2]")};
  tn_op op{};
  op.size = sizeof op;
  op.op_id = TN_OPID_MATMUL, op.op_version = 1, op.n_in = 2, op.n_out = 1, op.type = types;
  const tn_kernel_info* row = sim.kernel("sim.matmul");
  const tn_plugin& t = *sim.table;
  tn_device* device = nullptr;
  tn_dev_queue* queue = nullptr;
  const tn_kernel_plan* plan = nullptr;
  tn_buffer matrix{}, never{};
  if (t.device_open(sim.instance, 0, nullptr, &device, nullptr) || t.alloc(device, 0, 16, 64, &matrix, nullptr) ||
      t.queue_open(device, 0, 0, &queue, nullptr) || row->prepare(sim.instance, &sim.ref, &op, &plan, nullptr)) return {};
  const tn_view view{matrix.handle, 0, 16, nullptr}, views[3] = {view, view, view};
  const tn_launch launch{views, 3, 0, nullptr, queue, nullptr, nullptr};
  plan->launch(plan, &launch);
  t.queue_close(queue);  // waits for the launch
  const Said said = refused([&](tn_diag* d) { return t.alloc(device, 0, 64, 64, &never, d); });
  row->retire(sim.instance, &sim.ref, plan);
  t.free(device, &matrix);
  t.device_close(device);
  return said;
}

// A failed gather on the simulated accelerator is told with the first value that is read.
Said late_failure() {
  Stage s(Stage::kWithSim);
  tn_tensor *in[2] = {s.tensor("f32[5]", s.sim_queue), nullptr}, *out = nullptr;
  const uint32_t type = s.type("i64[1]");
  if (tn_tensor_create(s.sim_queue, type, &in[1], nullptr)) return {};
  s.keep(in[1]);
  const int64_t five = 5;
  tn_tensor_write(s.sim_queue, in[1], &five, 8, nullptr);
  tn_queue_note(s.sim_queue, "app.cpp:7");
  const tn_call_args args{s.op("gather"), s.attrs(s.op("gather"), {integer(TN_KEY_AXIS, 0)}), 0, 0, 2, 1, in, &out, nullptr};
  if (tn_call(s.sim_queue, &args, nullptr)) return {};
  s.keep(out);
  float value;
  Said said;
  tn_diag diag{};
  const tn_status status = tn_tensor_read(s.sim_queue, out, &value, 4, &diag);
  if (status == TN_OK) return {};
  return errors::said(diag);
}

}  // namespace

Table device_cases() {
  return {
      {"TN-DEVICE-001", "", [] { Stage s(Stage::kWithSim, TN_RT_NO_EMULATED); return find(s, "sim:0"); }},
      {"TN-DEVICE-002", "", [] { Stage s; uint32_t n; return refused([&](tn_diag* d) { return tn_caps(s.rt, 99, nullptr, 0, &n, d); }); }},
      {"TN-DEVICE-003", "", [] { Stage s; tn_plugin_unload(s.rt, 0, TN_FOREVER, nullptr); return find(s, "auto"); }},
      {"TN-DEVICE-004", "", [] { Stage s; return find(s, "cuda:0"); }},
      {"TN-DEVICE-005", "", [] { Stage s; uint64_t h; return refused([&](tn_diag* d) { return tn_native_handle(s.rt, s.cpu, 0, nullptr, &h, d); }); }},
      {"TN-DEVICE-006", "", [] {
         Stage s;
         const uint32_t type = s.type("f32[2]");
         const tn_spec spec{s.op("abs"), 0, 0, 0, 1, 0, &type};
         tn_plan* plan;
         return refused([&](tn_diag* d) { return tn_plan_prepare(s.rt, &spec, &plan, d); });
       }},
      {"TN-DEVICE-007", "", [] { return filtered("cpu,cuda:0"); }},
      {"TN-DEVICE-008", "", [] { return filtered("cpu,uuid:12"); }},
      {"TN-DEVICE-040", "in a call", [] { Stage s; return s.call(s.op("gather"), {s.tensor("f32[5]"), s.i64({0, 5})}, {integer(TN_KEY_AXIS, 0)}); }},
      {"TN-DEVICE-040", "told late", late_failure},
      {"TN-DEVICE-041", "", prepare_arithmetic_on_a_storage_type},
      {"TN-DEVICE-042", "", [] {
         return on_sim([](const tn_plugin& t, tn_device*, tn_dev_queue* q, tn_dev_timeline*, tn_diag* d) {
           const tn_view nowhere{0, 0, 8, nullptr};
           return t.copy(q, &nowhere, &nowhere, d);
         });
       }},
      {"TN-DEVICE-043", "", [] { return on_sim([](const tn_plugin& t, tn_device* v, tn_dev_queue*, tn_dev_timeline*, tn_diag* d) { tn_buffer b; return t.alloc(v, 0, 5000, 64, &b, d); }); }},
      {"TN-DEVICE-044", "", [] { return on_sim([](const tn_plugin& t, tn_device*, tn_dev_queue*, tn_dev_timeline* l, tn_diag* d) { return t.wait(nullptr, l, 5, 1000, d); }); }},
      {"TN-DEVICE-045", "", [] {
         return on_sim([](const tn_plugin& t, tn_device*, tn_dev_queue*, tn_dev_timeline* l, tn_diag* d) {
           t.signal(nullptr, l, 7, nullptr);
           return t.signal(nullptr, l, 6, d);
         });
       }},
      {"TN-DEVICE-046", "", [] { Direct sim("sim"); tn_device* v; return refused([&](tn_diag* d) { return sim.table->device_open(sim.instance, 1, nullptr, &v, d); }); }},
      {"TN-DEVICE-047", "of another device", [] {
         return on_sim([](const tn_plugin& t, tn_device*, tn_dev_queue* q, tn_dev_timeline*, tn_diag* d) {
           char host[8];
           const tn_view foreign{12345, 0, 8, nullptr}, here{0, 0, 8, host};
           return t.copy(q, &foreign, &here, d);
         });
       }},
      {"TN-DEVICE-047", "too long", [] {
         return on_sim([](const tn_plugin& t, tn_device* v, tn_dev_queue* q, tn_dev_timeline*, tn_diag* d) {
           char host[8];
           tn_buffer b{};
           if (t.alloc(v, 0, 8, 64, &b, nullptr)) return tn_status{TN_OK};
           const tn_view late{b.handle, 4, 8, nullptr}, here{0, 0, 8, host};
           const tn_status s = t.copy(q, &late, &here, d);
           t.free(v, &b);
           return s;
         });
       }},
      {"TN-DEVICE-048", "", [] { Direct sim("sim", "sim.devices", "nine"); return sim.opened ? said(sim.open_diag) : Said{}; }},
      {"TN-DEVICE-049", "", [] { return on_sim([](const tn_plugin& t, tn_device* v, tn_dev_queue*, tn_dev_timeline*, tn_diag* d) { tn_buffer b; return t.alloc(v, 3, 64, 64, &b, d); }); }},
      {"TN-DEVICE-050", "", launch_with_two_views},
      {"TN-DEVICE-051", "", [] { return on_sim([](const tn_plugin& t, tn_device* v, tn_dev_queue*, tn_dev_timeline*, tn_diag* d) { tn_buffer b; return t.alloc(v, 0, 64, 48, &b, d); }); }},
      {"TN-DEVICE-052", "", [] {
         Direct sim("sim", "sim.lose_after", "1");
         return lost_by(sim);
       }},
      {"TN-DEVICE-053", "", [] {
         Direct sim("sim", "sim.max_alloc_bytes", "4096");
         tn_device* v = nullptr;
         tn_buffer b;
         if (sim.table->device_open(sim.instance, 0, nullptr, &v, nullptr)) return Said{};
         const Said said = refused([&](tn_diag* d) { return sim.table->alloc(v, 0, 5000, 64, &b, d); });
         sim.table->device_close(v);
         return said;
       }},
      {"TN-DEVICE-101", "out", [] {
         RuntimeOptions options;
         options.paths = {TENON_PLUGINS};
         Runtime rt(options);
         return thrown([&] { to_dlpack(zeros({2}, {.device = rt.device("sim:0", TN_POLICY_REQUIRE)})); });
       }},
      {"TN-DEVICE-101", "in", [] {
         struct { void* data; int32_t device, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; void* ctx; void (*deleter)(void*); } managed{};
         managed.device = 2;
         return thrown([&] { from_dlpack_unversioned(&managed); });
       }},
  };
}

}  // namespace tenon::errors
