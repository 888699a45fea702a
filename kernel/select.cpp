#include "kernel/select.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "kernel/dims.h"
#include "kernel/fp_env.h"
#include "kernel/runtime.h"
#include "kernel/status.h"
#include "kernel/type_table.h"

namespace tenon::kernel {
namespace {

constexpr int kMaxDepth = 32;
constexpr double kReferencePenalty = 50;  // a reference kernel is not tuned: silence about its speed must not win

// From the op's own count of work and the device's rates.
Estimate estimate_for(const OpEntry& op, const tn_op& view, const Device& device) {
  double flops = 0, bytes = 0;
  tn_cost cost{};
  cost.size = sizeof cost;
  tn_diag ignored;
  if (op.def->cost && op.def->cost(op.def->ctx, &view, &cost, &ignored) == TN_OK) {
    flops = cost.flops;
    bytes = cost.bytes;
  } else {
    for (uint32_t i = 0; i < uint32_t{view.n_in} + view.n_out; ++i)
      if (view.type[i].dtype) bytes += static_cast<double>(dense_bytes(view.type[i]));
  }
  return estimate(device.rates, work_of(*op.def, view), flops, bytes);
}

void set_why(DecisionRow* row, uint32_t why, const char* reason) {
  row->shown.why = why;
  std::snprintf(row->shown.reason, sizeof row->shown.reason, "%s", reason);
}

class Chooser {
 public:
  Chooser(Runtime& rt, const Request& request, const std::vector<tn_type>& out_types, Decision* out, int depth)
      : rt_(rt), request_(request), out_types_(out_types), out_(out), depth_(depth) {}

  tn_status run(tn_diag* diag) {
    const OpEntry& op = *request_.op;
    pinned_ = rt_.pinned(op.id, request_.device->index);
    std::vector<tn_type> types = request_.in;
    types.insert(types.end(), out_types_.begin(), out_types_.end());
    const uint32_t n_in = static_cast<uint32_t>(request_.in.size()), n_out = static_cast<uint32_t>(out_types_.size());
    if (!op.derived() && !op.def->view) {
      const KernelOp seen = canonical(op, *request_.attrs, std::move(types), n_in, n_out);
      seen_ = std::make_unique<OpView>(op, *request_.attrs, std::span(seen.types).first(n_in), std::span(seen.types).subspan(n_in), request_.push_bytes, math_flags());
      for (const KernelRow* row : rt_.candidates().rows(op.def->op_id, op.def->version)) consider(*row);
    }
    if (can_expand(op)) {
      if (tn_status s = consider_expand(diag)) return s;
    }
    sort_rows();
    return TN_OK;
  }

 private:
  uint32_t math_flags() const {
    return (request_.flags & TN_CALL_DETERMINISTIC ? uint32_t{TN_MATH_DETERMINISTIC} : 0u) | (request_.flags & TN_CALL_TF32 ? uint32_t{TN_MATH_TF32} : 0u);
  }

  DecisionRow start(uint32_t kind, const char* name) {
    DecisionRow row;
    row.shown.size = sizeof row.shown;
    row.shown.kind = kind;
    row.shown.why = TN_WHY_WON;
    row.shown.device = request_.device->index;
    row.shown.est_ns = -1;
    std::snprintf(row.shown.kernel, sizeof row.shown.kernel, "%s", name);
    return row;
  }

