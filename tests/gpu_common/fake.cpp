#include "tests/gpu_common/fake.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "backends/gpu_common/errors.h"
#include "ops/gpu/recipe.h"

namespace tenon::gpu {
namespace test {
Fake& Fake::get() {
  static Fake fake;
  return fake;
}
namespace {

tn_status gone(tn_diag* diag) {
  if (Fake::get().mute) return TN_E_DEVICE_LOST;
  return report(diag, TN_E_DEVICE_LOST, gpu_error_id(999), "fake: the device is gone\nwhy: the test took it\ntry: nothing");
}
char* address(uint64_t handle, uint64_t offset) { return reinterpret_cast<char*>(static_cast<uintptr_t>(handle)) + offset; }

class FakeFence final : public Fence {
 public:
  void done() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  tn_status wait(uint64_t timeout_ns, tn_diag* diag) override {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return done_ || Fake::get().lost; };
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, uint64_t{1} << 50));
    while (!over() && std::chrono::steady_clock::now() < end) changed_.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(2)));
    if (Fake::get().lost) return gone(diag);
    return done_ ? tn_status{TN_OK} : report(diag, TN_E_TIMEOUT, kErrTimeout, "fake: not done\nwhy: -\ntry: -");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(std::string n) : name(std::move(n)) { Fake::get().kernels++; }
  ~FakeKernel() override { Fake::get().kernels--; }
  const std::string name;
};

class FakeStream final : public Stream {
 public:
  FakeStream() : worker_([this] { loop(); }) {}
  ~FakeStream() override {
    put(nullptr);
    worker_.join();
  }
  tn_status copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag* diag) override {
    void* to = dst.handle != 0 ? address(dst.handle, dst.offset) : dst.host;
    const void* from = src.handle != 0 ? address(src.handle, src.offset) : src.host;
    return put_or_lost([=] { std::memmove(to, from, bytes); }, diag);
  }
  tn_status fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag* diag) override {
    return put_or_lost([=] { std::memset(address(handle, offset), 0, bytes); }, diag);
  }
  tn_status dispatch(const Dispatch& d, tn_diag* diag) override {
    const std::string name = static_cast<const FakeKernel*>(d.kernel)->name;
    uint32_t params[4] = {};
    std::memcpy(params, d.params, std::min<uint32_t>(d.param_bytes, sizeof params));
    const Binding data = d.bindings[0], error = d.bindings[d.n_bindings - 1];
    const uint32_t first = params[0], count = params[1], more = params[2];
    return put_or_lost([=] {
      auto* word = reinterpret_cast<uint32_t*>(address(error.handle, error.offset));
      if (name == "bad" && word[0] == 0) word[0] = kFailIndex, word[1] = 7;
      auto* p = reinterpret_cast<uint32_t*>(address(data.handle, data.offset)) + first;
      for (uint32_t i = 0; name == "inc" && i < count; ++i) p[i] += 1 + more;
    }, diag);
  }
  tn_status fence(std::shared_ptr<Fence>* out, tn_diag* diag) override {
    auto f = std::make_shared<FakeFence>();
    *out = f;
    return put_or_lost([f] { f->done(); }, diag);
  }
  tn_status wait(const std::shared_ptr<Fence>& fence, tn_diag* diag) override {
    return put_or_lost([fence] { fence->wait(TN_FOREVER, nullptr); }, diag);
  }
  uint64_t native() const override { return 77; }

 private:
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    more_.notify_one();
  }
  tn_status put_or_lost(std::function<void()> work, tn_diag* diag) {
    if (Fake::get().lost) return gone(diag);
    put(std::move(work));
    return TN_OK;
  }
  void loop() {
    for (;;) {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return !work_.empty(); });
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      if (work == nullptr) return;
      if (!Fake::get().lost) Fake::get().pass();
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> work_;
  std::thread worker_;
};

