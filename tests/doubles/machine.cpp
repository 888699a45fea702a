#include "tests/doubles/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/doubles/memory.h"
#include "tests/doubles/settings.h"

namespace tenon_double {
namespace {

std::atomic<int> lost_devices[kMostDevices];

bool take_turn(uint64_t* countdown) { return *countdown != 0 && --*countdown == 0; }

// Copies of what a launch's pointers lead to: the caller may change it as soon as the call has returned.
struct Arguments {
  std::vector<std::vector<unsigned char>> values;
  std::vector<void*> pointers;
  Arguments(const TenonKernel& kernel, void** from) {
    for (unsigned i = 0; i < kernel.n_arguments; ++i) {
      const auto* bytes = static_cast<const unsigned char*>(from[i]);
      values.emplace_back(bytes, bytes + kernel.argument_bytes[i]);
    }
    for (auto& value : values) pointers.push_back(value.data());
  }
};

bool inside(const void* address, uint64_t bytes) {
  Block b;
  return find(reinterpret_cast<uint64_t>(address), bytes, &b);
}

}  // namespace

int lost(int device) { return lost_devices[device].load(); }
void lose(int device, int code) {
  int none = 0;
  lost_devices[device].compare_exchange_strong(none, code);
}

void repair() {
  for (auto& code : lost_devices) code = 0;
}

void Event::counters_add(int n) { counters().events += n; }

void Event::finish(uint64_t number) {
  std::lock_guard lock(mutex_);
  finished_ = std::max(finished_, number);
  changed_.notify_all();
}

bool Event::done() {
  std::lock_guard lock(mutex_);
  return finished_ >= recorded_;
}

uint64_t Event::recorded() {
  std::lock_guard lock(mutex_);
  return recorded_;
}

void Event::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= number; });
}

Stream::Stream(int on) : device(on), async_(settings().async) {
  counters().streams++;
  if (async_) thread_ = std::thread([this] { work(); });
}

Stream::~Stream() {
  if (async_) {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  counters().streams--;
}

void Stream::put(std::function<void()> task) {
  if (!async_) return task();
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Stream::finish_all() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && !busy_; });
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !tasks_.empty() || ending_; });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(settings().delay_us));
    task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

// Pageable memory: what is copied from it is taken at once, what is copied to it is there when the call returns. Pinned memory is
// read and written when the stream comes to it.
int copy(Stream* stream, void* dst, const void* src, uint64_t bytes, bool dst_is_host, bool src_is_host) {
  if (const int code = lost(stream->device)) return code;
  if (bytes == 0) return 0;
  if (!(dst_is_host || inside(dst, bytes)) || !(src_is_host || inside(src, bytes))) return 1;
  const int device = stream->device;
  if (src_is_host && !is_pinned(src, bytes)) {
    const auto* from = static_cast<const unsigned char*>(src);
    auto staged = std::make_shared<std::vector<unsigned char>>(from, from + bytes);
    stream->put([=] {
      if (lost(device) == 0) std::memcpy(dst, staged->data(), bytes);
    });
    return 0;
  }
  stream->put([=] {
    if (lost(device) == 0) std::memmove(dst, src, bytes);
  });
  if (dst_is_host && !is_pinned(dst, bytes)) stream->finish_all();
  return lost(device);
}

int set_words(Stream* stream, uint64_t dst, unsigned value, uint64_t words) {
  if (const int code = lost(stream->device)) return code;
  if (words == 0) return 0;
  if (dst % 4 != 0 || !inside(reinterpret_cast<void*>(dst), words * 4)) return 1;
  const int device = stream->device;
  stream->put([=] {
    if (lost(device) == 0) std::fill_n(reinterpret_cast<unsigned*>(dst), words, value);
  });
  return 0;
}

int launch(Stream* stream, const std::shared_ptr<Function>& function, TenonIndex grid, TenonIndex block, void** arguments, uint32_t warp, uint64_t most_items) {
  if (const int code = lost(stream->device)) return code;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool sizes = threads != 0 && grid.x != 0 && grid.y != 0 && grid.z != 0 && threads <= 1024 && block.z <= 64 && grid.x <= 0x7FFFFFFFu && grid.y <= 65535 && grid.z <= 65535;
  if (!sizes || (most_items != 0 && uint64_t{grid.x} * block.x > most_items)) return 1;
  if (threads > function->kernel->most_threads) {
    std::fprintf(stderr, "[double] kernel %s: %llu threads, compiled for %u\n", function->name.c_str(), static_cast<unsigned long long>(threads), function->kernel->most_threads);
    return 1;
  }
  counters().launches++;
  if (take_turn(&settings().launch_fails_at)) return 701;
  const bool loses = take_turn(&settings().lost_at);
  const int device = stream->device;
  auto copied = std::make_shared<Arguments>(*function->kernel, arguments);
  stream->put([=] {
    if (lost(device) != 0) return;
    if (loses) return lose(device, 719);
    Launch l{function->kernel, function->name, grid, block, copied->pointers.data(), warp, settings().reverse};
    if (const int code = run(l)) lose(device, code);
  });
  return 0;
}

}  // namespace tenon_double
