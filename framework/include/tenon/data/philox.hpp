// tenon/data/philox.hpp - Philox4x32-10: random numbers as a pure function of a counter and a key, so that what sample 17
// of epoch 3 gets depends on nothing else: not on threads, batch size or what was drawn before.
//
//   tenon::data::RandomStream r({seed, epoch, sample, transform});
//   uint32_t dx = r.below(9);
//
// Header only; a stream is used by one thread, making one costs nothing.
#pragma once
#include <array>
#include <cstdint>

namespace tenon::data {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return counter;
}

// What a stream is for. seed is the key; the rest fills the counter, so streams never overlap
// (up to 2^32 epochs, 256 purposes and 2^26 draws).
struct StreamName { uint64_t seed = 0; uint32_t epoch = 0; uint64_t index = 0; uint32_t purpose = 0; };

class RandomStream {
 public:
  explicit RandomStream(StreamName name) : name_(name) {}
  uint32_t next() {
    if (used_ == 4) refill();
    return block_[used_++];
  }
  // Uniform over 0..n-1, without bias (rejection); n > 0.
  uint32_t below(uint32_t n) {
    const uint32_t threshold = (0u - n) % n;
    for (;;) {
      const uint64_t product = uint64_t{next()} * n;
      if (static_cast<uint32_t>(product) >= threshold) return static_cast<uint32_t>(product >> 32);
    }
  }
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }  // [0, 1)

 private:
  void refill() {
    block_ = philox4x32({static_cast<uint32_t>(name_.index), static_cast<uint32_t>(name_.index >> 32), name_.epoch, name_.purpose << 24 | draw_++},
                        {static_cast<uint32_t>(name_.seed), static_cast<uint32_t>(name_.seed >> 32)});
    used_ = 0;
  }
  StreamName name_;
  PhiloxBlock block_{};
  uint32_t used_ = 4, draw_ = 0;
};

}  // namespace tenon::data
