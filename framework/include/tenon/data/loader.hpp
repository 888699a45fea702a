// tenon/data/loader.hpp - batches of normalised f32 images, made ahead of time by a background thread.
//
//   DataLoader loader(dataset, {.batch = 128, .seed = 1});
//   Batch batch;
//   for (auto more = loader.next(batch); more && *more; more = loader.next(batch)) train(batch.x.data(), batch.y.data(), batch.size);
//   save(loader.state());                                // resumes with the very next batch, on any number of ranks
//
// One thread uses a loader at a time. After fork() the child may go on using it: it starts a thread of its own.
// Errors: those of the dataset; TN-DATA-016 options that make no sense. An exception thrown by a dataset or a transform
// is thrown again by next(); after an error next() tries the same batch again.
#pragma once
#include <tenon/data/sampler.hpp>
#include <tenon/data/transforms.hpp>

#include <memory>
#include <vector>

namespace tenon::data {

struct LoaderOptions {
  uint32_t batch = 32;          // samples per batch and rank
  bool shuffle = true;
  bool drop_last = false;       // leave out a last batch that is not full
  uint64_t seed = 0;
  uint32_t rank = 0, world = 1; // this process takes positions offset + rank, + world, ...; no sample twice, none padded
  uint32_t prefetch = 2;        // batches made ahead; 0: made by the caller's thread
  std::vector<std::shared_ptr<const PixelTransform>> transforms;
  Normalise normalise;
};

struct Batch {
  uint32_t size = 0;             // samples; with several ranks the last batch of an epoch may be smaller, even empty
  ImageShape shape;
  std::vector<float> x;          // size x shape.pixels(), NCHW
  std::vector<int64_t> y;        // size
  std::vector<uint64_t> indices; // size: which samples of the dataset
  SamplerState next;             // the state after this batch
};

class DataLoader {
 public:
  DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;
  ~DataLoader();  // stops and joins the thread; waits for a read under way at most

  // Fills `batch` (its buffers are reused). false: the epoch is over, the next call starts the next one. May wait.
  Result<bool> next(Batch& batch);
  uint64_t batches_per_epoch() const;  // the same for all ranks
  uint64_t batches_left() const;       // in the epoch under way
  const Dataset& dataset() const;

  // What next() will deliver, whatever was made ahead. restore() throws away what was made ahead.
  SamplerState state() const;
  Status restore(const SamplerState& state);  // TN-DATA-016: offset beyond the dataset

 private:
  class Assembler;
  class Worker;
  Worker& worker();
  std::shared_ptr<Assembler> assembler_;
  std::unique_ptr<Worker> worker_;
  LoaderOptions options_;
  SamplerState state_;
};

}  // namespace tenon::data
