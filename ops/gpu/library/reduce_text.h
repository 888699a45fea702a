// ops/gpu/library/reduce_text.h - the body of one reduction step.
//
// Two forms. Each: a thread folds a chunk of one output's elements by itself, with `lanes` running values. Group: a work-group
// folds a chunk together and joins its threads' values in local memory. Both end either with the op's outputs (after the
// post-program) or with a part: one accumulated value for each output and chunk, which a later step folds.
#pragma once
#include "ops/gpu/library/pieces.h"

namespace tenon::gpu {

// How values are accumulated.
struct Fold {
  int64_t monoid = 0;
  uint8_t value = 0;  // dtype of what is folded, before it is widened
  uint8_t held = 0;   // dtype of the accumulator: U32, I32, U64, I64, F32 or F64
  bool arg = false, compensated = false;
};
Fold fold_of(int64_t monoid, uint32_t value_dtype, const Caps&);
// Without a wider or compensated accumulator: what scatter does to an element. Narrow floats are to be widened before.
Fold plain_fold(int64_t monoid, uint32_t value_dtype);
std::string join_function(const Fold&);  // defines tn_join(a, b) on held values
uint8_t result_dtype(const Fold&);  // as post and the output see it

struct ReduceStep {
  Space space;                 // kept axes, then reduced ones; operands in the order inputs, outputs (or part, place)
  int kept = 1, gone = 1;      // axes of each kind
  int inputs = 1;
  Fold fold;
  const tn_program *pre = nullptr, *post = nullptr;
  bool from_parts = false, to_parts = false;
  bool grouped = false;        // form
  uint32_t threads = 1;        // of a work-group
  int lanes = 1;
  uint32_t chunks = 1;
};

// One step over one piece. `arg_first`: position of the piece's first element on the reduced axis. `empty`: the reduced space
// has no element. errors: TN_E_UNSUPPORTED.
tn_status reduce_step(const Caps&, const ReduceStep&, const Piece&, uint32_t arg_first, bool empty, Step* out, tn_diag*);

}  // namespace tenon::gpu
