// kernel/assemble.cpp - from a request to a plan: decide each part, prepare its kernel, lay out values.
//
// Expansions are flattened: a plan is one list of kernel launches over places (inputs, outputs, temporaries). Views cost
// nothing: they only change the type and offset of a place. A result that is a view of an input stays one.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernel/fp_env.h"
#include "kernel/move.h"
#include "kernel/plan.h"
#include "kernel/queue.h"
#include "kernel/runtime.h"
#include "kernel/select.h"
#include "kernel/status.h"
#include "kernel/type_table.h"

namespace tenon::kernel {
namespace {

class Assembler {
 public:
  Assembler(Runtime& rt, Device* device, uint32_t flags, tn_plan* plan, tn_diag* diag) : rt_(rt), device_(device), flags_(flags), plan_(plan), diag_(diag) {}

  // One op over places. `push` entries name slots of the plan's push, or are literals.
  tn_status op(const OpEntry& op, const AttrRef& attrs, uint32_t flags, const std::vector<Place>& in, const std::vector<tn_push>& push, uint32_t n_out,
               std::vector<Place>* out, int depth) {
    Request request;
    request.op = &op;
    request.attrs = attrs;
    request.device = device_;
    request.flags = flags;
    request.push_bytes = static_cast<uint32_t>(8 * push.size());
    for (const Place& p : in) {
      request.in.push_back(p.type);
      request.type_only.push_back(p.kind == Place::TypeOnly);
    }
    std::vector<tn_type> types;
    if (tn_status s = infer_concrete(op, *attrs, request.in, request.push_bytes, 0, n_out, &types, rt_.ops(), diag_)) return s;
    if (!op.derived() && op.def->view) {
      bool done = false;
      if (tn_status s = view(op, attrs, request, types, in[0], out, &done)) return s;
      if (done) return TN_OK;
    }
    return choose(request, types, in, push, out, depth);
  }

  tn_status graph(tn_builder& g, const std::vector<uint32_t>& results, const std::vector<Place>& in, const std::vector<tn_push>& push, std::vector<Place>* out, int depth) {
    std::vector<Place> places(g.values.size());
    for (size_t i = 0; i < g.inputs.size(); ++i) places[g.inputs[i]] = in[i];
    for (size_t v = 0; v < g.values.size(); ++v) {
      if (g.values[v].constant != TN_NONE)
        if (tn_status s = constant(g, static_cast<uint32_t>(v), &places[v])) return s;
    }
    const std::vector<bool> live = live_nodes(g, results);
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      if (!live[n]) continue;
      const Node& node = g.nodes[n];
      std::vector<Place> operands, made;
      for (uint32_t v : node.in) operands.push_back(v == TN_NONE ? Place{} : places[g.root(v)]);
      for (size_t i = 0; i < operands.size(); ++i)  // has no type, so it would be taken for an operand that is absent
        if (operands[i].kind == Place::Zero) return fail(diag_, TN_E_BUG, id(kOp, 122), "%s: operand %zu is a zero without a type\nwhy: a rule used a result that another gave as TN_NONE\ntry: report it to the op's author", node.op->name.c_str(), i);
      std::vector<tn_push> bound = node.push;
      for (tn_push& p : bound)
        if (p.from != TN_NONE) {
          if (p.from >= push.size()) return fail(diag_, TN_E_ARG, id(kOp, 120), "%s: push slot %u is missing\nwhy: %zu slots were given\ntry: pass the op's scalars", node.op->name.c_str(), p.from, push.size());
          p = push[p.from];
        }
      const uint32_t flags = (flags_ & ~uint32_t{TN_CALL_NO_EXPAND}) | (node.math_flags & TN_MATH_DETERMINISTIC ? uint32_t{TN_CALL_DETERMINISTIC} : 0u);
      if (tn_status s = op(*node.op, node.attrs, flags, operands, bound, static_cast<uint32_t>(node.out.size()), &made, depth + 1)) return s;
      for (size_t i = 0; i < node.out.size(); ++i) places[node.out[i]] = made[i];
    }
    out->clear();
    for (uint32_t v : results) {
      Place zero;
      zero.kind = Place::Zero;
      out->push_back(v == TN_NONE ? zero : places[g.root(v)]);
    }
    return TN_OK;
  }

