#include <tenon/data/philox.hpp>
#include <tenon/data/sampler.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tenon::data {
namespace {

// Steele, Lea and Flood's finaliser: every output bit depends on every input bit.
uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

constexpr uint32_t kPermutationPurpose = 0xFE;  // transforms count up from 0, so streams stay apart

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size) {
  // At least 8 bits: halves of one or two bits have too few round functions to make all orders equally likely.
  const uint32_t bits = std::max<uint32_t>(8, size > 1 ? static_cast<uint32_t>(std::bit_width(size - 1)) : 0);
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  // The epoch's low half goes where a sample's epoch goes, its high half where the sample's index goes.
  RandomStream stream({seed, static_cast<uint32_t>(epoch), epoch >> 32, kPermutationPurpose});
  for (uint64_t& key : keys_) {
    const uint64_t high = stream.next();
    key = high << 32 | stream.next();
  }
}

uint64_t Permutation::mix(uint64_t value) const {
  const uint64_t left_mask = (uint64_t{1} << left_bits_) - 1, right_mask = (uint64_t{1} << right_bits_) - 1;
  uint64_t left = value >> right_bits_, right = value & right_mask;
  for (int round = 0; round < kRounds; round += 2) {
    left ^= scramble(right + keys_[static_cast<size_t>(round)]) >> 17 & left_mask;
    right ^= scramble(left + keys_[static_cast<size_t>(round) + 1]) >> 17 & right_mask;
  }
  return left << right_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t position) const {
  if (size_ <= 1) return 0;
  do position = mix(position);
  while (position >= size_);
  return position;
}

}  // namespace tenon::data
