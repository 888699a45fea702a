// ops/primitive/reduce.h - what the reduce primitive computes with, shared by its shape rule and its derivative.
#pragma once
#include "ops/emit.h"

namespace tenon::ops {

struct ReduceParts {
  int64_t monoid;
  std::vector<int64_t> axes;
  bool keepdims;
  const tn_program* pre;   // nullptr = identity
  const tn_program* post;  // nullptr = identity
  uint32_t element;        // dtype that pre gives (or the operand's)
  uint32_t accumulator;    // its compute type
};
ReduceParts reduce_parts(const tn_op& op);
bool is_arg(int64_t monoid);  // ARGMAX, ARGMIN

tn_status reduce_vjp(void*, tn_builder*, const tn_rule*, tn_diag*);

}  // namespace tenon::ops
