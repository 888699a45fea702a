// TN-STATE and TN-MEM: what an object allows at this moment; memory.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "tests/errors/fake.h"
#include "tests/errors/golden.h"
#include "tests/errors/stage.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

tn_status breaks(void*, const tn_op*, const tn_dims*, tn_type*, tn_diag*) { throw std::runtime_error("a rule of another library threw this"); }
tn_status exhausts(void*, const tn_op*, const tn_dims*, tn_type*, tn_diag*) { throw std::bad_alloc(); }

// The rule of an op from outside stands for anything within the runtime that throws.
Said infer_own(decltype(tn_op_def::infer) rule) {
  Stage s;
  static tn_op_def def;
  def = {};
  def.size = sizeof def;
  def.op_id = uint64_t{1} << 63 | 3;
  def.version = 1, def.n_in = 1, def.n_out = 1;
  def.name = "own";
  def.infer = rule;
  uint32_t id = 0;
  if (tn_op_define(s.rt, &def, &id, nullptr)) return {};
  return s.infer("own", "f32[2]");
}

constexpr uint32_t kStale = 0x7FF00005;

Said unload_while(uint32_t live, bool with_tensor) {
  Stage s;
  fake = Fake{};
  fake.live = live;
  uint32_t index = 0, device = 0;
  tn_queue* q = nullptr;
  if (tn_plugin_link(s.rt, "test.fake", fake_query, &index, nullptr) || tn_device_find(s.rt, "fake:0", TN_POLICY_REQUIRE, &device, nullptr)) return {};
  if (tn_queue_get(s.rt, device, &q, nullptr)) return {};
  if (with_tensor) s.tensor("f32[16]", q);
  const Said said = refused([&](tn_diag* d) { return tn_plugin_unload(s.rt, index, 0, d); });
  fake.live = 0;
  return said;
}

Said unload_under_a_plan() {
  Stage s;
  uint32_t index = 0;
  if (tn_plugin_load(s.rt, plugin_file("cpu").c_str(), &index, nullptr)) return {};
  const uint32_t t = s.type("f32[2]"), types[2] = {t, t};
  const tn_spec spec{s.op("add"), 0, s.cpu, 0, 2, 0, types};
  tn_plan* plan = nullptr;
  if (tn_plan_prepare(s.rt, &spec, &plan, nullptr)) return {};
  const Said said = refused([&](tn_diag* d) { return tn_plugin_unload(s.rt, index, 0, d); });
  tn_plan_release(plan);
  return said;
}

Said fill_the_op_table() {
  Stage s;
  tn_derive how{};
  how.size = sizeof how;
  how.rule = TN_RULE_VJP, how.seeds = 1;
  uint32_t id;
  const uint32_t base = s.op("concat");
  return refused([&](tn_diag* d) {
    for (how.need = 1;; ++how.need)
      if (tn_status status = tn_op_derive(s.rt, base, &how, &id, d)) return status;
  });
}

}  // namespace

Table state_cases() {
  return {
      {"TN-STATE-003", "", fill_the_op_table},
      {"TN-STATE-004", "of a call", [] {
         Stage s;
         tn_tensor *in[1] = {s.tensor("f32[2]")}, *out = nullptr;
         const tn_call_args args{s.op("abs"), kStale, 0, 0, 1, 1, in, &out, nullptr};
         return refused([&](tn_diag* d) { return tn_call(s.queue, &args, d); });
       }},
      {"TN-STATE-004", "of attr_get", [] {
         Stage s;
         const tn_attr* a;
         uint32_t n;
         return refused([&](tn_diag* d) { return tn_attr_get(s.rt, kStale, &a, &n, d); });
       }},
      {"TN-STATE-005", "", [] {
         Stage s;
         const uint32_t types[2] = {s.type("f32[2]"), kStale};
         const tn_spec spec{s.op("add"), 0, 0, 0, 2, 0, types};
         uint32_t id, n;
         return refused([&](tn_diag* d) { return tn_infer(s.rt, &spec, &id, 1, &n, d); });
       }},
      {"TN-STATE-008", "by tensors", [] { return unload_while(0, true); }},
      {"TN-STATE-008", "by its own count", [] { return unload_while(3, false); }},
      {"TN-STATE-008", "by plans", unload_under_a_plan},
      {"TN-STATE-009", "", [] { return infer_own(breaks); }},
      {"TN-STATE-010", "", [] { Stage s; return refused([&](tn_diag* d) { return tn_queue_destroy(s.queue, d); }); }},
      {"TN-STATE-011", "of a wait", [] {
         Stage s;
         const tn_point points[2] = {{0, 0, 0}, {99, 0, 1}};
         return refused([&](tn_diag* d) { return tn_wait(s.rt, points + 1, 1, TN_FOREVER, d); });
       }},
      {"TN-STATE-011", "of a query", [] {
         Stage s;
         uint64_t value, failed;
         return refused([&](tn_diag* d) { return tn_query(s.rt, 99, 0, &value, &failed, d); });
       }},
      {"TN-STATE-012", "", [] { Stage s; tn_type t; return refused([&](tn_diag* d) { return tn_type_get(s.rt, kStale, &t, d); }); }},
      {"TN-STATE-030", "", [] { return keep_rates(nullptr, 1); }},
      {"TN-STATE-031", "", [] {
         char name[] = "/tmp/tenon-errors-XXXXXX";
         const std::string folder = std::filesystem::canonical(mkdtemp(name)).string();
         call_it_dir(folder);
         std::filesystem::create_directory(folder + "/rates");
         chmod((folder + "/rates").c_str(), 0777);
         const Said said = keep_rates(folder.c_str(), 1);
         std::filesystem::remove_all(folder);
         return said;
       }},
  };
}

