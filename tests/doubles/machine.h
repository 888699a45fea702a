// tests/doubles/machine.h - devices, streams and events of a double, below the API's names.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/doubles/block.h"
#include "tests/doubles/program.h"

namespace tenon_double {

constexpr int kMostDevices = 8;

// The sticky error of a device, 0 while it works.
int lost(int device);
void lose(int device, int code);
void repair();  // all devices

class Event {
 public:
  explicit Event(int on) : device(on) { counters_add(1); }
  ~Event() { counters_add(-1); }
  const int device;
  uint64_t record() {
    std::lock_guard lock(mutex_);
    return ++recorded_;
  }
  void finish(uint64_t number);
  bool done();
  uint64_t recorded();
  void wait(uint64_t number);

 private:
  static void counters_add(int n);
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t recorded_ = 0, finished_ = 0;
};

// In-order work. Without ASYNC a task runs when it is put; with it, in the stream's thread, after the delay.
class Stream {
 public:
  explicit Stream(int on);
  ~Stream();  // after its work
  const int device;
  void put(std::function<void()> task);
  void finish_all();

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, ending_ = false;
  const bool async_;
  std::thread thread_;
};

struct Function { std::shared_ptr<Module> module; const TenonKernel* kernel = nullptr; std::string name; };

// All return the API's number. A device that is lost returns its error; work that it still holds is dropped.
int copy(Stream*, void* dst, const void* src, uint64_t bytes, bool dst_is_host, bool src_is_host);
int set_words(Stream*, uint64_t dst, unsigned value, uint64_t words);
int launch(Stream*, const std::shared_ptr<Function>&, TenonIndex grid, TenonIndex block, void** arguments, uint32_t warp, uint64_t most_items);

}  // namespace tenon_double
