// ops/reference/interpreter.h - runs a scalar program block by block.
//
//   Program p;  p.resolve(*program, diag);         // once: finds the loop of every instruction
//   Session s(p, push);                            // per thread and launch: constants filled in
//   s.index_space(out_type);                       // only needed when the program has INDEX
//   s.run(n, first, inputs, nullptr);              // inputs[k]: n dense elements of input k
//   const void* y = s.value(p.out[0]);             // n dense elements
//
// Owns: Program is a value; Session holds its scratch (about 140 KiB, meant for the stack) and allocates nothing.
#pragma once
#include "ops/reference/cast.h"
#include "ops/reference/eval.h"
#include "ops/reference/walk.h"

namespace tenon::reference {

struct Step {
  uint8_t op = 0, type = 0;
  uint16_t a = 0, b = 0, c = 0;
  EvalFn eval = nullptr;
  CastFn cast = nullptr;
};

struct Program {
  int n_inst = 0, n_in = 0, n_out = 0, n_slots = 0;
  uint16_t out[TN_PROGRAM_MAX_OUT] = {};
  bool has_index = false, has_axis_index = false;
  Step step[TN_PROGRAM_MAX_INST];
  // TN_E_UNSUPPORTED names the first instruction that has no meaning here. Order and types are the core's to validate.
  tn_status resolve(const tn_program& source, tn_diag* diag);
  uint32_t out_dtype(int k) const { return step[out[k]].type; }
  uint32_t in_dtype(int k) const;  // 0 if the input is never read
};

class Session {
 public:
  Session(const Program& program, const void* push);
  // The space INDEX counts in: dims of the output, row-major.
  void index_space(int rank, const int64_t* dim);
  // Evaluates n <= kBlock elements, the first of which has row-major number `first`. `direct`, if given, receives output 0
  // when that is the last instruction's value; value() then points there.
  void run(int64_t n, int64_t first, const void* const* inputs, void* direct);
  const void* value(uint16_t instruction) const { return value_[instruction]; }

 private:
  void fill_constant(int i, const void* push);
  void fill_index(int i, int64_t n, int64_t first);
  void fill_philox(int i, int64_t n);
  static constexpr int kPitch = kBlock * 8 + 64;  // 64 more, so that values do not share cache sets
  const Program& program_;
  int rank_ = 0;
  const int64_t* dim_ = nullptr;
  const void* value_[TN_PROGRAM_MAX_INST];
  alignas(64) char scratch_[TN_PROGRAM_MAX_INST][kPitch];
};

}  // namespace tenon::reference