Table mem_cases() {
  return {
      {"TN-MEM-001", "", [] {
         Stage s;
         tn_memory_limit(s.rt, s.cpu, 1 << 20, nullptr);
         s.tensor("f32[65536]");
         tn_tensor* t = nullptr;
         const uint32_t id = s.type("f32[524288]");
         return refused([&](tn_diag* d) { return tn_tensor_create(s.queue, id, &t, d); });
       }},
      {"TN-MEM-001", "in a call", [] {
         Stage s;
         tn_tensor* x = s.tensor("f32[65536]");
         tn_memory_limit(s.rt, s.cpu, 300 << 10, nullptr);
         return s.call(s.op("add"), {x, x});
       }},
      {"TN-MEM-002", "", [] { return infer_own(exhausts); }},
      {"TN-MEM-003", "of a copy", [] {
         Stage s(Stage::kWithSim);
         tn_tensor *a = s.tensor("f32[2,3]", s.sim_queue), *view = nullptr;
         const uint32_t id = s.type("f32[2,2]{3,1}");
         if (tn_tensor_view(a, id, 0, &view, nullptr)) return Said{};
         s.keep(view);
         tn_tensor* b = s.tensor("f32[2,2]", s.sim_queue);
         return refused([&](tn_diag* d) { return tn_tensor_copy(s.sim_queue, view, b, d); });
       }},
      {"TN-MEM-003", "of a write", [] {
         Stage s(Stage::kWithSim);
         tn_tensor *a = s.tensor("f32[2,3]", s.sim_queue), *view = nullptr;
         const uint32_t id = s.type("f32[2,2]{3,1}");
         if (tn_tensor_view(a, id, 0, &view, nullptr)) return Said{};
         s.keep(view);
         const float data[4] = {};
         return refused([&](tn_diag* d) { return tn_tensor_write(s.sim_queue, view, data, sizeof data, d); });
       }},
      {"TN-MEM-004", "", [] {
         Stage s;
         tn_tensor* t = nullptr;
         const uint32_t id = s.type("f32[140737488355328]");
         return refused([&](tn_diag* d) { return tn_tensor_create(s.queue, id, &t, d); });
       }},
      {"TN-MEM-005", "", [] {
         Stage s(Stage::kWithSim);
         tn_tensor* t = nullptr;
         float data[2] = {};
         const uint32_t id = s.type("f32[2]");
         return refused([&](tn_diag* d) { return tn_tensor_from_host(s.rt, s.sim, id, data, sizeof data, nullptr, nullptr, &t, d); });
       }},
      {"TN-MEM-006", "", [] {
         Stage s;
         alignas(64) static float data[4] = {};
         tn_tensor *t = nullptr, *view = nullptr;
         const uint32_t id = s.type("f32[4]");
         if (tn_tensor_from_host(s.rt, s.cpu, id, data, sizeof data, nullptr, nullptr, &t, nullptr)) return Said{};
         s.keep(t);
         return refused([&](tn_diag* d) { return tn_tensor_view(t, id, 0, &view, d); });
       }},
      {"TN-MEM-007", "in", [] { return refused([](tn_diag* d) { return tn_tensor_import_dlpack(nullptr, nullptr, nullptr, d); }); }},
      {"TN-MEM-007", "out", [] { return refused([](tn_diag* d) { return tn_tensor_export_dlpack(nullptr, nullptr, 0, nullptr, d); }); }},
  };
}

}  // namespace tenon::errors