  // Turns temporaries that are results into the plan's outputs, and says which temporaries end where.
  void finish(const std::vector<Place>& results) {
    std::vector<int> renamed(plan_->temps.size(), -1);
    for (size_t i = 0; i < results.size(); ++i) {
      PlanOutput o;
      o.place = results[i];
      if (o.place.kind == Place::Temp && o.place.offset_bytes == 0 && renamed[o.place.index] < 0 && whole(o.place)) {
        renamed[o.place.index] = static_cast<int>(i);
        o.place.kind = Place::Output;
        o.place.index = static_cast<uint16_t>(i);
        o.size_class = plan_->temps[results[i].index].size_class;
      }
      plan_->outputs.push_back(o);
    }
    auto rename = [&](Place& p) {
      if (p.kind == Place::Temp && renamed[p.index] >= 0) p.kind = Place::Output, p.index = static_cast<uint16_t>(renamed[p.index]);
    };
    for (Step& step : plan_->steps)
      for (Place& p : step.operands) rename(p);
    for (PlanOutput& o : plan_->outputs) rename(o.place);
    std::vector<int> last(plan_->temps.size(), -1);
    for (size_t s = 0; s < plan_->steps.size(); ++s)
      for (const Place& p : plan_->steps[s].operands)
        if (p.kind == Place::Temp) last[p.index] = static_cast<int>(s);
    for (const PlanOutput& o : plan_->outputs)
      if (o.place.kind == Place::Temp) last[o.place.index] = -1;  // kept by the result's view, released after
    for (size_t t = 0; t < last.size(); ++t)
      if (last[t] >= 0) plan_->steps[static_cast<size_t>(last[t])].release.push_back(static_cast<uint16_t>(t));
    simplify();
  }

 private:
  bool whole(const Place& p) const { return storage_bytes(p.type) == plan_->temps[p.index].bytes; }

  // Bytes a fresh result of that type needs: dense in some axis order.
  static uint64_t storage_bytes(const tn_type& t) { return dense_bytes(t); }

  static uint8_t alignment(uint8_t base, int64_t offset) {
    const uint8_t by_offset = offset == 0 ? 12 : static_cast<uint8_t>(std::min(12, __builtin_ctzll(static_cast<uint64_t>(offset))));
    return std::min(base, by_offset);
  }

  tn_status view(const OpEntry& op, const AttrRef& attrs, const Request& request, const std::vector<tn_type>& types, const Place& in, std::vector<Place>* out, bool* done) {
    OpView seen(op, *attrs, request.in, types, request.push_bytes, 0);
    ConcreteDims numbers;
    const tn_dims table = numbers.table();
    int64_t offset = 0;
    tn_diag inner{};
    const tn_status s = op.def->view(op.def->ctx, &seen.op(), &table, &offset, &inner);
    if (s == TN_E_UNSUPPORTED && op.def->expand) return TN_OK;  // no view of these strides: the expansion copies
    if (s) {
      if (diag_) *diag_ = inner;
      return s;
    }
    Place p = in;
    p.type = types[0];
    p.offset_bytes += offset * static_cast<int64_t>(dtype_bits(types[0].dtype)) / 8;
    p.type.align_log2 = alignment(in.type.align_log2, offset * static_cast<int64_t>(dtype_bits(types[0].dtype)) / 8);
    if (element_count(p.type) == 0) p.offset_bytes = 0;
    out->assign(1, p);
    *done = true;
    return TN_OK;
  }

  tn_status choose(const Request& request, const std::vector<tn_type>& types, const std::vector<Place>& in, const std::vector<tn_push>& push, std::vector<Place>* out, int depth) {
    const bool empty = !types.empty() && std::all_of(types.begin(), types.end(), [](const tn_type& t) { return element_count(t) == 0; });
    if (empty && !request.op->derived()) {
      for (const tn_type& t : types) out->push_back(new_temp(t));
      return TN_OK;
    }
    Decision decision;
    if (tn_status s = decide(rt_, request, types, &decision, depth, diag_)) return s;
    while (decision.has_winner && decision.rows[0].kernel) {
      const tn_status s = use_kernel(request, types, decision.rows[0], in, push, out);
      if (s == TN_OK) {
        record(decision, request, types, depth);
        return TN_OK;
      }
      if (s != TN_E_UNSUPPORTED && s != TN_E_UNAVAILABLE) return s;
      drop_winner(&decision, s);
    }
    record(decision, request, types, depth);
    if (!decision.has_winner || !decision.expansion) return no_candidate(request, decision, diag_);
    std::vector<Place> present;
    for (const Place& p : in)
      if (p.type.dtype) present.push_back(p);
    return graph(*decision.expansion, decision.expansion_result, present, push, out, depth);
  }