  void consider(const KernelRow& kernel) {
    DecisionRow row = start(TN_ROW_KERNEL, kernel.info->name);
    row.kernel = &kernel;
    row.shown.plugin = kernel.plugin_index;
    row.shown.tier = kernel.info->tier;
    char reason[224];
    const uint32_t failed = check_constraints(*kernel.info, seen_->op(), *request_.attrs, *request_.device, reason, sizeof reason);
    const bool other_device = failed != kernel.info->n_cons && kernel.info->cons[failed].kind == TN_NEED_DEVICE_KIND;
    row.shown.constraint = failed;
    if (!other_device && !check_layouts(kernel, seen_->op(), rt_.layouts(), reason, sizeof reason)) {
      row.shown.constraint = kernel.info->n_cons;  // behind the kernel's own: what its extension demands
      set_why(&row, TN_WHY_CONSTRAINT, reason);
    } else if (failed != kernel.info->n_cons) {
      set_why(&row, other_device ? TN_WHY_DEVICE : TN_WHY_CONSTRAINT, reason);
    } else if (request_.flags & TN_CALL_DETERMINISTIC && !(kernel.info->flags & TN_KERNEL_DETERMINISTIC)) {
      set_why(&row, TN_WHY_POLICY, "a deterministic kernel is demanded");
    } else if (!pinned_.empty() && pinned_ != kernel.info->name) {
      set_why(&row, TN_WHY_PINNED_OTHER, ("pinned to " + pinned_).c_str());
    } else {
      ask(kernel, &row);
    }
    out_->rows.push_back(row);
  }

  void ask(const KernelRow& kernel, DecisionRow* row) {
    tn_support support{};
    support.size = sizeof support;
    tn_diag diag{};
    diag.size = sizeof diag;
    const tn_device_ref& ref = request_.device->ref_for(kernel.plugin);
    if (kernel.info->supports && call_plugin(kernel.info->supports, kernel.plugin->instance, &ref, &seen_->op(), &support, &diag) != TN_OK) {
      set_why(row, TN_WHY_REFUSED, diag.len ? diag.msg : "refused by the kernel");
      return;
    }
    if (support.est_ns > 0) {
      row->shown.est_ns = support.est_ns;
      row->shown.source = TN_FROM_TABLE;
    } else {
      const Estimate own = estimate_for(*request_.op, seen_->op(), *request_.device);
      row->shown.est_ns = own.ns * (kernel.info->tier <= TN_TIER_REFERENCE ? kReferencePenalty : 1);
      row->shown.source = own.provenance;
    }
    row->shown.workspace_bytes = row->workspace_bytes = support.workspace_bytes;
    measured(kernel, row);
    score(row);
  }

  // A time from the autotune store steers more than any estimate.
  void measured(const KernelRow& kernel, DecisionRow* row) {
    const Hooks::Use hooks(rt_.hooks());
    if (!hooks->tune_get) return;
    double ns = 0;
    if (hooks->tune_get(hooks->ctx, rt_.tune_key(request_, kernel.info->name).c_str(), &ns)) {
      row->shown.est_ns = ns;
      row->shown.source = TN_FROM_MEASURED;
    }
  }

  void score(DecisionRow* row) {
    const Hooks::Use hooks(rt_.hooks());
    if (!hooks->score) return;
    const double ns = hooks->score(hooks->ctx, &row->shown, row->shown.est_ns);
    if (ns >= 0) row->shown.est_ns = ns;
  }

  tn_status consider_expand(tn_diag* diag) {
    DecisionRow row = start(TN_ROW_EXPAND, "expand");
    row.shown.tier = TN_TIER_EXPAND;
    if (request_.flags & TN_CALL_NO_EXPAND && !request_.op->derived()) {
      set_why(&row, TN_WHY_POLICY, "policy no-expand");
    } else if (!pinned_.empty() && pinned_ != "expand") {
      set_why(&row, TN_WHY_PINNED_OTHER, ("pinned to " + pinned_).c_str());
    } else if (depth_ >= kMaxDepth) {
      set_why(&row, TN_WHY_REFUSED, "expansions nest too deeply");
    } else {
      tn_diag inner{};
      inner.size = sizeof inner;
      const tn_status s = expand(&inner);
      if (s) {
        // A rule that fails with nobody else to ask is the user's error: keep its words.
        if (out_->rows.empty()) {
          if (diag) *diag = inner;
          return s;
        }
        set_why(&row, TN_WHY_REFUSED, inner.msg);
      } else if (!usable() && depth_ == 0 && !request_.explain) {
        row.shown.est_ns = 0;  // nobody else to compare with: the plan knows the cost when its parts are chosen
      } else {
        const double ns = cost_of_parts(&inner);
        if (ns < 0) set_why(&row, TN_WHY_REFUSED, inner.msg);
        row.shown.est_ns = ns;
        row.shown.source = TN_FROM_TABLE;
        if (ns >= 0) score(&row);
      }
    }
    out_->rows.push_back(row);
    return TN_OK;
  }

