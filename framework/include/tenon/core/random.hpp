// tenon/core/random.hpp - random numbers with a state of two words.
//
//   Generator g(42);  Tensor x = randn({3, 4}, {.generator = &g});   auto s = g.state();  ...  g.set_state(s);
//
// Element i of a random tensor is Philox4x32-10 with key `seed` and counter `offset + i`, so the same state gives the same
// numbers on every device and for any number of threads.
#pragma once
#include <atomic>
#include <cstdint>

namespace tenon {

struct GeneratorState {
  uint64_t seed = 0, offset = 0;
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : seed_(seed) {}
  GeneratorState state() const { return {seed_.load(), offset_.load()}; }
  void set_state(GeneratorState s) { seed_ = s.seed; offset_ = s.offset; }
  void seed(uint64_t s) { set_state({s, 0}); }
  // Takes n counters: the state from which they are numbered. Any thread; no two calls share a counter.
  GeneratorState take(uint64_t n) { return {seed_.load(), offset_.fetch_add(n)}; }

 private:
  std::atomic<uint64_t> seed_, offset_{0};
};

Generator& default_generator();    // of the default runtime
void manual_seed(uint64_t seed);   // of the default generator

}  // namespace tenon