  // A kernel that said yes and could not prepare: noted, and the next one is taken.
  void drop_winner(Decision* decision, tn_status status) {
    DecisionRow row = decision->rows[0];
    row.shown.why = TN_WHY_PREPARE_FAILED;
    std::snprintf(row.shown.reason, sizeof row.shown.reason, "prepare failed: %s", tn_status_text(status));
    decision->rows.erase(decision->rows.begin());
    decision->rows.push_back(row);
    decision->has_winner = decision->rows[0].shown.why == TN_WHY_SLOWER || decision->rows[0].shown.why == TN_WHY_TIER || decision->rows[0].shown.why == TN_WHY_NAME;
    if (decision->has_winner) decision->rows[0].shown.why = TN_WHY_WON;
  }

  void record(const Decision& decision, const Request& request, const std::vector<tn_type>& types, int depth) {
    plan_->decisions->push_back(shown_rows(decision, request, types, depth));
    if (decision.has_winner && decision.rows[0].kernel) plan_->est_ns += decision.est_ns;
  }

  Place new_temp(const tn_type& t) {
    TempInfo info;
    info.bytes = storage_bytes(t);
    info.size_class = size_class_of(info.bytes);
    plan_->temps.push_back(info);
    Place p;
    p.kind = Place::Temp;
    p.index = static_cast<uint16_t>(plan_->temps.size() - 1);
    p.type = t;
    p.type.align_log2 = 6;
    return p;
  }

  tn_status use_kernel(const Request& request, const std::vector<tn_type>& types, const DecisionRow& row, const std::vector<Place>& in, const std::vector<tn_push>& push, std::vector<Place>* out) {
    std::vector<tn_type> all = request.in;
    all.insert(all.end(), types.begin(), types.end());
    const uint32_t n_in = static_cast<uint32_t>(in.size()), n_out = static_cast<uint32_t>(types.size());
    KernelOp seen = canonical(*request.op, *request.attrs, std::move(all), n_in, n_out);
    Step step;
    if (request.op->elementwise() && row.kernel->info->flags & TN_KERNEL_DYNAMIC) make_dynamic(&seen, &step.dyn);
    if (tn_status s = rt_.prepare_kernel(*row.kernel, device_, request, seen, &step.use, diag_)) return s;
    step.operands = in;
    step.push = push;
    step.op = request.op->def->name;
    count_work(request, types, &step);
    step.workspace_bytes = step.use->plan->workspace_bytes;
    for (const tn_type& t : types) {
      out->push_back(new_temp(t));
      step.operands.push_back(out->back());
    }
    inplace_ = request.op->elementwise() && (row.kernel->info->flags & TN_KERNEL_INPLACE);
    plan_->steps.push_back(std::move(step));
    return TN_OK;
  }

  static void count_work(const Request& request, const std::vector<tn_type>& types, Step* step) {
    step->op_id = request.op->id;
    const OpView view(*request.op, *request.attrs, request.in, types, request.push_bytes, 0);
    tn_cost cost{};
    cost.size = sizeof cost;
    tn_diag ignored{};
    if (!request.op->def->cost || request.op->def->cost(request.op->def->ctx, &view.op(), &cost, &ignored)) return;
    step->flops = static_cast<uint64_t>(cost.flops);
    step->bytes = static_cast<uint64_t>(cost.bytes);
  }

  tn_status constant(tn_builder& g, uint32_t value, Place* out) {
    const std::vector<char>& bytes = *g.constants[g.values[value].constant];
    tn_queue* q = nullptr;
    if (tn_status s = rt_.thread_queue(device_, &q, diag_)) return s;
    uint32_t type = 0;
    if (tn_status s = rt_.types().intern(g.values[value].type, &type, diag_)) return s;
    tn_tensor* t = nullptr;
    if (tn_status s = tn_tensor_create(q, type, &t, diag_)) return s;
    if (tn_status s = tn_tensor_write(q, t, bytes.data(), bytes.size(), diag_)) {
      unref_tensor(t);
      return s;
    }
    plan_->constants.push_back(t);
    out->kind = Place::Constant;
    out->index = static_cast<uint16_t>(plan_->constants.size() - 1);
    out->type = t->type;
    return TN_OK;
  }

