// backends/cpu/matmul/matmul.h - shapes of one matmul op and the program after it, shared by the f32 and AMX rows.
#pragma once
#include "backends/cpu/core.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/pointwise/space.h"

namespace tenon::cpu {

struct MatmulShape {
  int64_t m, n, k, batch;
  int64_t a_row, a_col, b_row, b_col, c_row;  // elements
  int rank;                                   // batch axes
  int64_t dim[TN_MAX_RANK], a_step[TN_MAX_RANK], b_step[TN_MAX_RANK], c_step[TN_MAX_RANK];
  // Element offsets of batch number `i`.
  void offsets(int64_t i, int64_t* a, int64_t* b, int64_t* c) const;
};
MatmulShape matmul_shape(const tn_op&);

// A program over the whole output: input 0 is the product, which lies in the output itself.
struct Epilogue {
  bool present = false;
  Program program;
  Space space;  // operands: product, further inputs, output
  bool build(const Instance&, const tn_op&);
  void run(const Instance&, const tn_launch*) const;
};
// Whether post (if any) can run here; fills diag when not.
tn_status check_post(tn_instance*, const tn_op&, uint32_t accumulator, tn_support*, tn_diag*);

}  // namespace tenon::cpu