  bool usable() const {
    return std::any_of(out_->rows.begin(), out_->rows.end(), [](const DecisionRow& r) { return r.shown.why == TN_WHY_WON; });
  }

  tn_status expand(tn_diag* diag) {
    auto g = std::make_unique<tn_builder>(rt_);
    std::vector<uint32_t> in, out;
    for (const tn_type& t : request_.in) in.push_back(t.dtype ? g->add_input(t) : TN_NONE);
    std::vector<uint32_t> result(out_types_.size(), TN_NONE);
    if (tn_status s = expand_into(g.get(), *request_.op, request_.attrs, math_flags(), in, out, request_.push_bytes, result, diag)) return s;
    if (g->sticky) return fail(diag, g->sticky, id(kOp, 18), "%s: its expansion failed\nwhy: a rule went on after an error (%s)\ntry: report it to the op's author", request_.op->name.c_str(), tn_status_text(g->sticky));
    out_->expansion = std::move(g);
    out_->expansion_result = std::move(result);
    return TN_OK;
  }

  // Views cost nothing, unless the strides admit none: then the op's expansion copies.
  static bool is_view(const Request& part, const std::vector<tn_type>& outs) {
    if (!part.op->def->view || part.op->derived()) return false;
    const OpView seen(*part.op, *part.attrs, part.in, outs, part.push_bytes, 0);
    ConcreteDims numbers;
    const tn_dims table = numbers.table();
    int64_t offset = 0;
    tn_diag ignored{};
    return part.op->def->view(part.op->def->ctx, &seen.op(), &table, &offset, &ignored) != TN_E_UNSUPPORTED;
  }

  // Sum over live nodes of the best candidate of each; -1 when some part has none.
  double cost_of_parts(tn_diag* diag) {
    const tn_builder& g = *out_->expansion;
    std::vector<bool> live = live_nodes(g, out_->expansion_result);
    double total = 0;
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      if (!live[n]) continue;
      const Node& node = g.nodes[n];
      Request part;
      part.op = node.op;
      part.attrs = node.attrs;
      part.device = request_.device;
      part.flags = request_.flags & ~uint32_t{TN_CALL_NO_EXPAND};
      part.push_bytes = static_cast<uint32_t>(8 * node.push.size());
      for (uint32_t v : node.in) part.in.push_back(v == TN_NONE ? tn_type{} : g.values[v].type);
      std::vector<tn_type> outs;
      for (uint32_t v : node.out) outs.push_back(g.values[v].type);
      if (is_view(part, outs)) continue;
      Decision inner;
      if (decide(rt_, part, outs, &inner, depth_ + 1, diag) != TN_OK) return -1;
      if (!inner.has_winner) {
        no_candidate(part, inner, diag);
        return -1;
      }
      total += inner.est_ns + 15;  // a step of a composite costs about that much itself
    }
    return total;
  }

