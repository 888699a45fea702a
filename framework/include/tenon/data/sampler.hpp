// tenon/data/sampler.hpp - the order of samples as a function of (seed, epoch, position), so that the whole state of a
// shuffled pass over the data is three numbers and nothing is ever materialised.
//
//   ShuffleSampler sampler(dataset->size(), 42);
//   uint64_t index = sampler.index_at(0, 17);           // epoch 0, 18th sample
//
// Method: a Feistel network of 8 rounds, its round function a 64-bit mixer keyed by Philox(seed, epoch), permutes the
// smallest power of two (256 or more) that holds all indices; results outside 0..size-1 are sent through again (cycle
// walking, fewer than 2 passes on average above 128 samples). Every epoch visits every index exactly once.
#pragma once
#include <array>
#include <cstdint>

namespace tenon::data {

// Resuming needs these three, at any number of ranks and any batch size.
struct SamplerState {
  uint64_t seed = 0, epoch = 0;
  uint64_t offset = 0;  // samples of this epoch already handed out, over all ranks
  bool operator==(const SamplerState&) const = default;
};

// One epoch's permutation of 0..size-1. Cheap to make and copy; const functions from any thread.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch);
  uint64_t operator()(uint64_t position) const;  // position < size

 private:
  static constexpr int kRounds = 8;
  uint64_t mix(uint64_t value) const;
  uint64_t size_;
  uint32_t left_bits_, right_bits_;
  std::array<uint64_t, kRounds> keys_;
};

class ShuffleSampler {
 public:
  // shuffle = false: index equals position.
  ShuffleSampler(uint64_t size, uint64_t seed, bool shuffle = true) : size_(size), seed_(seed), shuffle_(shuffle), current_(size, seed, 0) {}
  uint64_t size() const { return size_; }
  // position < size(). One thread at a time (the last epoch's keys are kept).
  uint64_t index_at(uint64_t epoch, uint64_t position) {
    if (!shuffle_) return position;
    if (epoch != epoch_) current_ = Permutation(size_, seed_, epoch), epoch_ = epoch;
    return current_(position);
  }

 private:
  uint64_t size_, seed_, epoch_ = 0;
  bool shuffle_;
  Permutation current_;
};

}  // namespace tenon::data
