// The plugin's table over a driver of host memory: what holds for every GPU plugin, with no API in it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "backends/gpu_common/errors.h"
#include "backends/gpu_common/kernel_store.h"
#include "backends/gpu_common/plugin.h"
#include "tests/gpu_common/fake.h"

namespace tenon::gpu::test {
namespace {

constexpr uint64_t kSecond = 1000000000;

class Plugin : public testing::Test {
 protected:
  void SetUp() override {
    Fake& f = Fake::get();
    f.lost = f.mute = f.differ = false, f.compiles = 0, f.devices = 2, f.binding_align = 16;
    f.let();
    host_.ctx = this;
    host_.config = [](void* ctx, const char* key) -> const char* {
      const auto& all = static_cast<Plugin*>(ctx)->config_;
      const auto it = all.find(key);
      return it == all.end() ? nullptr : it->second.c_str();
    };
    host_.progress = [](void* ctx, tn_dev_timeline*, uint64_t) { static_cast<Plugin*>(ctx)->told_++; };
  }
  void open() {
    ASSERT_EQ(table_->open(&host_, &self_, &diag_), TN_OK) << diag_.msg;
    ASSERT_EQ(table_->device_open(self_, 0, nullptr, &device_, &diag_), TN_OK) << diag_.msg;
    ASSERT_EQ(table_->queue_open(device_, 0, 0, &queue_, &diag_), TN_OK);
    ASSERT_EQ(table_->timeline_open(device_, 0, &line_, &diag_), TN_OK);
    ASSERT_EQ(table_->alloc(device_, 0, 4096, 64, &buffer_, &diag_), TN_OK);
    table_->kernels(self_, &rows_, &stride_, &n_rows_, nullptr);
    ref_.size = sizeof ref_, ref_.device = device_;
    zero();
  }
  void TearDown() override {
    if (self_ == nullptr) return;
    Fake::get().let();
    for (const tn_kernel_plan* p : plans_) rows_[0].retire(self_, &ref_, p);
    if (queue_ != nullptr) table_->queue_close(queue_);
    if (line_ != nullptr) table_->timeline_close(line_);
    if (device_ != nullptr) table_->free(device_, &buffer_), table_->device_close(device_);
    uint32_t live = 1;
    table_->quiesce(self_, 0, &live, nullptr);
    EXPECT_EQ(live, 0u);
    table_->close(self_);
    EXPECT_EQ(Fake::get().blocks, 0);
    EXPECT_EQ(Fake::get().kernels, 0);
  }
  void zero() {
    static const std::vector<uint32_t> zeros(1024);
    const tn_view src{0, 0, 4096, const_cast<uint32_t*>(zeros.data())}, dst{buffer_.handle, 0, 4096, nullptr};
    ASSERT_EQ(table_->copy(queue_, &dst, &src, &diag_), TN_OK);
  }
  const tn_kernel_plan* plan(uint32_t row, int64_t n) {
    tn_type type{};
    type.dtype = TN_U32, type.rank = 1, type.dim[0] = n, type.stride[0] = 1;
    tn_op op{};
    op.size = sizeof op, op.op_id = row + 1, op.n_out = 1, op.type = &type, op.push_bytes = 8;
    const tn_kernel_plan* p = nullptr;
    EXPECT_EQ(rows_[row].prepare(self_, &ref_, &op, &p, &diag_), TN_OK) << diag_.msg;
    plans_.push_back(p);
    return p;
  }
  tn_status launch(const tn_kernel_plan* p, uint64_t offset, uint64_t more, tn_dev_queue* q = nullptr) {
    const tn_view view{buffer_.handle, offset, 4096 - offset, nullptr};
    const tn_launch call{&view, 1, 8, &more, q != nullptr ? q : queue_, &diag_, nullptr};
    return p->launch(p, &call);
  }
  uint32_t element(uint64_t index) {
    uint32_t x = 0;
    const tn_view src{buffer_.handle, index * 4, 4, nullptr}, dst{0, 0, 4, &x};
    EXPECT_EQ(table_->copy(queue_, &dst, &src, &diag_), TN_OK) << diag_.msg;
    EXPECT_EQ(finish(), TN_OK) << diag_.msg;
    return x;
  }
  tn_status finish() {
    if (tn_status s = table_->signal(queue_, line_, ++value_, &diag_); s != TN_OK) return s;
    return table_->wait(nullptr, line_, value_, 10 * kSecond, &diag_);
  }

