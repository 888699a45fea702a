// kernel/api_ops.cpp - runtime.h: ops, interning, inference, plans, decision records.
#include <algorithm>
#include <cstring>

#include "kernel/derive.h"
#include "kernel/guard.h"
#include "kernel/move.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

using namespace tenon::kernel;

namespace {

template <class T>
void give(T* out, const T& value, uint32_t stride) {
  const uint32_t size = out->size ? out->size : std::min<uint32_t>(stride, sizeof(T));
  std::memcpy(out, &value, std::min<uint32_t>({size, stride, sizeof(T)}));
  out->size = size;
}

// What choosing a kernel takes, beyond what inference does.
tn_status need_device(const Request& r, tn_diag* diag) {
  if (!r.device) return fail(diag, TN_E_ARG, id(kDevice, 6), "no device is named\nwhy: spec.device is 0\ntry: find one with tn_device_find");
  for (size_t i = 0; i < r.in.size(); ++i) {
    char text[96];
    if (has_symbols(r.in[i])) return fail(diag, TN_E_SHAPE, id(kArg, 224), "%s: a kernel is chosen for known sizes\nwhy: operand %zu is %s\ntry: put numbers in place of the symbols", r.op->name.c_str(), i, type_text(r.in[i], text, sizeof text));
  }
  return TN_OK;
}

const char* attr_type_name(uint32_t type) {
  static constexpr const char* kNames[] = {"nothing", "a whole number", "a number", "a text", "a list of whole numbers", "a list of numbers", "a tensor type", "a program"};
  return type < std::size(kNames) ? kNames[type] : "an unknown type";
}

std::string attr_names(const tn_op_def& def) {
  std::string names;
  for (uint32_t k = 0; k < def.n_attr_defs; ++k) names += (k ? ", " : "") + std::string(def.attr_defs[k].name) + " (" + std::to_string(def.attr_defs[k].key) + ")";
  return names.empty() ? "none" : names;
}

tn_status check_attrs(const OpEntry& op, const tn_attr* attrs, uint32_t n, tn_diag* diag) {
  const tn_op_def& def = *op.def;
  if (!def.attr_defs) return TN_OK;
  for (uint32_t i = 0; i < n; ++i) {
    const tn_attr_def* found = nullptr;
    for (uint32_t k = 0; k < def.n_attr_defs; ++k)
      if (def.attr_defs[k].key == attrs[i].key) found = &def.attr_defs[k];
    if (!found) return fail(diag, TN_E_ARG, id(kArg, 221), "%s has no attribute with key %u\nwhy: it knows %.100s\ntry: use a key of tenon/ops.def that it knows", op.name.c_str(), attrs[i].key, attr_names(def).c_str());
    if (found->type != attrs[i].type) return fail(diag, TN_E_ARG, id(kArg, 222), "%s: attribute %s has the wrong type\nwhy: %s is given, %s is expected\ntry: use the type of tenon/ops.def", op.name.c_str(), found->name, attr_type_name(attrs[i].type), attr_type_name(found->type));
  }
  for (uint32_t k = 0; k < def.n_attr_defs; ++k) {
    if (!(def.attr_defs[k].flags & TN_ATTR_REQUIRED)) continue;
    const bool given = std::any_of(attrs, attrs + n, [&](const tn_attr& a) { return a.key == def.attr_defs[k].key; });
    if (!given) return fail(diag, TN_E_ARG, id(kArg, 223), "%s: attribute %s is missing\nwhy: it has no default, and %u other attributes are given\ntry: give %s", op.name.c_str(), def.attr_defs[k].name, n, def.attr_defs[k].name);
  }
  return TN_OK;
}

void show(const DecisionRows& rows, tn_candidate* out, uint32_t stride, uint32_t cap, uint32_t* out_n) {
  *out_n = static_cast<uint32_t>(rows.size());
  for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i)
    give(reinterpret_cast<tn_candidate*>(reinterpret_cast<char*>(out) + size_t{stride} * i), rows[i], stride);
}