  // One step whose operands are whole inputs and outputs needs no general launch.
  void simplify() {
    plan_->inplace = inplace_ && plan_->steps.size() == 1;
    if (plan_->steps.size() != 1 || !plan_->constants.empty()) return;
    const Step& step = plan_->steps[0];
    if (step.workspace_bytes || step.operands.size() > sizeof plan_->source || plan_->n_in > 200) return;
    for (const PlanOutput& o : plan_->outputs)
      if (o.place.kind != Place::Output) return;
    for (size_t v = 0; v < step.operands.size(); ++v) {
      const Place& p = step.operands[v];
      if (p.offset_bytes != 0 || (p.kind != Place::Input && p.kind != Place::Output)) return;
      plan_->source[v] = static_cast<uint8_t>(p.kind == Place::Input ? p.index : plan_->n_in + p.index);
    }
    bool through = 8 * step.push.size() == plan_->push_bytes, literal = true;
    for (size_t i = 0; i < step.push.size(); ++i) {
      through = through && step.push[i].from == i;
      literal = literal && step.push[i].from == TN_NONE;
    }
    if (!through && !literal) return;
    plan_->simple_push = through;
    if (!through)
      for (const tn_push& p : step.push) plan_->simple_bits.push_back(p.bits);
    plan_->simple_views = static_cast<uint8_t>(step.operands.size());
    plan_->simple_dyn = step.dyn.data();
    plan_->simple = step.use->plan;
  }

  Runtime& rt_;
  Device* device_;
  uint32_t flags_;
  tn_plan* plan_;
  tn_diag* diag_;
  bool inplace_ = false;
};

struct PlanHolder {
  tn_plan* plan;
  ~PlanHolder() { release_plan(plan); }
  tn_plan* take() { return std::exchange(plan, nullptr); }
};

tn_status check_type_only(const tn_plan& plan, const Request& request, tn_diag* diag) {
  for (const Step& step : plan.steps)
    for (const Place& p : step.operands)
      if (p.kind == Place::TypeOnly)
        return fail(diag, TN_E_ARG, id(kOp, 123), "%s reads operand %u, which was given by type alone\nwhy: %s needs its data\ntry: pass the tensor (tn_op_reads says which)", request.op->name.c_str(), p.index, step.op);
  return TN_OK;
}

tn_status intern_outputs(Runtime& rt, tn_plan* plan, tn_diag* diag) {
  for (PlanOutput& o : plan->outputs) {
    if (o.place.kind == Place::Zero || o.place.kind == Place::Absent) continue;
    if (tn_status s = rt.types().intern(o.place.type, &o.type_id, diag)) return s;
  }
  return TN_OK;
}

// A plan copied from an earlier one of the same class of shapes; nullptr when there is none.
tn_plan* from_class(Runtime& rt, const Request& request, const std::string& key, tn_diag* diag) {
  if (key.empty()) return nullptr;
  std::vector<tn_type> types;
  if (infer_concrete(*request.op, *request.attrs, request.in, request.push_bytes, 0, request.n_out, &types, rt.ops(), diag)) return nullptr;
  PlanHolder holder{rt.class_plans().copy_for(key, types)};
  if (!holder.plan || intern_outputs(rt, holder.plan, diag)) return nullptr;
  return holder.take();
}

// An expansion that nothing competed with was chosen without its cost, which is that of the parts.
void cost_of_the_whole(tn_plan* plan) {
  if (plan->decisions->empty() || plan->decisions->front().empty()) return;
  tn_candidate& chosen = plan->decisions->front().front();
  if (chosen.kind != TN_ROW_EXPAND || chosen.source) return;
  chosen.est_ns = plan->est_ns;
  chosen.source = TN_FROM_TABLE;
}

tn_status make_on_device(Runtime& rt, const Request& request, tn_plan** out, tn_diag* diag) {
  const std::string class_key = ClassPlans::key_of(request);
  if ((*out = from_class(rt, request, class_key, diag))) return TN_OK;
  PlanHolder holder{new tn_plan};
  tn_plan* plan = holder.plan;
  plan->runtime = &rt;
  plan->device = request.device;
  plan->push_bytes = request.push_bytes;
  plan->attrs = request.attrs;
  plan->n_in = static_cast<uint32_t>(request.in.size());
  std::vector<Place> in(request.in.size()), results;
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].kind = request.in[i].dtype == 0 ? Place::Absent : request.type_only[i] ? Place::TypeOnly : Place::Input;
    in[i].index = static_cast<uint16_t>(i);
    in[i].type = request.in[i];
  }
  std::vector<tn_push> push;
  for (uint32_t i = 0; i < request.push_bytes / 8; ++i) push.push_back(tn_push{0, i, 0});
  Assembler assembler(rt, request.device, request.flags, plan, diag);
  if (tn_status s = assembler.op(*request.op, request.attrs, request.flags, in, push, request.n_out, &results, 0)) return s;
  plan->n_out = static_cast<uint32_t>(results.size());
  assembler.finish(results);
  cost_of_the_whole(plan);
  for (const PlanOutput& o : plan->outputs)
    if (o.place.kind == Place::TypeOnly) return fail(diag, TN_E_ARG, id(kOp, 123), "%s returns operand %u, which was given by type alone\nwhy: its data is the result\ntry: pass the tensor", request.op->name.c_str(), o.place.index);
  if (tn_status s = check_type_only(*plan, request, diag)) return s;
  if (tn_status s = intern_outputs(rt, plan, diag)) return s;
  rt.class_plans().offer(class_key, plan);
  *out = holder.take();
  return TN_OK;
}

}  // namespace