Caps caps_of(uint32_t index) {
  Caps c;
  c.storage = c.arithmetic = uint64_t{1} << TN_U32;
  c.binding_align = Fake::get().binding_align;
  if (index == 1 && Fake::get().differ) c.local_bytes = 1024;
  return c;
}

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(uint32_t index) : caps_(caps_of(index)) {}
  const Caps& caps() const override { return caps_; }
  tn_status alloc(uint64_t bytes, uint64_t align, bool host_visible, Memory* out, tn_diag* diag) override {
    if (Fake::get().lost) return gone(diag);
    void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    *out = {reinterpret_cast<uintptr_t>(p), 0, host_visible ? p : nullptr};
    Fake::get().blocks++;
    return TN_OK;
  }
  void free(uint64_t handle) override {
    std::free(address(handle, 0));
    Fake::get().blocks--;
  }
  tn_status open_stream(int32_t, std::unique_ptr<Stream>* out, tn_diag*) override { return *out = std::make_unique<FakeStream>(), TN_OK; }
  tn_status compile(const KernelSpec&, const std::string& text, const RenderOptions&, std::string* binary, tn_diag*) override {
    Fake::get().compiles++;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return *binary = "binary of " + text, TN_OK;
  }
  tn_status load(const KernelSpec& spec, const RenderOptions&, const std::string& binary, std::unique_ptr<Kernel>* out, tn_diag* diag) override {
    if (binary != "binary of text of " + spec.name) return report(diag, TN_E_FAILED, gpu_error_id(998), "fake: a wrong binary\nwhy: -\ntry: -");
    return *out = std::make_unique<FakeKernel>(spec.name), TN_OK;
  }
  std::string cache_key() const override { return "fake 1"; }
  tn_status health(tn_diag* diag) override { return Fake::get().lost ? gone(diag) : tn_status{TN_OK}; }
  uint64_t native() const override { return 55; }

 private:
  const Caps caps_;
};

class FakeDriver final : public Driver {
 public:
  uint32_t native_kind() const override { return TN_KIND_OPENCL; }
  std::vector<DeviceFacts> enumerate() override {
    std::vector<DeviceFacts> all(static_cast<size_t>(Fake::get().devices));
    for (uint32_t i = 0; i < all.size(); ++i) {
      all[i].info.kind = TN_KIND_OPENCL;
      all[i].info.mem_total_bytes = 1 << 24;
      all[i].info.n_spaces = 2;
      all[i].gpu = caps_of(i);
      all[i].max_alloc_bytes = Fake::get().max_alloc;
    }
    return all;
  }
  tn_status open_device(uint32_t index, std::unique_ptr<Device>* out, tn_diag*) override { return *out = std::make_unique<FakeDevice>(index), TN_OK; }
};

std::shared_ptr<const KernelSpec> spec_of(const char* name, bool can_fail) {
  auto spec = std::make_shared<KernelSpec>();
  spec->name = name;
  spec->buffers = {{"x", TN_U32, true}};
  spec->scalars = {{"first", TN_U32}, {"count", TN_U32}, {"more", TN_U32}};
  spec->can_fail = can_fail;
  return spec;
}

}  // namespace
}  // namespace test

const char* driver_name() { return "fake"; }
tn_status make_driver(const tn_host*, std::unique_ptr<Driver>* out, tn_diag*) { return *out = std::make_unique<test::FakeDriver>(), TN_OK; }

// Recipes: row 0 "inc" for TN_OPID 1, row 1 "bad" for op 2; one u32 operand, one push slot.
uint32_t row_count() { return 2; }
RowInfo row_info(uint32_t row) { return row == 0 ? RowInfo{"inc", 1, 200} : RowInfo{"bad", 2, 200}; }
std::vector<tn_constraint> row_constraints(uint32_t, const Caps&) { return {{0, TN_NEED_DTYPE, 0, uint64_t{1} << TN_U32, 0, 0}}; }
tn_status row_supports(uint32_t, const Caps&, const tn_op&, tn_support*, tn_diag*) { return TN_OK; }
tn_status make_recipe(const Caps&, uint32_t row, const tn_op& op, Recipe* out, tn_diag*) {
  Step s;
  s.spec = test::spec_of(row == 0 ? "inc" : "bad", row == 1);
  const uint64_t n = static_cast<uint64_t>(op.type[0].dim[0]);
  s.reach = {{0, 0, n * 4}};
  s.params.resize(16);
  const uint32_t count = static_cast<uint32_t>(n);
  std::memcpy(s.params.data() + 4, &count, 4);
  s.patches = {{Patch::ElementStart, 4, 0, 0}, {Patch::Push, 4, 0, 8}};
  out->steps = {s};
  out->n_views = 1;
  return TN_OK;
}
void describe_failure(const KernelSpec& spec, const uint32_t word[4], tn_diag* diag) {
  report(diag, TN_E_FAILED, gpu_error_id(997), "%s failed\nwhy: element %u\ntry: nothing", spec.name.c_str(), word[1]);
}
RenderOptions render_options(const KernelSpec&, const Caps&) { return {}; }
std::string render(const KernelSpec& spec, const RenderOptions&) { return "text of " + spec.name; }

}  // namespace tenon::gpu