tn_status infer_any(Runtime& rt, const Request& r, std::vector<tn_type>* types, tn_diag* diag) {
  if (std::none_of(r.in.begin(), r.in.end(), has_symbols)) return infer_concrete(*r.op, *r.attrs, r.in, r.push_bytes, 0, r.n_out, types, rt.ops(), diag);
  SymbolicDims symbols;
  int64_t most = -1;
  for (const tn_type& t : r.in)
    for (int k = 0; k < t.rank; ++k)
      for (int64_t d : {t.dim[k], t.stride[k]})
        if (TN_IS_SYM(d)) most = std::max(most, d - INT64_MIN);
  for (int64_t k = 0; k <= most; ++k) symbols.base();
  const tn_dims table = symbols.table();
  if (tn_status s = infer_types(*r.op, *r.attrs, r.in, r.push_bytes, 0, r.n_out, types, rt.ops(), &table, diag)) return s;
  return symbols.status(diag);
}

}  // namespace

namespace tenon::kernel {

tn_status make_request(Runtime& rt, const tn_spec* spec, Request* r, tn_diag* diag) {
  r->op = rt.ops().get(spec->op);
  if (!r->op) return fail(diag, TN_E_STALE, id(kOp, 4), "unknown op id\nwhy: %u is no op of this runtime\ntry: look the op up with tn_op_find", spec->op);
  r->attrs = rt.attrs().get(spec->attr);
  if (!r->attrs) return fail(diag, TN_E_STALE, id(kState, 4), "attribute id %u is stale\nwhy: its table was swept since\ntry: intern the attributes again", spec->attr);
  r->flags = spec->flags;
  r->push_bytes = spec->push_bytes;
  r->in.resize(spec->n_in);
  r->type_only.resize(spec->n_in, false);
  for (uint32_t i = 0; i < spec->n_in; ++i)
    if (spec->in[i] && !rt.types().get(spec->in[i], &r->in[i]))
      return fail(diag, TN_E_STALE, id(kState, 5), "type id of operand %u is stale\nwhy: id %u is of an old generation, or no id\ntry: intern the type again", i, spec->in[i]);
  if (!r->op->derived()) r->n_out = output_count(*r->op->def, *r->attrs);
  if (!spec->device) return TN_OK;
  r->device = rt.device(spec->device);
  if (!r->device) return fail(diag, TN_E_NOT_FOUND, id(kDevice, 2), "no such device\nwhy: id %u is not in the device list\ntry: use ids from tn_devices", spec->device);
  return r->device->open(diag);
}

}  // namespace tenon::kernel

extern "C" {

tn_status tn_op_define(tn_runtime* rt, const tn_op_def* def, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] { return rt->core.ops().define(def, 0, out, diag); });
}

tn_status tn_op_find(tn_runtime* rt, const char* name, uint32_t version, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] {
    const OpEntry* e = rt->core.ops().find(name, version, diag);
    if (!e) return tn_status{TN_E_NOT_FOUND};
    *out = e->id;
    return tn_status{TN_OK};
  });
}

tn_status tn_op_derive(tn_runtime* rt, uint32_t op, const tn_derive* how, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] { return rt->core.ops().derive(op, *how, out, diag); });
}

tn_status tn_ops(tn_runtime* rt, tn_op_entry* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    const std::vector<const OpEntry*> all = rt->core.ops().base_ops();
    *out_n = static_cast<uint32_t>(all.size());
    for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i) {
      const tn_op_def& d = *all[i]->def;
      tn_op_entry e{};
      e.size = sizeof e;
      e.op = all[i]->id;
      e.op_id = d.op_id;
      e.version = d.version;
      e.n_in = d.n_in;
      e.n_out = d.n_out;
      e.n_attr_defs = d.n_attr_defs;
      e.flags = d.flags;
      e.rules = (d.expand ? 1u << TN_RULE_EXPAND : 0u) | (d.vjp ? 1u << TN_RULE_VJP : 0u) | (d.jvp ? 1u << TN_RULE_JVP : 0u) | (d.batch ? 1u << TN_RULE_BATCH : 0u);
      e.name = d.name;
      e.attr_defs = d.attr_defs;
      give(reinterpret_cast<tn_op_entry*>(reinterpret_cast<char*>(out) + size_t{stride} * i), e, stride);
    }
    return tn_status{TN_OK};
  });
}