KernelUse::~KernelUse() {
  if (!plan) return;
  device->runtime->wait_device(device);  // launches of this plan may still run
  call_plugin(info->retire, plugin->instance, &device->ref_for(plugin), plan);
  plugin->live_kernels.fetch_sub(1, std::memory_order_relaxed);
}

tn_status make_plan(Runtime& rt, const Request& asked, tn_plan** out, tn_diag* diag) {
  Request request = asked;
  request.flags |= rt.call_flags();
  request.type_only.resize(request.in.size(), false);
  if (request.n_out == 0 && !request.op->derived()) request.n_out = output_count(*request.op->def, *request.attrs);
  tn_diag cause{};
  cause.size = sizeof cause;
  const tn_status status = make_on_device(rt, request, out, &cause);
  const bool strict = request.flags & (TN_CALL_REQUIRE | TN_CALL_NO_EXPAND) || rt.policy() != TN_POLICY_PREFER;
  if ((status == TN_E_UNSUPPORTED || status == TN_E_UNAVAILABLE) && !strict && make_elsewhere(rt, request, make_on_device, out) == TN_OK) {
    (*out)->asked = asked.device;
    (*out)->fallback_cause = cause.msg;
    rt.count_fallback(*request.op, asked.device, (*out)->device, cause.msg);
    return TN_OK;
  }
  if (status && diag) *diag = cause;
  return status;
}

tn_status make_graph_plan(Runtime& rt, tn_builder& g, Device* device, uint32_t flags, tn_plan** out, tn_diag* diag) {
  if (g.sticky) return fail(diag, g.sticky, id(kOp, 124), "the graph has an error\nwhy: an earlier call on this builder failed (%s)\ntry: make a new builder", tn_status_text(g.sticky));
  PlanHolder holder{new tn_plan};
  tn_plan* plan = holder.plan;
  plan->runtime = &rt;
  plan->device = device;
  plan->n_in = static_cast<uint32_t>(g.inputs.size());
  uint32_t slots = 0;
  for (const Node& n : g.nodes)
    for (const tn_push& p : n.push)
      if (p.from != TN_NONE) slots = std::max(slots, p.from + 1);
  plan->push_bytes = 8 * slots;
  std::vector<tn_push> push;
  for (uint32_t i = 0; i < slots; ++i) push.push_back(tn_push{0, i, 0});
  std::vector<Place> in(g.inputs.size()), results;
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].kind = Place::Input;
    in[i].index = static_cast<uint16_t>(i);
    in[i].type = g.values[g.inputs[i]].type;
  }
  Assembler assembler(rt, device, flags, plan, diag);
  if (tn_status s = assembler.graph(g, g.outputs, in, push, &results, 0)) return s;
  plan->n_out = static_cast<uint32_t>(results.size());
  assembler.finish(results);
  if (tn_status s = intern_outputs(rt, plan, diag)) return s;
  for (uint32_t v : g.inputs) {
    uint32_t t;
    if (tn_status s = rt.types().intern(g.values[v].type, &t, diag)) return s;
    plan->in_types.push_back(t);
  }
  *out = holder.take();
  return TN_OK;
}

}  // namespace tenon::kernel

tn_plan::~tn_plan() {
  for (tn_tensor* t : constants) tenon::kernel::unref_tensor(t);
}