  void sort_rows() {
    auto& rows = out_->rows;
    auto fits = [](const DecisionRow& r) { return r.shown.why == TN_WHY_WON && r.shown.est_ns >= 0; };
    std::stable_sort(rows.begin(), rows.end(), [&](const DecisionRow& a, const DecisionRow& b) {
      if (fits(a) != fits(b)) return fits(a);
      if (!fits(a)) return false;
      if (a.shown.est_ns != b.shown.est_ns) return a.shown.est_ns < b.shown.est_ns;
      if (a.shown.tier != b.shown.tier) return a.shown.tier > b.shown.tier;
      return std::strcmp(a.shown.kernel, b.shown.kernel) < 0;
    });
    out_->has_winner = !rows.empty() && fits(rows[0]);
    if (!out_->has_winner) return;
    out_->est_ns = rows[0].shown.est_ns;
    for (size_t i = 1; i < rows.size(); ++i) {
      if (!fits(rows[i])) continue;
      char text[96];
      if (rows[i].shown.est_ns != rows[0].shown.est_ns) {
        std::snprintf(text, sizeof text, "%.0f ns estimated, winner %.0f ns", rows[i].shown.est_ns, rows[0].shown.est_ns);
        set_why(&rows[i], TN_WHY_SLOWER, text);
      } else if (rows[i].shown.tier != rows[0].shown.tier) {
        std::snprintf(text, sizeof text, "same estimate, tier %d below %d", rows[i].shown.tier, rows[0].shown.tier);
        set_why(&rows[i], TN_WHY_TIER, text);
      } else {
        set_why(&rows[i], TN_WHY_NAME, "same estimate and tier, later name");
      }
    }
  }

  Runtime& rt_;
  const Request& request_;
  const std::vector<tn_type>& out_types_;
  Decision* out_;
  int depth_;
  std::string pinned_;
  std::unique_ptr<OpView> seen_;
};

// Product of dim and stride matches the next outer stride for every operand: both axes are one.
bool mergeable(const std::vector<tn_type>& types, int outer, int inner) {
  for (const tn_type& t : types)
    if (t.dtype && t.stride[outer] != t.stride[inner] * t.dim[inner]) return false;
  return true;
}

void remove_axis(tn_type* t, int axis) {
  for (int k = axis; k + 1 < t->rank; ++k) t->dim[k] = t->dim[k + 1], t->stride[k] = t->stride[k + 1];
  --t->rank;
  t->dim[t->rank] = t->stride[t->rank] = 0;
}

void broadcast_to(tn_type* t, const tn_type& out) {
  tn_type b = *t;
  b.rank = out.rank;
  for (int k = 0; k < out.rank; ++k) {
    const int own = k - (out.rank - t->rank);
    b.dim[k] = out.dim[k];
    b.stride[k] = own < 0 || t->dim[own] == 1 ? 0 : t->stride[own];
  }
  *t = b;
}

}  // namespace

std::vector<bool> live_nodes(const tn_builder& g, const std::vector<uint32_t>& results) {
  std::vector<bool> live(g.nodes.size(), false), wanted(g.values.size(), false);
  for (uint32_t v : results)
    if (v != TN_NONE) wanted[g.root(v)] = true;
  for (size_t n = g.nodes.size(); n-- > 0;) {
    for (uint32_t v : g.nodes[n].out) live[n] = live[n] || wanted[v];
    if (!live[n]) continue;
    for (uint32_t v : g.nodes[n].in)
      if (v != TN_NONE) wanted[g.root(v)] = true;
  }
  return live;
}

KernelOp canonical(const OpEntry& op, const AttrSet& attrs, std::vector<tn_type> types, uint32_t n_in, uint32_t n_out) {
  KernelOp k{std::move(types), n_in, n_out};
  if (!op.elementwise() || n_out == 0) return k;
  const tn_type out = k.types[n_in];
  for (uint32_t i = 0; i < n_in; ++i)
    if (k.types[i].dtype) broadcast_to(&k.types[i], out);
  if (attrs.uses_index()) return k;  // axes are named by the program
  // Output axes in descending order of stride, so that channels-last merges as well as row-major does.
  int order[TN_MAX_RANK];
  for (int a = 0; a < out.rank; ++a) order[a] = a;
  std::stable_sort(order, order + out.rank, [&](int a, int b) { return std::llabs(out.stride[a]) > std::llabs(out.stride[b]); });
  for (tn_type& t : k.types) {
    if (!t.dtype) continue;
    const tn_type old = t;
    for (int a = 0; a < out.rank; ++a) t.dim[a] = old.dim[order[a]], t.stride[a] = old.stride[order[a]];
  }
  for (int a = out.rank - 1; a >= 0; --a)
    if (k.types[n_in].dim[a] == 1)
      for (tn_type& t : k.types)
        if (t.dtype) remove_axis(&t, a);
  for (int a = k.types[n_in].rank - 2; a >= 0; --a)
    if (mergeable(k.types, a, a + 1))
      for (tn_type& t : k.types) {
        if (!t.dtype) continue;
        t.dim[a + 1] *= t.dim[a];
        remove_axis(&t, a);
      }
  return k;
}