  const tn_plugin* table_ = plugin_table(TN_ABI_CURRENT);
  tn_host host_{};
  std::map<std::string, std::string> config_;
  tn_instance* self_ = nullptr;
  tn_device* device_ = nullptr;
  tn_dev_queue* queue_ = nullptr;
  tn_dev_timeline* line_ = nullptr;
  tn_buffer buffer_{};
  tn_device_ref ref_{};
  const tn_kernel_info* rows_ = nullptr;
  uint32_t stride_ = 0, n_rows_ = 0;
  std::vector<const tn_kernel_plan*> plans_;
  uint64_t value_ = 0;
  std::atomic<int> told_{0};
  tn_diag diag_{};
};

TEST_F(Plugin, a_launch_adds_what_is_pushed_at_the_view_s_start) {
  open();
  const auto* p = plan(0, 3);
  ASSERT_EQ(launch(p, 20, 9), TN_OK) << diag_.msg;  // bound at 16, one element before the view
  EXPECT_EQ(element(4), 0u);
  EXPECT_EQ(element(5), 10u);
  EXPECT_EQ(element(7), 10u);
  EXPECT_EQ(element(8), 0u);
}

TEST_F(Plugin, only_the_buffer_s_start_can_be_bound_where_align_is_0) {
  Fake::get().binding_align = 0;
  open();
  ASSERT_EQ(launch(plan(0, 2), 4000, 0), TN_OK);
  EXPECT_EQ(element(999), 0u);
  EXPECT_EQ(element(1000), 1u);
  EXPECT_EQ(element(1001), 1u);
}

TEST_F(Plugin, views_outside_their_buffer_are_refused) {
  open();
  const auto* p = plan(0, 100);
  EXPECT_EQ(launch(p, 4000, 0), TN_E_ARG);
  EXPECT_EQ(diag_.id, kErrView);
  EXPECT_EQ(launch(p, 4096 - 400, 0), TN_OK);
}

TEST_F(Plugin, a_wait_for_a_value_that_is_not_given_defers_later_work_and_blocks_nobody) {
  open();
  const auto* p = plan(0, 1);
  ASSERT_EQ(finish(), TN_OK);
  tn_dev_timeline* other = nullptr;
  ASSERT_EQ(table_->timeline_open(device_, 0, &other, &diag_), TN_OK);
  ASSERT_EQ(table_->wait(queue_, other, 5, TN_FOREVER, &diag_), TN_OK);
  ASSERT_EQ(launch(p, 0, 0), TN_OK);
  ASSERT_EQ(table_->signal(queue_, line_, 50, &diag_), TN_OK);
  EXPECT_EQ(table_->wait(nullptr, line_, 50, kSecond / 50, &diag_), TN_E_TIMEOUT);
  uint64_t stream = 0;
  EXPECT_EQ(static_cast<const tn_native*>(table_->iface(self_, "tn.native.v1"))->stream(self_, queue_, &stream, &diag_), TN_E_BUSY);
  ASSERT_EQ(table_->signal(nullptr, other, 5, &diag_), TN_OK);
  EXPECT_EQ(table_->wait(nullptr, line_, 50, 10 * kSecond, &diag_), TN_OK);
  value_ = 50;
  EXPECT_EQ(element(0), 1u);
  table_->timeline_close(other);
}

TEST_F(Plugin, queues_wait_for_each_other_by_the_driver_and_by_deferral) {
  open();
  const auto* p = plan(0, 1);
  tn_dev_queue* second = nullptr;
  tn_dev_timeline* other = nullptr;
  ASSERT_EQ(table_->queue_open(device_, 0, 0, &second, &diag_), TN_OK);
  ASSERT_EQ(table_->timeline_open(device_, 0, &other, &diag_), TN_OK);
  ASSERT_EQ(finish(), TN_OK);
  Fake::get().shut();
  ASSERT_EQ(table_->wait(second, line_, 30, TN_FOREVER, &diag_), TN_OK);  // nobody has signalled it yet
  ASSERT_EQ(launch(p, 0, 0, second), TN_OK);
  ASSERT_EQ(table_->signal(second, other, 1, &diag_), TN_OK);
  ASSERT_EQ(launch(p, 0, 0), TN_OK);
  ASSERT_EQ(table_->signal(queue_, line_, 30, &diag_), TN_OK);
  Fake::get().let();
  EXPECT_EQ(table_->wait(nullptr, other, 1, 10 * kSecond, &diag_), TN_OK);
  value_ = 30;
  EXPECT_EQ(element(0), 2u);
  table_->queue_close(second);
  table_->timeline_close(other);
}

TEST_F(Plugin, a_queue_closes_though_a_value_it_waits_for_never_comes) {
  open();
  ASSERT_EQ(table_->wait(queue_, line_, 99, TN_FOREVER, &diag_), TN_OK);
  ASSERT_EQ(launch(plan(0, 1), 0, 0), TN_OK);
  table_->queue_close(queue_);
  queue_ = nullptr;
}

TEST_F(Plugin, timelines_only_grow) {
  open();
  ASSERT_EQ(table_->signal(nullptr, line_, 60, &diag_), TN_OK);
  EXPECT_EQ(table_->signal(nullptr, line_, 40, &diag_), TN_E_ARG);
  EXPECT_EQ(diag_.id, kErrTimeline);
  EXPECT_EQ(table_->signal(queue_, line_, 40, &diag_), TN_E_ARG);
}

TEST_F(Plugin, progress_is_told_though_nobody_waits) {
  open();
  ASSERT_EQ(table_->signal(queue_, line_, 1, &diag_), TN_OK);
  for (int i = 0; i < 2000 && told_ == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(told_, 0);
}

TEST_F(Plugin, a_failed_kernel_marks_its_value_and_no_later_one) {
  open();
  ASSERT_EQ(finish(), TN_OK);
  ASSERT_EQ(launch(plan(1, 1), 0, 0), TN_OK);
  ASSERT_EQ(finish(), TN_OK);
  ASSERT_EQ(launch(plan(0, 1), 0, 0), TN_OK);
  ASSERT_EQ(finish(), TN_OK);
  uint64_t value = 0, failed = 0;
  ASSERT_EQ(table_->query(line_, 0, &value, &failed, &diag_), TN_OK);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(failed, 2u);
  EXPECT_STREQ(diag_.msg, "bad failed\nwhy: element 7\ntry: nothing");
  ASSERT_EQ(table_->query(line_, 2, &value, &failed, &diag_), TN_OK);
  EXPECT_EQ(failed, 0u);
}

TEST_F(Plugin, a_lost_device_wakes_who_waits_and_stays_lost) {
  open();
  Fake::get().shut();
  ASSERT_EQ(launch(plan(0, 1), 0, 0), TN_OK);
  ASSERT_EQ(table_->signal(queue_, line_, 1, &diag_), TN_OK);
  std::thread taker([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)), Fake::get().lost = true, Fake::get().let(); });
  tn_diag words{};
  EXPECT_EQ(table_->wait(nullptr, line_, 1, TN_FOREVER, &words), TN_E_DEVICE_LOST);
  EXPECT_EQ(std::string(words.msg), "fake: the device is gone\nwhy: the test took it\ntry: nothing");
  taker.join();
  Fake::get().lost = false;
  EXPECT_EQ(table_->query(line_, 0, nullptr, nullptr, &diag_), TN_E_DEVICE_LOST);
  EXPECT_EQ(table_->signal(queue_, line_, 2, &diag_), TN_E_DEVICE_LOST);
  tn_device* other = nullptr;
  EXPECT_EQ(table_->device_open(self_, 0, nullptr, &other, &diag_), TN_E_DEVICE_LOST);
  ASSERT_EQ(table_->device_open(self_, 1, nullptr, &other, &diag_), TN_OK);
  table_->device_close(other);
}

TEST_F(Plugin, devices_of_several_classes_have_rows_of_their_own) {
  Fake::get().differ = true;
  open();
  EXPECT_EQ(n_rows_, 4u);
  tn_cap cap{};
  uint32_t n = 0;
  ASSERT_EQ(table_->caps(self_, 1, &cap, 1, &n, nullptr), TN_OK);
  ASSERT_EQ(n, 1u);
  EXPECT_EQ(cap.v.u, 1u);
  for (uint32_t i = 0; i < 4; ++i) {
    const tn_constraint& last = rows_[i].cons[rows_[i].n_cons - 1];
    EXPECT_EQ(last.kind, TN_NEED_CAP);
    EXPECT_EQ(last.arg, cap.key);
  }
}

TEST_F(Plugin, limits_can_be_lowered_and_a_bad_one_is_named) {
  config_["fake.limit.threads"] = "many";
  EXPECT_EQ(table_->open(&host_, &self_, &diag_), TN_E_ARG);
  EXPECT_EQ(diag_.id, kErrConfig);
  EXPECT_NE(std::string(diag_.msg).find("fake.limit.threads"), std::string::npos);
  self_ = nullptr;
}

TEST_F(Plugin, one_text_is_compiled_once_however_many_threads_ask) {
  open();
  std::vector<std::thread> threads;
  std::mutex mutex;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      tn_type type{};
      type.dtype = TN_U32, type.rank = 1, type.dim[0] = 4, type.stride[0] = 1;
      tn_op op{};
      op.size = sizeof op, op.op_id = 1, op.n_out = 1, op.type = &type, op.push_bytes = 8;
      const tn_kernel_plan* p = nullptr;
      EXPECT_EQ(rows_[0].prepare(self_, &ref_, &op, &p, nullptr), TN_OK);
      const std::lock_guard lock(mutex);
      plans_.push_back(p);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(Fake::get().compiles, 1);
}

// tests/errors/golden/TN-DEVICE-gpu.txt in the form of that folder; TENON_GOLDEN_UPDATE=1 writes it.
TEST_F(Plugin, errors_say_their_golden_texts) {
  std::map<std::string, std::string> seen, golden;
  const auto said = [&](tn_status status) {
    EXPECT_NE(status, TN_OK);
    EXPECT_LT(diag_.len + 1, sizeof diag_.msg) << "cut: " << diag_.msg;
    char id[16];
    std::snprintf(id, sizeof id, "%03u", diag_.id & 0xFFFF);
    seen["TN-DEVICE-" + std::string(id)] = "what: " + std::string(diag_.msg) + "\n";
  };
  config_["fake.limit.threads"] = "many";
  said(table_->open(&host_, &self_, &diag_));
  config_.clear();
  Fake::get().max_alloc = 0;
  open();
  uint32_t n = 0;
  said(table_->caps(self_, 9, nullptr, 0, &n, &diag_));
  const auto* p = plan(0, 100);
  said(launch(p, 4000, 0));
  const tn_launch none{nullptr, 0, 0, nullptr, queue_, &diag_, nullptr};
  said(p->launch(p, &none));
  tn_buffer b{};
  said(table_->alloc(device_, 0, UINT64_MAX - 7, 64, &b, &diag_));
  said(table_->alloc(device_, 2, 8, 64, &b, &diag_));
  ASSERT_EQ(table_->signal(nullptr, line_, 60, &diag_), TN_OK);
  said(table_->signal(nullptr, line_, 40, &diag_));
  said(table_->wait(nullptr, line_, 61, 1000, &diag_));
  const tn_ext option{sizeof option, TN_EXT_CRITICAL | 9, nullptr};
  tn_device* other = nullptr;
  said(table_->device_open(self_, 0, &option, &other, &diag_));
  const tn_device_ref foreign{sizeof foreign};
  tn_op op{};
  said(rows_[0].supports(self_, &foreign, &op, nullptr, &diag_));
  ASSERT_EQ(table_->wait(queue_, line_, 99, TN_FOREVER, &diag_), TN_OK);
  uint64_t stream = 0;
  said(static_cast<const tn_native*>(table_->iface(self_, "tn.native.v1"))->stream(self_, queue_, &stream, &diag_));
  TearDown();
  self_ = nullptr, queue_ = nullptr, line_ = nullptr, device_ = nullptr, plans_.clear();
  Fake::get().max_alloc = 1000;
  ASSERT_EQ(table_->open(&host_, &self_, &diag_), TN_OK);
  ASSERT_EQ(table_->device_open(self_, 0, nullptr, &device_, &diag_), TN_OK);
  said(table_->alloc(device_, 0, 2000, 64, &b, &diag_));
  ASSERT_EQ(table_->alloc(device_, 0, 200, 64, &buffer_, &diag_), TN_OK);
  Fake::get().max_alloc = 1 << 20;
  Fake::get().mute = Fake::get().lost = true;
  said(table_->alloc(device_, 0, 200, 64, &b, &diag_));
  if (std::getenv("TENON_GOLDEN_UPDATE") != nullptr) {
    std::ofstream out(TENON_GOLDEN_DIR "/TN-DEVICE-gpu.txt");
    for (const auto& [key, text] : seen) out << "[" << key << "]\n" << text << "\n";
    return;
  }
  std::ifstream in(TENON_GOLDEN_DIR "/TN-DEVICE-gpu.txt");
  std::string line, key;
  while (std::getline(in, line)) {
    if (line.rfind("[TN-", 0) == 0) key = line.substr(1, line.size() - 2);
    else if (!line.empty()) golden[key] += line + "\n";
  }
  EXPECT_EQ(seen, golden);
}

class Store : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tenon_store_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    base_ = name;
    folder_ = base_ + "/kernels";
  }
  void TearDown() override { std::filesystem::remove_all(base_); }
  std::string obtain(const KernelStore& store, const std::string& key, const std::string& made, bool* compiled) {
    std::string binary;
    *compiled = false;
    EXPECT_EQ(store.obtain("k", key, [&](std::string* out, tn_diag*) { return *compiled = true, *out = made, TN_OK; }, &binary, nullptr), TN_OK);
    return binary;
  }
  std::vector<std::filesystem::path> kernels() const {
    std::vector<std::filesystem::path> all;
    for (const auto& e : std::filesystem::directory_iterator(folder_))
      if (e.path().extension() == ".kernel") all.push_back(e.path());
    return all;
  }
  std::string base_, folder_;
};

