// ops/reference/prepared.h - what the primitives' files share: attribute access, threads, and their factories.
#pragma once
#include "ops/reference/diag.h"
#include "ops/reference/interpreter.h"
#include "ops/reference/reference.h"

#include <type_traits>

namespace tenon::reference {

inline const tn_attr* find_attr(const tn_op& op, uint32_t key) {
  for (int i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == key) return &op.attr[i];
  return nullptr;
}
inline int64_t attr_int(const tn_op& op, uint32_t key, int64_t fallback) {
  const tn_attr* a = find_attr(op, key);
  return a != nullptr ? a->v.i : fallback;
}
inline const tn_program* attr_program(const tn_op& op, uint32_t key) {
  const tn_attr* a = find_attr(op, key);
  return a != nullptr ? static_cast<const tn_program*>(a->v.p) : nullptr;
}

// Runs f(begin, end) over 0..n in pieces of at least grain, on the host's pool if there is one and it is worth it.
template <class F> void parallel(const tn_host* host, int64_t n, int64_t grain, F f) {
  if (host == nullptr || host->parallel == nullptr || n <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  host->parallel(host->ctx, n, grain, [](void* arg, int64_t begin, int64_t end, uint32_t) { (*static_cast<F*>(arg))(begin, end); }, &f);
}

// Each returns a primitive ready to run, or NULL with *status and diag filled.
using Factory = std::unique_ptr<Prepared> (*)(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_pointwise(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_reduce(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_matmul(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_copy(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_gather(const tn_op&, tn_status*, tn_diag*);
std::unique_ptr<Prepared> prepare_scatter(const tn_op&, tn_status*, tn_diag*);

}  // namespace tenon::reference