tn_status tn_type_intern(tn_runtime* rt, const tn_type* type, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] {
    if (!rt->core.layouts().find(type->layout))
      return fail(diag, TN_E_ARG, id(kOp, 138), "no such layout\nwhy: layout is %u; 0 is strided, others come from tn_tensor_pack\ntry: zero the struct before filling it", type->layout);
    return rt->core.types().intern(*type, out, diag);
  });
}

tn_status tn_type_get(tn_runtime* rt, uint32_t type, tn_type* out, tn_diag* diag) {
  if (rt->core.types().get(type, out)) return TN_OK;
  return fail(diag, TN_E_STALE, id(kState, 12), "type id %u is stale\nwhy: the type table was swept since, or it is no id\ntry: intern the type again", type);
}

tn_status tn_attr_intern(tn_runtime* rt, uint32_t op, const tn_attr* attrs, uint32_t n, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] {
    if (op) {
      const OpEntry* e = rt->core.ops().get(op);
      if (!e) return fail(diag, TN_E_STALE, id(kOp, 4), "unknown op id\nwhy: %u is no op of this runtime\ntry: look the op up with tn_op_find", op);
      if (tn_status s = check_attrs(*e, attrs, n, diag)) return s;
    }
    return rt->core.attrs().intern({attrs, n}, out, nullptr, diag);
  });
}

tn_status tn_attr_get(tn_runtime* rt, uint32_t attr, const tn_attr** out, uint32_t* out_n, tn_diag* diag) {
  const AttrRef set = rt->core.attrs().get(attr);
  if (!set) return fail(diag, TN_E_STALE, id(kState, 4), "attribute id %u is stale\nwhy: its table was swept since\ntry: intern the attributes again", attr);
  *out = set->attrs().data();
  *out_n = static_cast<uint32_t>(set->attrs().size());
  return TN_OK;
}

tn_status tn_program_intern(tn_runtime* rt, const tn_program* program, uint32_t* out, tn_diag* diag) {
  return guarded(diag, [&] {
    tn_attr a{};
    a.key = 1;
    a.type = TN_ATTR_PROGRAM;
    a.v.p = program;
    a.len = 1;
    return rt->core.attrs().intern({&a, 1}, out, nullptr, diag);
  });
}

tn_status tn_infer(tn_runtime* rt, const tn_spec* spec, uint32_t* out_types, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    Request r;
    if (tn_status s = make_request(rt->core, spec, &r, diag)) return s;
    std::vector<tn_type> types;
    if (tn_status s = infer_any(rt->core, r, &types, diag)) return s;
    *out_n = static_cast<uint32_t>(types.size());
    for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i) {
      out_types[i] = 0;  // an optional output that is absent
      if (types[i].dtype == 0) continue;
      if (tn_status s = rt->core.types().intern(types[i], &out_types[i], diag)) return s;
    }
    return tn_status{TN_OK};
  });
}

tn_status tn_op_reads(tn_runtime* rt, const tn_spec* spec, uint64_t* out_in, uint64_t* out_out, tn_diag* diag) {
  return guarded(diag, [&] {
    Request r;
    if (tn_status s = make_request(rt->core, spec, &r, diag)) return s;
    if (!r.op->derived()) return fail(diag, TN_E_ARG, id(kOp, 125), "%s is no derived op\nwhy: tn_op_reads is about derivatives\ntry: derive it first", r.op->name.c_str());
    if (tn_status s = need_device(r, diag)) return s;
    DerivedShape shape;
    if (!derived_shape(*r.op, *r.attrs, spec->n_in, rt->core.ops(), &shape))
      return fail(diag, TN_E_ARG, id(kOp, 8), "%s: wrong number of operands\nwhy: %u given\ntry: pass inputs, outputs, then the seeds", r.op->name.c_str(), spec->n_in);
    tn_plan* plan = nullptr;
    if (tn_status s = make_plan(rt->core, r, &plan, diag)) return s;
    *out_in = *out_out = 0;
    auto note = [&](const Place& p) {
      if (p.kind != Place::Input) return;
      if (p.index < shape.base_in) *out_in |= uint64_t{1} << std::min<uint32_t>(p.index, 63);
      else if (p.index < shape.base_in + shape.base_out) *out_out |= uint64_t{1} << std::min<uint32_t>(p.index - shape.base_in, 63);
    };
    for (const Step& step : plan->steps)
      for (const Place& p : step.operands) note(p);
    for (const PlanOutput& o : plan->outputs) note(o.place);
    release_plan(plan);
    return tn_status{TN_OK};
  });
}