TEST_F(Store, gives_back_what_it_was_given) {
  const KernelStore store(folder_, 1 << 20);
  bool compiled = false;
  EXPECT_EQ(obtain(store, "a", "one", &compiled), "one");
  EXPECT_TRUE(compiled);
  EXPECT_EQ(obtain(store, "a", "two", &compiled), "one");
  EXPECT_FALSE(compiled);
  EXPECT_EQ(obtain(store, "b", "three", &compiled), "three");
  EXPECT_TRUE(compiled);
}

TEST_F(Store, a_damaged_file_is_made_again) {
  const KernelStore store(folder_, 1 << 20);
  bool compiled = false;
  obtain(store, "key", std::string(1000, 'x'), &compiled);
  const auto file = kernels().at(0);
  const auto size = std::filesystem::file_size(file);
  for (uint64_t at : {uint64_t{0}, uint64_t{9}, uint64_t{20}, uint64_t{33}, size / 2, size - 1}) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at));
    f.put('#');
    f.close();
    EXPECT_EQ(obtain(store, "key", std::string(1000, 'x'), &compiled), std::string(1000, 'x'));
    EXPECT_TRUE(compiled) << "byte " << at;
  }
  for (uint64_t n : {uint64_t{0}, uint64_t{5}, size - 1}) {
    std::filesystem::resize_file(file, n);
    obtain(store, "key", std::string(1000, 'x'), &compiled);
    EXPECT_TRUE(compiled) << n << " bytes left";
  }
}