void make_dynamic(KernelOp* op, std::vector<int64_t>* values) {
  tn_type& out = op->types[op->n_in];
  int64_t dim_symbol[TN_MAX_RANK];
  auto symbol = [&](int64_t value) {
    values->push_back(value);
    return TN_SYM(static_cast<int64_t>(values->size()) - 1);
  };
  for (int a = 0; a < out.rank; ++a) dim_symbol[a] = out.dim[a] >= 2 ? symbol(out.dim[a]) : out.dim[a];
  for (tn_type& t : op->types) {
    if (!t.dtype) continue;
    for (int a = 0; a < t.rank; ++a) {
      t.dim[a] = dim_symbol[a];
      if (t.stride[a] != 0 && t.stride[a] != 1) t.stride[a] = symbol(t.stride[a]);
    }
  }
}

DecisionRows shown_rows(const Decision& decision, const Request& request, const std::vector<tn_type>& out_types, int depth) {
  std::string call = request.op->name;
  char text[96];
  for (const tn_type& t : request.in) call += t.dtype ? std::string(" ") + type_text(t, text, sizeof text) : " -";
  call += " ->";
  for (const tn_type& t : out_types) call += t.dtype ? std::string(" ") + type_text(t, text, sizeof text) : " -";
  DecisionRows rows;
  for (const DecisionRow& r : decision.rows) {
    rows.push_back(r.shown);
    rows.back().op = request.op->id;
    rows.back().depth = static_cast<uint32_t>(depth);
    std::snprintf(rows.back().call, sizeof rows.back().call, "%s", call.c_str());
  }
  return rows;
}

tn_status decide(Runtime& rt, const Request& request, const std::vector<tn_type>& out_types, Decision* out, int depth, tn_diag* diag) {
  return Chooser(rt, request, out_types, out, depth).run(diag);
}

tn_status no_candidate(const Request& request, const Decision& decision, tn_diag* diag) {
  char types[96] = "";
  size_t used = 0;
  for (const tn_type& t : request.in) {
    char one[64];
    if (t.dtype && used < sizeof types) used += static_cast<size_t>(std::snprintf(types + used, sizeof types - used, " %s", type_text(t, one, sizeof one)));
  }
  // A kernel that reads the operands as they are stored is nearer than one that does not.
  auto distance = [&](const DecisionRow& row) {
    if (row.shown.why == TN_WHY_DEVICE) return 2;
    for (size_t i = 0; i < request.in.size(); ++i) {
      const bool own = row.kernel && row.kernel->packed && row.kernel->packed->operand == i;
      if (request.in[i].layout != (own ? uint32_t{row.kernel->layout} : uint32_t{TN_LAYOUT_STRIDED})) return 1;
    }
    return 0;
  };
  const DecisionRow* nearest = nullptr;
  for (const DecisionRow& row : decision.rows)
    if (!nearest || distance(row) < distance(*nearest)) nearest = &row;
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 19), "nothing on %s takes %s%s\nwhy: %zu candidates; nearest %s: %.80s\ntry: `tenon why` lists them all", request.device->name,
              request.op->name.c_str(), types, decision.rows.size(), nearest ? nearest->shown.kernel : "none", nearest ? nearest->shown.reason : "no plugin offers this op");
}

}  // namespace tenon::kernel
