// backends/cpu/pointwise/program.h - a scalar program made ready to run block by block.
//
//   Program p; p.compile(isa, source, in_dtypes, uniform_inputs);
//   alignas(64) char scratch[kScratchBytes];
//   Runner r(p, push, scratch);  r.input(0, x);  r.output(0) = y;  r.start(n);  r.run(n);
//
// A block is a few hundred elements, so that all values of a program stay in the L1 cache. Constants and inputs that do
// not change over the range (uniform) are spread over one block at start(); what depends on them alone is computed there.
// Threads: a Program is immutable after compile; a Runner belongs to one thread.
#pragma once
#include "backends/cpu/pointwise/block_ops.h"
#include "backends/cpu/pointwise/chain.h"

namespace tenon::cpu {

constexpr int64_t kScratchBytes = 64 * 1024;
constexpr int kMaxPointers = TN_PROGRAM_MAX_INST + TN_PROGRAM_MAX_IN + TN_PROGRAM_MAX_OUT + 4;

// chain >= 0: that chain of the program, starting from a; else fn.
struct Step { BlockFn fn; uint8_t dst, a, b, c, d; int16_t chain = -1; };

class Program {
 public:
  // Makes the steps. False when an instruction has no code here: name_unsupported() says which beforehand.
  // `uniform_inputs`: bit k = input k has the same value at every element.
  bool compile(Isa, const tn_program&, const uint8_t* in_dtypes, uint32_t uniform_inputs);
  // The first instruction without code, or -1.
  static int find_unsupported(Isa, const tn_program&, const uint8_t* in_dtypes);

  // Pointer numbers.
  uint32_t in(uint32_t k) const { return k; }
  uint32_t out(uint32_t k) const { return n_in + k; }

  uint32_t n_in = 0, n_out = 0, n_pointers = 0;
  uint32_t uniform = 0;               // inputs
  uint8_t in_dtype[TN_PROGRAM_MAX_IN]{}, out_dtype[TN_PROGRAM_MAX_OUT]{};
  uint16_t late_inputs[TN_PROGRAM_MAX_OUT]{};  // read after the output is written: an alias of one forbids writing in place
  int64_t block = 512;                // elements
  int64_t slot_bytes = 0;             // of one block of one value
  std::vector<Step> once, steps;      // before the range; per block
  struct Chain { uint8_t n, op[kMostLinks], pointer[kMostLinks]; };
  std::vector<Chain> chains;
  ChainFn chain_fn = nullptr;
  struct Constant { uint8_t pointer, push_slot, size; };
  std::vector<Constant> constants;
  struct Index { uint8_t pointer, dtype; uint16_t axis; };
  std::vector<Index> indices;
  struct Copy { uint8_t out, from, size; };
  std::vector<Copy> copies;           // outputs that are an input, a constant or another output's value
  double ns_per_element = 0;          // one thread, data in cache

 private:
  struct Lowering;
};

// The running state of one thread over one range.
class Runner {
 public:
  Runner(const Program& p, const void* push, char* scratch) : p_(p), push_(static_cast<const char*>(push)), scratch_(scratch) {}
  void input(uint32_t k, const void* p) { pointer_[k] = static_cast<char*>(const_cast<void*>(p)); }  // only read through
  char*& output(uint32_t k) { return pointer_[p_.n_in + k]; }
  // Buffers of one block for operands that cannot be used in place.
  char* stage_in(uint32_t k) const { return scratch_ + k * p_.slot_bytes; }
  char* stage_out(uint32_t k) const { return scratch_ + (p_.n_in + k) * p_.slot_bytes; }
  // Spreads constants and the uniform inputs (whose pointers are at one element now) over min(n, block) elements.
  void start(int64_t n);
  // Memory that the next block touches: fetched piece by piece between the steps of run(), so that misses and arithmetic
  // overlap. Forgotten after run().
  void expect(const char* p, int64_t bytes) {
    if (n_ahead_ < kMostAhead) ahead_[n_ahead_++] = {p, p + bytes, (bytes / int64_t(p_.steps.size() + p_.copies.size() + (p_.steps.empty() && p_.copies.empty())) + 63) / 64 * 64};
  }
  // One block of n elements, a multiple of kGranule.
  void run(int64_t n) {
    for (const Step& s : p_.steps) {
      if (n_ahead_) fetch();
      step(s, n);
    }
    n_ahead_ = 0;
    for (const Program::Copy& c : p_.copies) std::memcpy(pointer_[c.out], pointer_[c.from], size_t(n * c.size));
  }
  char* pointer(uint32_t k) const { return pointer_[k]; }

 private:
  const Program& p_;
  const char* push_;
  char* scratch_;
  char* pointer_[kMaxPointers];
  static constexpr int kMostAhead = 8;
  struct Ahead { const char *at, *end; int64_t piece; } ahead_[kMostAhead];
  int n_ahead_ = 0;

  void step(const Step& s, int64_t n) {
    if (s.chain < 0) return s.fn(pointer_[s.dst], pointer_[s.a], pointer_[s.b], pointer_[s.c], pointer_[s.d], n);
    const Program::Chain& c = p_.chains[size_t(s.chain)];
    Link links[kMostLinks];
    for (int k = 0; k < c.n; ++k) links[k] = {reinterpret_cast<const float*>(pointer_[c.pointer[k]]), ChainOp(c.op[k])};
    p_.chain_fn(reinterpret_cast<float*>(pointer_[s.dst]), reinterpret_cast<const float*>(pointer_[s.a]), links, c.n, n);
  }
  void fetch() {
    for (int k = 0; k < n_ahead_; ++k) {
      Ahead& a = ahead_[k];
      for (const char* stop = a.end - a.at < a.piece ? a.end : a.at + a.piece; a.at < stop; a.at += 64) __builtin_prefetch(a.at, 0, 3);
    }
  }
};

// n copies of the element at `value`.
void fill_elements(char* dst, const void* value, int64_t size, int64_t n);

}  // namespace tenon::cpu
