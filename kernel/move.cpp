#include "kernel/move.h"

#include <cstdio>

#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

double bytes_of(const std::vector<tn_type>& types) {
  double bytes = 0;
  for (const tn_type& t : types)
    if (t.dtype) bytes += static_cast<double>(dense_bytes(t));
  return bytes;
}

std::vector<tn_type> out_types_of(const tn_plan& plan) {
  std::vector<tn_type> types;
  for (const PlanOutput& o : plan.outputs) types.push_back(o.place.type);
  return types;
}

}  // namespace

std::vector<Device*> stand_ins(Runtime& rt, const Device* asked) {
  std::vector<Device*> found;
  for (Device* d : rt.devices())
    if (d != asked && d->info.kind == TN_KIND_CPU && d->inline_work && d->verdict == 0) found.push_back(d);
  return found;
}

double moving_ns(const Request& request, const std::vector<tn_type>& out_types, const Device& other) {
  return transfer_ns(*request.device, other, bytes_of(request.in)) + transfer_ns(other, *request.device, bytes_of(out_types));
}

tn_status make_elsewhere(Runtime& rt, const Request& asked, MakePlan make, tn_plan** out) {
  tn_plan* best = nullptr;
  double best_ns = 0, best_move = 0;
  for (Device* other : stand_ins(rt, asked.device)) {
    Request request = asked;
    request.device = other;
    tn_plan* plan = nullptr;
    tn_diag ignored{};
    if (other->open(&ignored) || make(rt, request, &plan, &ignored) != TN_OK) continue;
    const double move = moving_ns(asked, out_types_of(*plan), *other), ns = plan->est_ns + move;
    if (best && best_ns <= ns) {
      release_plan(plan);
      continue;
    }
    release_plan(best);
    best = plan, best_ns = ns, best_move = move;
  }
  if (!best) return TN_E_UNSUPPORTED;
  best->move_ns = best_move;
  *out = best;
  return TN_OK;
}

DecisionRows rows_elsewhere(Runtime& rt, const Request& asked, const std::vector<tn_type>& out_types) {
  DecisionRows best;
  for (Device* other : stand_ins(rt, asked.device)) {
    Request request = asked;
    request.device = other;
    Decision decision;
    tn_diag ignored{};
    if (other->open(&ignored) || decide(rt, request, out_types, &decision, 0, &ignored) || !decision.has_winner) continue;
    tn_candidate row = shown_rows(decision, request, out_types, 0).front();
    row.kind = TN_ROW_MOVE;
    row.move_ns = moving_ns(asked, out_types, *other);
    std::snprintf(row.reason, sizeof row.reason, "runs on %s, with %.0f ns for moving operands and results", other->name, row.move_ns);
    if (best.empty() || row.est_ns + row.move_ns < best[0].est_ns + best[0].move_ns) best.assign(1, row);
  }
  return best;
}

}  // namespace tenon::kernel
