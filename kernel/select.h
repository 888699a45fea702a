// kernel/select.h - choosing among the candidates of one op on one device, with a record of why.
//
// Order: pin, policy, constraints (data), supports(), measured time, estimate, tier, name. Never load order.
#pragma once
#include <memory>
#include <vector>

#include "kernel/graph.h"
#include "kernel/plan.h"

namespace tenon::kernel {

struct DecisionRow {
  tn_candidate shown{};              // what tn_why gives
  const KernelRow* kernel = nullptr;  // nullptr: the expand row
  uint64_t workspace_bytes = 0;
};

struct Decision {
  std::vector<DecisionRow> rows;         // best first
  bool has_winner = false;               // rows[0] won
  std::unique_ptr<tn_builder> expansion;  // made when the expand row was costed or won
  std::vector<uint32_t> expansion_result;
  double est_ns = 0;                     // of the winner
};

// An op with concrete types as kernels are to see it: elementwise operands broadcast and merged.
struct KernelOp {
  std::vector<tn_type> types;  // n_in, then n_out
  uint32_t n_in = 0, n_out = 0;
};
KernelOp canonical(const OpEntry& op, const AttrSet& attrs, std::vector<tn_type> types, uint32_t n_in, uint32_t n_out);
// Symbols for sizes of 2 and more (and strides other than 0 and 1) of an elementwise op; values in order of symbol number.
void make_dynamic(KernelOp* op, std::vector<int64_t>* values);

// Nodes whose outputs reach `results`.
std::vector<bool> live_nodes(const tn_builder& g, const std::vector<uint32_t>& results);

// The rows as tn_why and tn_why_plan show them: with the op, the types and the depth that were decided upon.
DecisionRows shown_rows(const Decision& decision, const Request& request, const std::vector<tn_type>& out_types, int depth);

tn_status decide(Runtime& rt, const Request& request, const std::vector<tn_type>& out_types, Decision* out, int depth, tn_diag* diag);
// What tn_call, tn_why and tn_tensor_pack ask about, from the ids of a spec. spec->device 0 leaves the device unset.
tn_status make_request(Runtime& rt, const tn_spec* spec, Request* out, tn_diag* diag);
// Says that nobody takes the op: nearest candidate and its reason.
tn_status no_candidate(const Request& request, const Decision& decision, tn_diag* diag);

}  // namespace tenon::kernel
