// The plugin tables of cpu (linked) and sim and null (opened), driven as a host would.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "ops/reference/cpu_info.h"
#include "ops/reference/plugin.h"
#include "tests/reference/helpers.h"

namespace tenon::reference::testing {
namespace {

// A host without a pool; configuration from a map; counts its own memory and progress calls.
struct FakeHost {
  std::map<std::string, std::string> config;
  std::atomic<int64_t> allocations{0}, progress_calls{0};
  tn_host table{};
  FakeHost() {
    table.size = sizeof table, table.abi = TN_ABI_CURRENT, table.ctx = this;
    table.log = [](void*, uint32_t, const char*, uint32_t) {};
    table.alloc = [](void* c, uint64_t n, uint64_t align) { static_cast<FakeHost*>(c)->allocations++; return std::aligned_alloc(align, (n + align - 1) / align * align); };
    table.free = [](void* c, void* p) { static_cast<FakeHost*>(c)->allocations--; std::free(p); };
    table.config = [](void* c, const char* key) -> const char* { auto& m = static_cast<FakeHost*>(c)->config; auto it = m.find(key); return it == m.end() ? nullptr : it->second.c_str(); };
    table.threads = [](void*) { return 1u; };
    table.parallel = [](void*, int64_t n, int64_t, tn_range_fn f, void* arg) { f(arg, 0, n, 0); };
    table.cancelled = [](void*) { return 0; };
    table.trace = [](void*, uint64_t, const char*) { return uint64_t{1}; };
    table.progress = [](void* c, tn_dev_timeline*, uint64_t) { static_cast<FakeHost*>(c)->progress_calls++; };
  }
};

struct Library {
  void* handle;
  const tn_plugin* table = nullptr;
  explicit Library(const char* name) : handle(dlopen((std::string(TENON_TEST_PLUGIN_DIR "/libtenon_backend_") + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle != nullptr) table = reinterpret_cast<tn_plugin_query_fn>(dlsym(handle, "tn_plugin_query"))(TN_ABI_CURRENT, nullptr);
  }
  ~Library() { if (handle != nullptr) dlclose(handle); }
};

// One opened device with a queue and a timeline.
struct Rig {
  const tn_plugin* p;
  FakeHost& host;
  tn_instance* self = nullptr;
  tn_device* device = nullptr;
  tn_dev_queue* queue = nullptr;
  tn_dev_timeline* timeline = nullptr;
  Rig(const tn_plugin* table, FakeHost& h) : p(table), host(h) {
    EXPECT_EQ(p->open(&host.table, &self, nullptr), TN_OK);
    EXPECT_EQ(p->device_open(self, 0, nullptr, &device, nullptr), TN_OK);
    EXPECT_EQ(p->queue_open(device, 0, 0, &queue, nullptr), TN_OK);
    EXPECT_EQ(p->timeline_open(device, 0, &timeline, nullptr), TN_OK);
  }
  ~Rig() {
    p->queue_close(queue), p->timeline_close(timeline), p->device_close(device);
    uint32_t live = 99;
    EXPECT_EQ(p->quiesce(self, 0, &live, nullptr), TN_OK);
    EXPECT_EQ(live, 0u);
    p->close(self);
  }
  tn_buffer buffer(uint64_t bytes) {
    tn_buffer b{};
    EXPECT_EQ(p->alloc(device, 0, bytes, 64, &b, nullptr), TN_OK);
    return b;
  }
  static tn_view view(const tn_buffer& b, uint64_t offset = 0) {
    return {b.handle, offset, b.bytes - offset, b.host != nullptr ? static_cast<char*>(b.host) + offset : nullptr};
  }
  static tn_view host_view(void* data, uint64_t bytes) { return {0, 0, bytes, data}; }
  void finish(uint64_t value) {
    EXPECT_EQ(p->signal(queue, timeline, value, nullptr), TN_OK);
    EXPECT_EQ(p->wait(nullptr, timeline, value, TN_FOREVER, nullptr), TN_OK);
  }
  const tn_kernel_info* kernel(uint64_t op) {
    const tn_kernel_info* rows;
    uint32_t stride, n;
    p->kernels(self, &rows, &stride, &n, nullptr);
    for (uint32_t i = 0; i < n; ++i) if (rows[i].op_id == op) return &rows[i];
    return nullptr;
  }
};

class EveryDevice : public ::testing::TestWithParam<bool> {
 protected:
  EveryDevice() : sim_("sim") {}
  const tn_plugin* table() { return GetParam() ? sim_.table : tn_reference_query(TN_ABI_CURRENT, nullptr); }
  Library sim_;
  FakeHost host_;
};
INSTANTIATE_TEST_SUITE_P(Plugins, EveryDevice, ::testing::Values(false, true), [](const auto& p) { return p.param ? "sim" : "cpu"; });

TEST_P(EveryDevice, copies_in_computes_and_copies_out) {
  ASSERT_NE(table(), nullptr);
  Rig rig(table(), host_);
  const ProgramText text = single(TN_OP_ADD, TN_F32, TN_F32, 2);
  const tn_program program = text.view();
  const std::vector<tn_type> types(3, type_of(TN_F32, {1000}));
  const std::vector<tn_attr> attrs = {attr_of(TN_KEY_PROGRAM, program)};
  const tn_op op = op_of(TN_OPID_POINTWISE, types, 1, attrs);
  const tn_kernel_info* row = rig.kernel(TN_OPID_POINTWISE);
  ASSERT_EQ(row->supports(rig.self, nullptr, &op, nullptr, nullptr), TN_OK);
  const tn_kernel_plan* plan = nullptr;
  ASSERT_EQ(row->prepare(rig.self, nullptr, &op, &plan, nullptr), TN_OK);
  std::vector<float> a(1000, 1), b(1000, 2), out(1000);
  const tn_buffer x = rig.buffer(4000), y = rig.buffer(4000), z = rig.buffer(4000);
  EXPECT_EQ(x.host == nullptr, GetParam());
  const tn_view vx = Rig::view(x), vy = Rig::view(y), vz = Rig::view(z), ha = Rig::host_view(a.data(), 4000), hb = Rig::host_view(b.data(), 4000), ho = Rig::host_view(out.data(), 4000);
  rig.p->copy(rig.queue, &vx, &ha, nullptr), rig.p->copy(rig.queue, &vy, &hb, nullptr);
  for (int i = 0; i < 100; ++i) {  // z = x + y; x = z + y; ...: any other order gives another number
    const std::array<tn_view, 3> views = {i % 2 == 0 ? vx : vz, vy, i % 2 == 0 ? vz : vx};
    const tn_launch call{views.data(), 3, 0, nullptr, rig.queue, nullptr, nullptr};
    ASSERT_EQ(plan->launch(plan, &call), TN_OK);
  }
  rig.p->copy(rig.queue, &ho, &vx, nullptr);
  rig.finish(1);
  EXPECT_EQ(out, std::vector<float>(1000, 201));
  row->retire(rig.self, nullptr, plan);
  for (const tn_buffer& m : {x, y, z}) rig.p->free(rig.device, &m);
}

TEST_P(EveryDevice, a_hundred_thousand_signals_and_waits_from_two_threads) {
  Rig rig(table(), host_);
  constexpr uint64_t kCount = 100000;
  std::thread waiter([&] {
    for (uint64_t v = 1; v <= kCount; v += 97) ASSERT_EQ(rig.p->wait(nullptr, rig.timeline, v, TN_FOREVER, nullptr), TN_OK);
  });
  for (uint64_t v = 1; v <= kCount; ++v) ASSERT_EQ(rig.p->signal(rig.queue, rig.timeline, v, nullptr), TN_OK);
  waiter.join();
  EXPECT_EQ(rig.p->wait(nullptr, rig.timeline, kCount, TN_FOREVER, nullptr), TN_OK);
  uint64_t value = 0, failed = 9;
  EXPECT_EQ(rig.p->query(rig.timeline, 0, &value, &failed, nullptr), TN_OK);
  EXPECT_EQ(value, kCount); EXPECT_EQ(failed, 0u);
}

TEST_P(EveryDevice, a_wait_times_out_with_both_values_and_a_timeline_never_goes_back) {
  Rig rig(table(), host_);
  tn_diag diag{};
  EXPECT_EQ(rig.p->wait(nullptr, rig.timeline, 5, 1000000, &diag), TN_E_TIMEOUT);
  EXPECT_NE(std::strstr(diag.msg, "stands at 0"), nullptr) << diag.msg;
  EXPECT_EQ(rig.p->signal(nullptr, rig.timeline, 7, nullptr), TN_OK);
  EXPECT_EQ(rig.p->signal(nullptr, rig.timeline, 6, &diag), TN_E_ARG);
  EXPECT_EQ(rig.p->wait(nullptr, rig.timeline, 7, 0, nullptr), TN_OK);
}

TEST(Cpu, describes_the_processor) {
  FakeHost host;
  Rig rig(tn_reference_query(TN_ABI_CURRENT, nullptr), host);
  tn_device_info info{};
  uint32_t n = 0;
  ASSERT_EQ(rig.p->devices(rig.self, &info, sizeof info, 1, &n, nullptr), TN_OK);
  EXPECT_EQ(n, 1u); EXPECT_EQ(info.kind, uint32_t{TN_KIND_CPU}); EXPECT_LE(info.mem_free_bytes, info.mem_total_bytes);
  EXPECT_GT(info.mem_total_bytes, 0u); EXPECT_NE(info.name[0], 0);
  tn_cap caps[64];
  ASSERT_EQ(rig.p->caps(rig.self, 0, caps, 64, &n, nullptr), TN_OK);
  uint64_t cores = 0;
  for (uint32_t i = 0; i < n; ++i) if (caps[i].key == TN_CAPKEY_CORES) cores = caps[i].v.u;
  EXPECT_EQ(cores, cpu_cores());
#if defined(__x86_64__)
  uint64_t isa[4];
  isa_bits(isa);
  EXPECT_EQ(isa[0] >> TN_ISA_AVX2 & 1, __builtin_cpu_supports("avx2") ? 1u : 0u);
  EXPECT_EQ(isa[0] >> TN_ISA_AVX512F & 1, __builtin_cpu_supports("avx512f") ? 1u : 0u);
#endif
  const tn_buffer large = rig.buffer(5u << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.host) % (2u << 20), 0u);
  rig.p->free(rig.device, &large);
  EXPECT_EQ(tn_reference_query(TN_ABI(9, 0), nullptr), nullptr);
}

TEST(Sim, a_failed_launch_marks_the_next_value_and_later_ones_are_good) {
  Library sim("sim");
  ASSERT_NE(sim.table, nullptr) << dlerror();
  FakeHost host;
  Rig rig(sim.table, host);
  const std::vector<tn_type> types = {type_of(TN_F32, {4}), type_of(TN_I32, {2}), type_of(TN_F32, {2})};
  const std::vector<tn_attr> attrs = {attr_of(TN_KEY_AXIS, 0)};
  const tn_op op = op_of(TN_OPID_GATHER, types, 1, attrs);
  const tn_kernel_info* row = rig.kernel(TN_OPID_GATHER);
  const tn_kernel_plan* plan = nullptr;
  ASSERT_EQ(row->prepare(rig.self, nullptr, &op, &plan, nullptr), TN_OK);
  const tn_buffer data = rig.buffer(16), index = rig.buffer(8), out = rig.buffer(8);
  int32_t bad[2] = {1, 40};
  const tn_view vi = Rig::view(index), hb = Rig::host_view(bad, 8);
  rig.p->copy(rig.queue, &vi, &hb, nullptr);
  const std::array<tn_view, 3> views = {Rig::view(data), vi, Rig::view(out)};
  const tn_launch call{views.data(), 3, 0, nullptr, rig.queue, nullptr, nullptr};
  rig.finish(1);
  ASSERT_EQ(plan->launch(plan, &call), TN_OK);  // found out later
  rig.finish(2);
  rig.finish(3);
  uint64_t value = 0, failed = 0;
  tn_diag diag{};
  ASSERT_EQ(rig.p->query(rig.timeline, 0, &value, &failed, &diag), TN_OK);
  EXPECT_EQ(value, 3u); EXPECT_EQ(failed, 2u); EXPECT_EQ(diag.status, TN_E_FAILED);
  EXPECT_NE(std::strstr(diag.msg, "is 40"), nullptr) << diag.msg;
  ASSERT_EQ(rig.p->query(rig.timeline, 2, &value, &failed, &diag), TN_OK);
  EXPECT_EQ(failed, 0u);
  // Outside its buffer: refused at once.
  std::array<tn_view, 3> outside = views;
  outside[2].offset = 4;
  tn_diag refused{};
  const tn_launch wrong{outside.data(), 3, 0, nullptr, rig.queue, &refused, nullptr};
  EXPECT_EQ(plan->launch(plan, &wrong), TN_E_ARG);
  EXPECT_NE(std::strstr(refused.msg, "buffer has 8"), nullptr) << refused.msg;
  row->retire(rig.self, nullptr, plan);
  for (const tn_buffer& m : {data, index, out}) rig.p->free(rig.device, &m);
  EXPECT_GE(host.progress_calls.load(), 2);  // the call for the last value may still be on its way
}

TEST(Sim, memory_ends_at_its_limit_and_comes_back) {
  Library sim("sim");
  FakeHost host;
  host.config["sim.memory_bytes"] = "4096";
  Rig rig(sim.table, host);
  const tn_buffer half = rig.buffer(3000);
  tn_buffer more{};
  tn_diag diag{};
  EXPECT_EQ(rig.p->alloc(rig.device, 0, 2000, 64, &more, &diag), TN_E_OOM);
  EXPECT_NE(std::strstr(diag.msg, "2000 bytes asked, 3000 of 4096 in use"), nullptr) << diag.msg;
  rig.p->free(rig.device, &half);
  more = rig.buffer(4096);
  rig.p->free(rig.device, &more);
}

TEST(Sim, two_queues_order_themselves_through_a_timeline) {
  Library sim("sim");
  FakeHost host;
  host.config["sim.devices"] = "2";
  Rig rig(sim.table, host);
  tn_dev_queue* second = nullptr;
  ASSERT_EQ(rig.p->queue_open(rig.device, 0, 0, &second, nullptr), TN_OK);
  const tn_buffer box = rig.buffer(8);
  const tn_view v = Rig::view(box);
  for (uint64_t round = 1; round <= 500; ++round) {
    uint64_t in = round * 11, out = 0;
    const tn_view from = Rig::host_view(&in, 8), to = Rig::host_view(&out, 8);
    rig.p->wait(second, rig.timeline, 2 * round - 1, 0, nullptr);  // enqueued first, must wait for the other queue
    rig.p->copy(second, &to, &v, nullptr);
    rig.p->signal(second, rig.timeline, 2 * round, nullptr);
    rig.p->copy(rig.queue, &v, &from, nullptr);
    rig.p->signal(rig.queue, rig.timeline, 2 * round - 1, nullptr);
    ASSERT_EQ(rig.p->wait(nullptr, rig.timeline, 2 * round, TN_FOREVER, nullptr), TN_OK);
    ASSERT_EQ(out, in);
  }
  rig.p->queue_close(second);
  rig.p->free(rig.device, &box);
}

TEST(Sim, a_wrong_setting_is_refused_by_name_and_value) {
  Library sim("sim");
  FakeHost host;
  host.config["sim.devices"] = "nine";
  tn_instance* self = nullptr;
  tn_diag diag{};
  EXPECT_EQ(sim.table->open(&host.table, &self, &diag), TN_E_ARG);
  EXPECT_NE(std::strstr(diag.msg, "sim.devices"), nullptr); EXPECT_NE(std::strstr(diag.msg, "nine"), nullptr);
}

TEST(Null, loads_reports_no_device_and_says_why_not) {
  Library null("null");
  ASSERT_NE(null.table, nullptr) << dlerror();
  FakeHost host;
  tn_instance* self = nullptr;
  ASSERT_EQ(null.table->open(&host.table, &self, nullptr), TN_OK);
  uint32_t n = 9;
  EXPECT_EQ(null.table->devices(self, nullptr, 0, 0, &n, nullptr), TN_OK);
  EXPECT_EQ(n, 0u);
  tn_diag diag{};
  tn_device* device = nullptr;
  EXPECT_EQ(null.table->device_open(self, 0, nullptr, &device, &diag), TN_E_NOT_FOUND);
  EXPECT_NE(std::strstr(diag.msg, "try:"), nullptr);
  null.table->close(self);
}

TEST(Plugins, export_one_symbol_and_carry_a_cold_note) {
  for (const char* name : {"sim", "null"}) {
    const std::string file = std::string(TENON_TEST_PLUGIN_DIR "/libtenon_backend_") + name + ".so";
    const auto output = [](const std::string& command) {
      std::string text;
      if (std::FILE* f = ::popen(command.c_str(), "r")) { char c[512]; while (std::fgets(c, sizeof c, f) != nullptr) text += c; ::pclose(f); }
      return text;
    };
    if (output("command -v nm readelf").empty()) GTEST_SKIP() << "binutils (nm, readelf) are not installed";
    EXPECT_EQ(output("nm -D --defined-only '" + file + "' | grep -v ' A ' | awk '{print $3}'"), "tn_plugin_query\n") << name;
    EXPECT_NE(output("readelf -n '" + file + "'").find("Tenon.abi"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tenon::reference::testing