// ---- plans ----

tn_status tn_plan_prepare(tn_runtime* rt, const tn_spec* spec, tn_plan** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Request r;
    if (tn_status s = make_request(rt->core, spec, &r, diag)) return s;
    if (tn_status s = need_device(r, diag)) return s;
    if (tn_status s = make_plan(rt->core, r, out, diag)) return s;
    (*out)->in_types.assign(spec->in, spec->in + spec->n_in);
    return tn_status{TN_OK};
  });
}

void tn_plan_inspect(const tn_plan* p, tn_plan_info* out) {
  tn_plan_info info{};
  info.size = sizeof info;
  info.n_in = p->n_in;
  info.n_out = p->n_out;
  info.push_bytes = p->push_bytes;
  info.n_steps = static_cast<uint32_t>(p->steps.size());
  info.n_fallbacks = p->asked ? 1 : 0;
  info.est_ns = p->est_ns + p->move_ns;
  for (const TempInfo& t : p->temps) info.peak_bytes += t.bytes;
  for (const Step& s : p->steps) info.peak_bytes = std::max(info.peak_bytes, s.workspace_bytes);
  give(out, info, sizeof info);
}

void tn_plan_release(tn_plan* p) { release_plan(p); }

tn_status tn_builder_create(tn_runtime* rt, tn_builder** out, tn_diag* diag) {
  return guarded(diag, [&] { return *out = new tn_builder(rt->core), tn_status{TN_OK}; });
}

void tn_builder_destroy(tn_builder* b) { delete b; }

tn_status tn_builder_derive(tn_builder* b, uint32_t n_in, uint32_t n_out, const tn_rule* rule, tn_diag* diag) {
  if (rule->kind != TN_RULE_VJP) return fail(diag, TN_E_UNSUPPORTED, id(kOp, 5), "this rule cannot be derived yet\nwhy: this version derives vjp only\ntry: use TN_RULE_VJP");
  return guarded(diag, [&] {
    const tn_status s = reverse_graph(b, {rule->out, n_out}, {rule->seed, n_out}, {rule->in, n_in}, {rule->result, n_in}, diag);
    if (s) b->sticky = s;
    return s;
  });
}

tn_status tn_builder_node(tn_builder* b, uint32_t index, tn_emit* out, uint32_t* out_n, tn_diag* diag) {
  *out_n = static_cast<uint32_t>(b->nodes.size());
  if (index >= b->nodes.size()) return fail(diag, TN_E_ARG, id(kOp, 126), "no such node\nwhy: index %u of %zu\ntry: stay below the count", index, b->nodes.size());
  Node& n = b->nodes[index];
  tn_emit e{};
  e.size = sizeof e;
  e.math_flags = n.math_flags;
  e.op_id = n.op->def->op_id;
  e.op_version = n.op->def->version;
  e.n_in = static_cast<uint16_t>(n.in.size());
  e.n_out = static_cast<uint16_t>(n.out.size());
  e.n_attr = static_cast<uint16_t>(n.attrs->attrs().size());
  e.attr = n.attrs->attrs().data();
  e.in = n.in.data();
  e.out = n.out.data();
  e.push = n.push.data();
  e.n_push = static_cast<uint32_t>(n.push.size());
  give(out, e, sizeof e);
  return TN_OK;
}

tn_status tn_builder_compile(tn_builder* b, const tn_plan_options* options, tn_plan** out, tn_diag* diag) {
  return guarded(diag, [&] {
    Runtime& rt = b->runtime;
    uint32_t index = options && TN_HAS(tn_plan_options, options, n_devices) && options->n_devices ? options->devices[0] : 0;
    const std::vector<Device*> usual = stand_ins(rt, nullptr);
    Device* d = index ? rt.device(index) : usual.empty() ? nullptr : usual[0];
    if (!d) return fail(diag, TN_E_NOT_FOUND, id(kDevice, 2), "no such device\nwhy: id %u is not in the device list\ntry: use ids from tn_devices", index);
    if (tn_status s = d->open(diag)) return s;
    const uint32_t policy = options && TN_HAS(tn_plan_options, options, policy) ? options->policy : 0;
    return make_graph_plan(rt, *b, d, policy == TN_POLICY_REQUIRE ? uint32_t{TN_CALL_REQUIRE} : 0u, out, diag);
  });
}

