// ops/reference/run.cpp - choosing the primitive by op number.
#include <new>

#include "ops/reference/prepared.h"

namespace tenon::reference {
namespace {

Factory factory(uint64_t op_id) {
  switch (op_id) {
    case TN_OPID_POINTWISE: return prepare_pointwise;
    case TN_OPID_REDUCE: return prepare_reduce;
    case TN_OPID_MATMUL: return prepare_matmul;
    case TN_OPID_COPY: return prepare_copy;
    case TN_OPID_GATHER: return prepare_gather;
    case TN_OPID_SCATTER: return prepare_scatter;
    default: return nullptr;
  }
}

tn_status not_a_primitive(const tn_op& op, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable, "reference: op %llu has no reference kernel\nwhy: only the six primitives (1..6) have\ntry: let the op expand",
              static_cast<unsigned long long>(op.op_id));
}

}  // namespace

std::unique_ptr<Prepared> prepare(const tn_op& op, tn_status* status, tn_diag* diag) {
  const Factory make = factory(op.op_id);
  if (make == nullptr) {
    *status = not_a_primitive(op, diag);
    return nullptr;
  }
  try {
    return make(op, status, diag);
  } catch (const std::bad_alloc&) {
    *status = fail(diag, TN_E_OOM, kErrOutOfMemory, "reference: no memory for a plan\nwhy: the heap is exhausted\ntry: free memory");
    return nullptr;
  }
}

tn_status check(const tn_op& op, tn_diag* diag) {
  if (factory(op.op_id) == nullptr) return not_a_primitive(op, diag);
  Program scratch;
  for (uint32_t key : {uint32_t{TN_KEY_PROGRAM}, uint32_t{TN_KEY_PRE}, uint32_t{TN_KEY_POST}})
    if (const tn_program* p = attr_program(op, key))
      if (tn_status s = scratch.resolve(*p, diag); s != TN_OK) return s;
  return TN_OK;
}

tn_status run(const tn_op& op, void* const* data, const void* push, const tn_host* host, tn_diag* diag) {
  tn_status status = TN_OK;
  const std::unique_ptr<Prepared> p = prepare(op, &status, diag);
  return p != nullptr ? p->run({data, push, host}, diag) : status;
}

}  // namespace tenon::reference
