// The two halves of a DataLoader; internal to framework/data.
#pragma once
#include <tenon/data/loader.hpp>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <sys/types.h>

namespace tenon::data {

// Makes the batch that follows a state. Used by one thread at a time; knows nothing of threads.
class DataLoader::Assembler {
 public:
  Assembler(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  // *end: the epoch holds no further batch; then batch.next is the start of the next epoch.
  Status assemble(const SamplerState& state, Batch& batch, bool* end);
  uint64_t batches_left(uint64_t offset) const;
  const Dataset& dataset() const { return *dataset_; }
  const Status& options_status() const { return options_status_; }

 private:
  void choose(const SamplerState& state, uint64_t first, uint64_t last, Batch& batch);
  void finish_image(const SamplerState& state, Batch& batch, uint32_t i);
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Status options_status_;
  ShuffleSampler sampler_;
  std::vector<uint8_t> pixels_, scratch_;
};

// A thread that keeps up to `capacity` finished batches ready, starting from a state.
class DataLoader::Worker {
 public:
  struct Item {
    Batch batch;
    bool end = false;
    Status status;
    std::exception_ptr exception;
    bool failed() const { return exception != nullptr || !status.ok(); }
  };
  Worker(std::shared_ptr<Assembler> assembler, SamplerState start, uint32_t capacity);
  ~Worker();
  Item take();               // waits for the next item; after a failed one there are no more
  void give_back(Batch&& b); // buffers to be used again
  bool in_this_process() const;

 private:
  void run(SamplerState state);
  Item make(const SamplerState& state);
  std::shared_ptr<Assembler> assembler_;
  uint32_t capacity_;
  pid_t process_;
  std::mutex mutex_;
  std::condition_variable filled_, emptied_;
  std::deque<Item> ready_;
  std::vector<Batch> spare_;
  bool stop_ = false;
  std::thread thread_;       // last: it uses all of the above
};

}  // namespace tenon::data