tn_status tn_plan_save(tn_plan*, int32_t (*)(void*, const void*, uint64_t), void*, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 127), "plans cannot be saved yet\nwhy: the portable plan format is provisional\ntry: save the model and prepare again");
}

tn_status tn_plan_load(tn_runtime*, const void*, uint64_t, tn_plan**, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 127), "plans cannot be loaded yet\nwhy: the portable plan format is provisional\ntry: load the model and prepare again");
}

// ---- why ----

tn_status tn_why(tn_runtime* rt, const tn_spec* spec, tn_candidate* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    Request r;
    if (tn_status s = make_request(rt->core, spec, &r, diag)) return s;
    if (tn_status s = need_device(r, diag)) return s;
    std::vector<tn_type> types;
    if (tn_status s = infer_any(rt->core, r, &types, diag)) return s;
    r.flags |= rt->core.call_flags();
    r.explain = true;
    Decision decision;
    if (tn_status s = decide(rt->core, r, types, &decision, 0, diag)) return s;
    DecisionRows rows = shown_rows(decision, r, types, 0);
    const bool strict = r.flags & (TN_CALL_REQUIRE | TN_CALL_NO_EXPAND) || rt->core.policy() != TN_POLICY_PREFER;
    if (!decision.has_winner && !rows.empty() && !strict) {
      const DecisionRows elsewhere = rows_elsewhere(rt->core, r, types);
      rows.insert(rows.begin(), elsewhere.begin(), elsewhere.end());
    }
    show(rows, out, stride, cap, out_n);
    return tn_status{TN_OK};
  });
}

tn_status tn_why_plan(tn_plan* p, uint32_t step, tn_candidate* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  if (step >= p->decisions->size()) return fail(diag, TN_E_ARG, id(kOp, 128), "no such decision\nwhy: index %u of %zu\ntry: stay below the count", step, p->decisions->size());
  DecisionRows rows = (*p->decisions)[step];
  if (step == 0 && !rows.empty()) rows[0].move_ns = p->move_ns;
  show(rows, out, stride, cap, out_n);
  return TN_OK;
}

tn_status tn_kernels(tn_runtime* rt, tn_kernel_entry* out, uint32_t stride, uint32_t cap, uint32_t* out_n, tn_diag* diag) {
  return guarded(diag, [&] {
    const std::vector<const KernelRow*> rows = rt->core.candidates().all();
    *out_n = static_cast<uint32_t>(rows.size());
    for (uint32_t i = 0; i < std::min<uint32_t>(cap, *out_n); ++i) {
      const tn_kernel_info& k = *rows[i]->info;
      tn_kernel_entry e{};
      e.size = sizeof e;
      e.plugin = rows[i]->plugin_index;
      e.flags = k.flags;
      e.refines = k.supports != nullptr;
      e.op_id = k.op_id;
      e.op_min = k.op_min;
      e.op_max = k.op_max;
      e.tier = k.tier;
      e.inplace_mask = k.inplace_mask;
      e.n_cons = k.n_cons;
      e.name = k.name;
      e.cons = k.cons;
      if (rows[i]->packed) e.packed_layout = rows[i]->packed->layout, e.packed_operand = rows[i]->packed->operand;
      give(reinterpret_cast<tn_kernel_entry*>(reinterpret_cast<char*>(out) + size_t{stride} * i), e, stride);
    }
    return tn_status{TN_OK};
  });
}

tn_status tn_pin(tn_runtime* rt, uint32_t op, uint32_t device, const char* kernel, tn_diag* diag) {
  if (!rt->core.ops().get(op)) return fail(diag, TN_E_STALE, id(kOp, 4), "unknown op id\nwhy: %u is no op of this runtime\ntry: look the op up with tn_op_find", op);
  return guarded(diag, [&] { return rt->core.pin(op, device, kernel), tn_status{TN_OK}; });
}

tn_status tn_tune(tn_runtime*, const tn_spec*, uint64_t, tn_diag* diag) {
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 129), "measuring candidates is not offered yet\nwhy: the autotune store is provisional\ntry: pin a kernel with tn_pin");
}

}  // extern "C"
