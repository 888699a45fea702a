// ops/reference/reference.h - the reference kernels of the six primitives (ops.def) on host memory.
//
//   tn_status status;
//   std::unique_ptr<Prepared> add = prepare(op, &status, diag);       // parses attributes and strides, once
//   void* data[] = {x, y, out};                                       // element [0,...,0] of each operand of op.type
//   status = add->run({data, push, host}, diag);                      // any number of times, from any thread
//
// This is both what a machine without plugins computes with and the oracle that other kernels are held to: results are
// the same on every machine and for every thread count. Sums and dot products of f16, bf16 and f8 accumulate in f32 or
// wider; sums of f32 accumulate in f64.
// Owns: Prepared owns copies of all it needs from op; data and push are borrowed for the call.
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>

#include <memory>

namespace tenon::reference {

struct Arguments {
  void* const* data;   // op.n_in inputs, then op.n_out outputs; element [0,...,0]; absent operands are ignored
  const void* push;    // 8-byte slots; may be NULL when the op reads none
  const tn_host* host; // for its thread pool and memory; NULL = this thread and the C++ heap
};

class Prepared {
 public:
  virtual ~Prepared() = default;
  // does: computes the outputs. blocks: until done. errors: TN_E_FAILED (an index outside its limit; nothing was written),
  // TN_E_OOM (scatter-add into narrow floats needs an f32 copy).
  virtual tn_status run(const Arguments&, tn_diag*) const = 0;
};

// errors: TN_E_UNSUPPORTED, TN_E_SHAPE, TN_E_OOM in *status; then NULL.
std::unique_ptr<Prepared> prepare(const tn_op& op, tn_status* status, tn_diag* diag);
// Whether prepare would succeed, without allocating.
tn_status check(const tn_op& op, tn_diag* diag);
// prepare and run in one; for tests and tools.
tn_status run(const tn_op& op, void* const* data, const void* push, const tn_host* host, tn_diag* diag);

}  // namespace tenon::reference