TEST_F(Store, keeps_to_its_size) {
  const KernelStore store(folder_, 5000);
  bool compiled = false;
  for (int i = 0; i < 20; ++i) obtain(store, "key" + std::to_string(i), std::string(900, 'x'), &compiled);
  EXPECT_LE(kernels().size(), 5u);
  EXPECT_GE(kernels().size(), 3u);
}

TEST_F(Store, a_folder_that_others_may_write_is_not_used) {
  std::filesystem::create_directory(folder_);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  const KernelStore store(folder_, 1 << 20);
  bool compiled = false;
  obtain(store, "a", "one", &compiled);
  obtain(store, "a", "one", &compiled);
  EXPECT_TRUE(compiled);
  EXPECT_TRUE(kernels().empty());
}

TEST_F(Store, eight_processes_compile_each_key_once) {
  const std::string log = base_ + "/log";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const KernelStore store(folder_, 1 << 20);
      bool good = true;
      for (int k = 0; k < 6; ++k) {
        const std::string key = "key" + std::to_string(k);
        std::string binary;
        store.obtain("k", key, [&](std::string* out, tn_diag*) {
          std::ofstream(log, std::ios::app) << (key + "\n") << std::flush;
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          return *out = "binary of " + key, TN_OK;
        }, &binary, nullptr);
        good = good && binary == "binary of " + key;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::map<std::string, int> count;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) count[line]++;
  EXPECT_EQ(count.size(), 6u);
  for (const auto& [key, n] : count) EXPECT_EQ(n, 1) << key;
}

}  // namespace
}  // namespace tenon::gpu::test
