#include <unistd.h>

#include "loader_detail.hpp"

namespace tenon::data {

DataLoader::Worker::Worker(std::shared_ptr<Assembler> assembler, SamplerState start, uint32_t capacity)
    : assembler_(std::move(assembler)), capacity_(capacity), process_(::getpid()), thread_([this, start] { run(start); }) {}

DataLoader::Worker::~Worker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  emptied_.notify_all();
  thread_.join();
}

bool DataLoader::Worker::in_this_process() const { return process_ == ::getpid(); }

DataLoader::Worker::Item DataLoader::Worker::make(const SamplerState& state) {
  Item item;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!spare_.empty()) item.batch = std::move(spare_.back()), spare_.pop_back();
  }
  try {
    item.status = assembler_->assemble(state, item.batch, &item.end);
  } catch (...) {
    item.exception = std::current_exception();
  }
  return item;
}

void DataLoader::Worker::run(SamplerState state) {
  for (bool failed = false; !failed;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      emptied_.wait(lock, [this] { return stop_ || ready_.size() < capacity_; });
      if (stop_) return;
    }
    Item item = make(state);
    state = item.batch.next;
    failed = item.failed();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(std::move(item));
    }
    filled_.notify_one();
  }
}

DataLoader::Worker::Item DataLoader::Worker::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  filled_.wait(lock, [this] { return !ready_.empty(); });
  Item item = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  emptied_.notify_one();
  return item;
}

void DataLoader::Worker::give_back(Batch&& batch) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (spare_.size() <= capacity_) spare_.push_back(std::move(batch));
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : assembler_(std::make_shared<Assembler>(std::move(dataset), options)), options_(std::move(options)), state_{options_.seed, 0, 0} {}

DataLoader::~DataLoader() {
  if (worker_ && !worker_->in_this_process()) static_cast<void>(worker_.release());
}

// In a forked child the old worker has no thread, and its mutex may be held for ever: it is left alone, not destroyed. The
// assembler may have been caught half-way too, so the child gets a new one.
DataLoader::Worker& DataLoader::worker() {
  if (worker_ && !worker_->in_this_process()) {
    static_cast<void>(worker_.release());
    const std::shared_ptr<const Dataset> dataset(assembler_, &assembler_->dataset());
    assembler_ = std::make_shared<Assembler>(dataset, options_);
  }
  if (!worker_) worker_ = std::make_unique<Worker>(assembler_, state_, options_.prefetch);
  return *worker_;
}

Result<bool> DataLoader::next(Batch& batch) {
  if (!assembler_->options_status().ok()) return assembler_->options_status();
  if (options_.prefetch == 0) {
    bool end = false;
    Status status = assembler_->assemble(state_, batch, &end);
    if (!status.ok()) return status;
    state_ = batch.next;
    if (end) batch.size = 0;
    return !end;
  }
  Worker& source = worker();
  Worker::Item item = source.take();
  if (item.failed()) {
    worker_.reset();
    if (item.exception) std::rethrow_exception(item.exception);
    return item.status;
  }
  state_ = item.batch.next;
  if (item.end) item.batch.size = 0;
  std::swap(batch, item.batch);
  source.give_back(std::move(item.batch));
  return !item.end;
}

uint64_t DataLoader::batches_per_epoch() const { return assembler_->batches_left(0); }
uint64_t DataLoader::batches_left() const { return assembler_->batches_left(state_.offset); }
const Dataset& DataLoader::dataset() const { return assembler_->dataset(); }
SamplerState DataLoader::state() const { return state_; }

Status DataLoader::restore(const SamplerState& state) {
  if (state.offset > dataset().size())
    return {io::data_error(16), "loader: state of another dataset", "its offset is " + std::to_string(state.offset) + "; the dataset has " + std::to_string(dataset().size()) + " samples",
            "resume with the data the run was started with", ""};
  if (worker_ && !worker_->in_this_process()) static_cast<void>(worker_.release());
  worker_.reset();
  if (state.seed != options_.seed) {
    options_.seed = state.seed;
    const std::shared_ptr<const Dataset> dataset(assembler_, &assembler_->dataset());
    assembler_ = std::make_shared<Assembler>(dataset, options_);
  }
  state_ = state;
  return {};
}

}  // namespace tenon::data
