// kernel/call.cpp - the hot path: tn_call and tn_plan_launch.
//
// A hit costs: one hash over ids, one compare, results from the pool, one call into the plugin.
#include "kernel/call.h"

#include <algorithm>
#include <cstring>

#include "kernel/fp_env.h"
#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9FB21C651E98DF25ull;
  return h ^ (h >> 32);
}

// Gives a fresh storage the identity of a result.
inline void dress(Storage* s, const PlanOutput& o, uint64_t bytes) {
  tn_tensor* t = &s->base;
  t->refs.store(1, std::memory_order_relaxed);
  s->refs.store(1, std::memory_order_relaxed);
  if (t->type_id != o.type_id) {
    t->type_id = o.type_id;
    t->type = o.place.type;
  }
  t->view.bytes = bytes;
}

inline void mark_written(Storage* s, uint32_t queue, uint64_t value) {
  s->ready_queue.store(queue, std::memory_order_relaxed);
  s->ready_value.store(value, std::memory_order_relaxed);
  s->writes.store(s->writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The launch of one kernel whose operands are whole inputs and outputs.
inline tn_status run_simple(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  Storage* made[TN_PROGRAM_MAX_OUT * 4];
  uint32_t n_made = 0;
  for (uint32_t i = 0; i < p->n_out; ++i) {
    if (a->out[i]) continue;
    const PlanOutput& o = p->outputs[i];
    Storage* s = q->pool->take(o.size_class, diag);
    if (__builtin_expect(!s, 0)) {
      while (n_made) q->pool->give(made[--n_made]);
      for (uint32_t k = 0; k < i; ++k)
        if (a->out[k] && a->out[k]->refs.load(std::memory_order_relaxed) == 0) a->out[k] = nullptr;
      return TN_E_OOM;
    }
    dress(s, o, s->buffer.bytes);
    made[n_made++] = s;
    a->out[i] = &s->base;
  }
  tn_view views[20];
  const uint32_t n_in = p->n_in;
  for (uint32_t v = 0; v < p->simple_views; ++v) {
    const uint32_t from = p->source[v];
    views[v] = from < n_in ? a->in[from]->view : a->out[from - n_in]->view;
  }
  tn_launch launch{views, p->simple_views, 0, nullptr, q->dev_queue, diag, p->simple_dyn};
  if (p->simple_push) {
    launch.push = a->push;
    launch.push_bytes = p->push_bytes;
  } else {
    launch.push = p->simple_bits.data();
    launch.push_bytes = static_cast<uint32_t>(8 * p->simple_bits.size());
  }
  const tn_status status = call_plugin(p->simple->launch, p->simple, &launch);
  if (__builtin_expect(status != TN_OK, 0)) {
    told(q, status, diag);
    for (uint32_t i = 0; i < p->n_out; ++i)
      for (uint32_t k = 0; k < n_made; ++k)
        if (a->out[i] == &made[k]->base) a->out[i] = nullptr;
    while (n_made) q->pool->give(made[--n_made]);
    return status;
  }
  const uint64_t value = q->submitted.load(std::memory_order_relaxed) + 1;
  q->submitted.store(value, std::memory_order_relaxed);
  for (uint32_t i = 0; i < p->n_out; ++i) mark_written(a->out[i]->storage, q->id, value);
  return TN_OK;
}

void say_kernel(TraceSpan* span, const tn_queue* q, const Step& s) {
  if (!span->on()) return;
  tn_event& e = span->event();
  e.device = q->device->index;
  e.queue = q->id;
  e.flops = s.flops;
  e.bytes = s.bytes;
  e.op = s.op_id;
  e.plugin = s.use->plugin->entry.index;
  e.name = s.use->info->name;
  e.where = q->note;
}

tn_status run_traced(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  TraceSpan span(q->runtime->hooks(), TN_EVENT_KERNEL);
  say_kernel(&span, q, p->steps[0]);
  const tn_status status = run_simple(q, p, a, diag);
  if (status != TN_OK) span.drop();
  if (span.on()) span.event().value = q->submitted.load(std::memory_order_relaxed);
  return status;
}

// Any plan: steps over places, temporaries from the pool in between.
class Launcher {
 public:
  Launcher(tn_queue* q, tn_plan* plan, const tn_call_args* args, tn_diag* diag) : q_(q), p_(plan), a_(args), diag_(diag) {
    temps_.resize(plan->temps.size(), nullptr);
    fresh_.resize(plan->n_out, nullptr);
  }

  tn_status run() {
    const uint64_t before = q_->submitted.load(std::memory_order_relaxed);
    tn_status status = make_outputs();
    for (size_t s = 0; status == TN_OK && s < p_->steps.size(); ++s) status = step(p_->steps[s]);
    // A trim in between signalled the first steps with a value that no result carries.
    if (status == TN_OK && q_->submitted.load(std::memory_order_relaxed) != before && find_failure(q_, before, UINT64_MAX, nullptr, diag_))
      status = TN_E_FAILED;
    value_ = q_->submitted.load(std::memory_order_relaxed) + 1;
    q_->submitted.store(value_, std::memory_order_relaxed);
    if (status == TN_OK) status = give_results();
    for (Storage*& s : temps_)
      if (s) unref_storage(s), s = nullptr;
    if (status != TN_OK) undo();
    return status;
  }

 private:
  Storage* take(uint32_t size_class) {
    Storage* s = q_->pool->take(size_class, diag_);
    if (!s) return nullptr;
    s->refs.store(1, std::memory_order_relaxed);
    s->base.refs.store(1, std::memory_order_relaxed);
    return s;
  }

  tn_status make_outputs() {
    for (uint32_t i = 0; i < p_->n_out; ++i) {
      const PlanOutput& o = p_->outputs[i];
      if (o.place.kind != Place::Output || o.place.index != i || a_->out[i]) continue;
      Storage* s = q_->pool->take(o.size_class, diag_);
      if (!s) return TN_E_OOM;
      dress(s, o, s->buffer.bytes);
      fresh_[i] = &s->base;
      a_->out[i] = &s->base;
    }
    return TN_OK;
  }

  tn_status view_of(const Place& place, tn_view* out) {
    const tn_view* base = nullptr;
    switch (place.kind) {
      case Place::Input: base = &a_->in[place.index]->view; break;
      case Place::Output: base = &a_->out[place.index]->view; break;
      case Place::Constant: base = &p_->constants[place.index]->view; break;
      case Place::Temp: {
        Storage*& s = temps_[place.index];
        if (!s && !(s = take(p_->temps[place.index].size_class))) return TN_E_OOM;
        base = &s->base.view;
        *out = tn_view{s->buffer.handle, 0, s->buffer.bytes, s->buffer.host};
        break;
      }
      default: *out = tn_view{}; return TN_OK;
    }
    if (place.kind != Place::Temp) *out = *base;
    out->offset += static_cast<uint64_t>(place.offset_bytes);
    out->bytes -= static_cast<uint64_t>(place.offset_bytes);
    if (out->host) out->host = static_cast<char*>(out->host) + place.offset_bytes;
    return TN_OK;
  }

  tn_status step(const Step& s) {
    tn_view views[TN_PROGRAM_MAX_IN + 16];
    uint64_t push[32];
    std::vector<tn_view> many;
    std::vector<uint64_t> long_push;
    tn_view* v = views;
    if (s.operands.size() + 1 > sizeof views / sizeof views[0]) many.resize(s.operands.size() + 1), v = many.data();
    uint64_t* bits = push;
    if (s.push.size() > sizeof push / sizeof push[0]) long_push.resize(s.push.size()), bits = long_push.data();
    uint32_t n = 0;
    for (const Place& place : s.operands)
      if (tn_status status = view_of(place, &v[n++])) return status;
    Storage* workspace = nullptr;
    if (s.workspace_bytes) {
      workspace = take(size_class_of(s.workspace_bytes));
      if (!workspace) return TN_E_OOM;
      v[n++] = tn_view{workspace->buffer.handle, 0, workspace->buffer.bytes, workspace->buffer.host};
    }
    for (size_t i = 0; i < s.push.size(); ++i)
      bits[i] = s.push[i].from == TN_NONE ? s.push[i].bits : static_cast<const uint64_t*>(a_->push)[s.push[i].from];
    const tn_launch launch{v, n, static_cast<uint32_t>(8 * s.push.size()), bits, q_->dev_queue, diag_, s.dyn.data()};
    TraceSpan span(q_->runtime->hooks(), TN_EVENT_KERNEL);
    say_kernel(&span, q_, s);
    if (span.on()) span.event().value = q_->submitted.load(std::memory_order_relaxed) + 1;  // the plan's
    const tn_status status = call_plugin(s.use->plan->launch, s.use->plan, &launch);
    if (status) span.drop();
    if (status) told(q_, status, diag_);
    if (status && diag_ && diag_->len) append(diag_, "\nwhere: %s", s.op);
    if (workspace) unref_storage(workspace);  // handed out again in queue order only
    for (uint16_t t : s.release)
      if (temps_[t]) unref_storage(temps_[t]), temps_[t] = nullptr;
    return status;
  }

  tn_status give_results() {
    for (uint32_t i = 0; i < p_->n_out; ++i) {
      const PlanOutput& o = p_->outputs[i];
      if (o.place.kind == Place::Output && o.place.index == i) {
        mark_written(a_->out[i]->storage, q_->id, value_);
        continue;
      }
      if (o.place.kind == Place::Zero) continue;  // stays NULL: zero whatever the values are
      tn_tensor* view = nullptr;
      if (tn_status s = alias(o, &view)) return s;
      if (!a_->out[i]) {
        a_->out[i] = fresh_[i] = view;
        continue;
      }
      const tn_status s = copy_tensor(q_, a_->out[i], view, diag_);
      unref_tensor(view);
      if (s) return s;
    }
    return TN_OK;
  }

  // A result that is a piece of something else: a new handle on it, or the same handle once more.
  tn_status alias(const PlanOutput& o, tn_tensor** out) {
    Storage* s = nullptr;
    uint64_t offset = static_cast<uint64_t>(o.place.offset_bytes);
    if (o.place.kind == Place::Temp) {
      Storage*& t = temps_[o.place.index];
      if (!t && !(t = take(p_->temps[o.place.index].size_class))) return TN_E_OOM;
      s = t;
      mark_written(s, q_->id, value_);
    } else {
      tn_tensor* base = o.place.kind == Place::Input ? a_->in[o.place.index] : o.place.kind == Place::Constant ? p_->constants[o.place.index] : a_->out[o.place.index];
      if (offset == 0 && base->type_id == o.type_id) {
        base->refs.fetch_add(1, std::memory_order_relaxed);
        *out = base;
        return TN_OK;
      }
      s = base->storage;
      offset += base->view.offset;
    }
    *out = make_view(s, o.place.type, o.type_id, offset);
    return *out ? TN_OK : TN_E_OOM;
  }

  void undo() {
    for (uint32_t i = 0; i < p_->n_out; ++i)
      if (fresh_[i]) {
        if (a_->out[i] == fresh_[i]) a_->out[i] = nullptr;
        unref_tensor(fresh_[i]);
      }
  }

  tn_queue* q_;
  tn_plan* p_;
  const tn_call_args* a_;
  tn_diag* diag_;
  uint64_t value_ = 0;
  std::vector<Storage*> temps_;
  std::vector<tn_tensor*> fresh_;
};

bool same_dims(const tn_type& a, const tn_type& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::memcmp(a.dim, b.dim, sizeof a.dim) == 0;
}

// Results given by the caller: right type, and no piece of an input unless the kernel can write over it.
tn_status check_given(tn_plan* p, const tn_call_args* a, bool* through_copy, tn_diag* diag) {
  *through_copy = false;
  for (uint32_t i = 0; i < p->n_out; ++i) {
    tn_tensor* t = a->out[i];
    if (!t) continue;
    const PlanOutput& o = p->outputs[i];
    if (o.place.kind == Place::Zero) return fail(diag, TN_E_ARG, id(kArg, 210), "output %u is zero whatever the values are\nwhy: it cannot be written into a given tensor\ntry: pass NULL", i);
    if (!same_dims(t->type, o.place.type)) {
      char want[96], have[96];
      return fail(diag, TN_E_SHAPE, id(kArg, 211), "output %u has the wrong type\nwhy: it is %s, the result is %s\ntry: pass NULL, or a tensor of that type", i, type_text(t->type, have, sizeof have), type_text(o.place.type, want, sizeof want));
    }
    if (t->type_id != o.type_id && !same_type(t->type, o.place.type)) *through_copy = true;
    for (uint32_t k = 0; k < a->n_in; ++k) {
      const tn_tensor* x = a->in[k];
      if (!x || is_type_only(x) || x->storage != t->storage) continue;
      const bool same_view = x->view.offset == t->view.offset && x->type_id == t->type_id;
      if (!(p->inplace && same_view)) *through_copy = true;
    }
  }
  return TN_OK;
}

tn_status run_through_copy(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  std::vector<tn_tensor*> out(p->n_out, nullptr);
  tn_call_args fresh = *a;
  fresh.out = out.data();
  if (tn_status s = run_plan(q, p, &fresh, diag)) return s;
  tn_status status = TN_OK;
  for (uint32_t i = 0; i < p->n_out; ++i) {
    if (!a->out[i]) {
      a->out[i] = out[i];
      continue;
    }
    if (status == TN_OK) status = copy_tensor(q, a->out[i], out[i], diag);
    unref_tensor(out[i]);
  }
  return status;
}

tn_status where(tn_queue* q, tn_status status, const char* op, tn_diag* diag) {
  if (status && diag && diag->len && !std::strstr(diag->msg, "\nwhere:"))
    append(diag, "\nwhere: %s%s%s, device %s", q->note ? q->note : "", q->note ? ", op " : "op ", op, q->device->name);
  return status;
}

std::string shared_key(const tn_queue* q, const tn_call_args* a, const uint32_t* types) {
  std::string key;
  key.reserve(32 + 4 * a->n_in);
  const uint32_t head[7] = {q->device->index, a->op, a->attr, a->flags, a->push_bytes, a->n_in, a->n_out};
  key.append(reinterpret_cast<const char*>(head), sizeof head);
  key.append(reinterpret_cast<const char*>(types), 4 * a->n_in);
  return key;
}

tn_status fail_packed_elsewhere(const tn_queue* q, uint32_t operand, const tn_tensor* t, tn_diag* diag) {
  const Device* home = q->runtime->device(t->storage->device);
  return fail(diag, TN_E_UNSUPPORTED, id(kOp, 134), "operand %u is packed for another device\nwhy: it lies on %s, the call is for %s, and packed tensors do not move\ntry: move the tensor it was packed from, and pack there",
              operand, home ? home->name : "another runtime", q->device->name);
}

// Everything a call must satisfy before types are looked at.
tn_status check_call(tn_queue* q, const tn_call_args* a, const OpEntry** op, AttrRef* attrs, tn_diag* diag) {
  Runtime& rt = *q->runtime;
  *op = rt.ops().get(a->op);
  if (!*op) return fail(diag, TN_E_STALE, id(kOp, 4), "unknown op id\nwhy: %u is no op of this runtime\ntry: look the op up with tn_op_find", a->op);
  *attrs = rt.attrs().get(a->attr);
  if (!*attrs) return fail(diag, TN_E_STALE, id(kState, 4), "attribute id %u is stale\nwhy: its table was swept since\ntry: intern the attributes again", a->attr);
  if (a->push_bytes % 8 || (a->push_bytes && !a->push))
    return fail(diag, TN_E_ARG, id(kArg, 212), "push data is malformed\nwhy: %u bytes %s\ntry: pass whole 8-byte slots and their address", a->push_bytes, a->push ? "are no whole slots of 8" : "without an address");
  if (a->n_in > 4096 || a->n_out > 64)
    return fail(diag, TN_E_LIMIT, id(kArg, 213), "too many operands\nwhy: %u inputs, %u outputs\ntry: split the call", a->n_in, a->n_out);
  for (uint32_t i = 0; i < a->n_in; ++i) {
    const tn_tensor* t = a->in[i];
    if (!t || is_type_only(t)) continue;
    if (is_opaque(t->type) && t->storage->device != q->device->index) return fail_packed_elsewhere(q, i, t, diag);
    if (rt.device(t->storage->device) == nullptr)
      return fail(diag, TN_E_ARG, id(kArg, 214), "input %u is of another runtime\nwhy: its device has number %u, here are %zu devices\ntry: copy it over through host memory", i, t->storage->device, rt.devices().size());
  }
  return TN_OK;
}

tn_status request_for(tn_queue* q, const tn_call_args* a, const OpEntry* op, AttrRef attrs, Request* r, tn_diag* diag) {
  r->op = op;
  r->attrs = std::move(attrs);
  r->device = q->device;
  r->flags = a->flags;
  r->push_bytes = a->push_bytes;
  r->in.resize(a->n_in);
  r->type_only.resize(a->n_in, false);
  for (uint32_t i = 0; i < a->n_in; ++i) {
    const tn_tensor* t = a->in[i];
    if (!t) continue;
    r->type_only[i] = is_type_only(t);
    if (!is_type_only(t)) {
      r->in[i] = t->type;
    } else if (!q->runtime->types().get(type_only_id(t), &r->in[i])) {
      return fail(diag, TN_E_STALE, id(kState, 5), "type id of operand %u is stale\nwhy: id %u is of an old generation, or no id\ntry: intern the type again", i, type_only_id(t));
    }
  }
  return TN_OK;
}

}  // namespace

tn_status run_plan(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  if (p->simple && q->inline_work) return run_traced(q, p, a, diag);
  std::unique_lock<std::recursive_mutex> lock(q->lock, std::defer_lock);
  if (!q->inline_work) {
    for (uint32_t i = 0; i < a->n_in; ++i)
      if (a->in[i] && !is_type_only(a->in[i]))
        if (tn_status s = order_after(q, a->in[i]->storage, diag)) return s;
    for (uint32_t i = 0; i < a->n_out; ++i)  // what is written over, too
      if (a->out[i])
        if (tn_status s = order_after(q, a->out[i]->storage, diag)) return s;
    lock.lock();
  }
  const tn_status status = p->simple ? run_traced(q, p, a, diag) : Launcher(q, p, a, diag).run();
  if (!q->inline_work && status == TN_OK) {
    log_work(q, q->submitted.load(std::memory_order_relaxed), a->in, a->n_in);
    hold_foreign(q, q->submitted.load(std::memory_order_relaxed), a->out, a->n_out);
    if (q->runtime->flags() & TN_RT_PRECISE) return signal_queue(q, diag);
  }
  return status;
}

namespace {

tn_status call_uncached(tn_queue* q, const tn_call_args* a, CacheEntry* entry, uint64_t op_attr, uint64_t counts, const uint32_t* types, tn_diag* diag) {
  if (tn_status s = connected(q, diag)) return s;
  Runtime& rt = *q->runtime;
  const OpEntry* op = nullptr;
  AttrRef attrs;
  if (tn_status s = check_call(q, a, &op, &attrs, diag)) return where(q, s, op ? op->name.c_str() : "?", diag);
  const std::string key = shared_key(q, a, types);
  tn_plan* plan = rt.find_plan(key);
  if (!plan) {
    Request request;
    if (tn_status s = request_for(q, a, op, attrs, &request, diag)) return where(q, s, op->name.c_str(), diag);
    request.n_out = op->derived() ? 0 : a->n_out;
    if (!op->derived() && a->n_out != output_count(*op->def, *attrs))
      return where(q, fail(diag, TN_E_ARG, id(kArg, 215), "%s: wrong number of outputs\nwhy: %u asked, the op has %u\ntry: ask for all of them", op->name.c_str(), a->n_out, output_count(*op->def, *attrs)), op->name.c_str(), diag);
    if (tn_status s = make_plan(rt, request, &plan, diag)) return where(q, s, op->name.c_str(), diag);
    if (plan->n_out != a->n_out) {
      const uint32_t n = plan->n_out;
      release_plan(plan);
      return where(q, fail(diag, TN_E_ARG, id(kArg, 215), "%s: wrong number of outputs\nwhy: %u asked, the op has %u\ntry: ask for all of them", op->name.c_str(), a->n_out, n), op->name.c_str(), diag);
    }
    rt.keep_plan(key, plan);
  }
  if (entry) {
    release_plan(entry->plan);
    retain_plan(plan);
    entry->op_attr = op_attr;
    entry->counts = counts;
    std::memcpy(entry->types, types, 4 * a->n_in);
    std::fill(entry->types + a->n_in, entry->types + kKeyInputs, 0u);
    entry->plan = plan;
  }
  const tn_status s = run_moved(q, plan, a, diag);
  release_plan(plan);
  return where(q, s, op->name.c_str(), diag);
}

// A call with all it leads to, as one event.
template <class F>
tn_status as_call(tn_queue* q, uint32_t op, F&& body) {
  TraceSpan span(q->runtime->hooks(), TN_EVENT_CALL);
  const tn_status status = body();
  if (!span.on()) return status;
  const OpEntry* entry = op ? q->runtime->ops().get(op) : nullptr;
  tn_event& e = span.event();
  e.device = q->device->index;
  e.queue = q->id;
  e.value = status == TN_OK ? q->submitted.load(std::memory_order_relaxed) : 0;
  e.op = op;
  e.name = entry ? entry->name.c_str() : op ? "?" : "plan";
  e.where = q->note;
  return status;
}

// Misses the queue's own cache: shared cache, else a new plan.
__attribute__((noinline)) tn_status call_slow(tn_queue* q, const tn_call_args* a, CacheEntry* entry, uint64_t op_attr, uint64_t counts, const uint32_t* types, tn_diag* diag) {
  return as_call(q, a->op, [&] { return guarded(diag, [&] { return call_uncached(q, a, entry, op_attr, counts, types, diag); }); });
}

bool any_given(const tn_plan* p, const tn_call_args* a) {
  for (uint32_t i = 0; i < p->n_out; ++i)
    if (a->out[i]) return true;
  return false;
}

}  // namespace

static tn_status run_checked(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  if (any_given(p, a)) {
    bool through_copy = false;
    if (tn_status s = check_given(p, a, &through_copy, diag)) return s;
    if (through_copy) return run_through_copy(q, p, a, diag);
  }
  return run_plan(q, p, a, diag);
}

static __attribute__((noinline)) tn_status run_hit(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  return as_call(q, a->op, [&] { return run_checked(q, p, a, diag); });
}

// Operands on other devices are brought here; a plan that fell back runs there and its results come back.
tn_status run_moved(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  bool elsewhere = p->asked != nullptr;
  for (uint32_t i = 0; i < a->n_in; ++i)
    elsewhere |= a->in[i] && !is_type_only(a->in[i]) && a->in[i]->storage->device != p->device->index;
  if (!elsewhere) return run_checked(q, p, a, diag);
  tn_queue* run_on = q;
  if (p->asked)
    if (tn_status s = q->runtime->thread_queue(p->device, &run_on, diag)) return s;
  std::vector<tn_tensor*> in(a->in, a->in + a->n_in), moved, out(a->n_out, nullptr);
  auto clean = [&] { for (tn_tensor* t : moved) unref_tensor(t); };
  for (tn_tensor*& t : in) {
    if (!t || is_type_only(t) || t->storage->device == p->device->index) continue;
    if (is_opaque(t->type)) return clean(), fail_packed_elsewhere(run_on, static_cast<uint32_t>(&t - in.data()), t, diag);
    uint32_t type = 0;
    tn_tensor* copy = nullptr;
    tn_status s = q->runtime->types().intern(t->type, &type, diag);
    if (s == TN_OK) s = tn_tensor_create(run_on, type, &copy, diag);
    if (s == TN_OK) moved.push_back(copy), s = copy_tensor(run_on, copy, t, diag);
    if (s) return clean(), s;
    t = copy;
  }
  tn_call_args args = *a;
  args.in = in.data();
  if (!p->asked) {
    const tn_status s = run_checked(q, p, &args, diag);
    return clean(), s;
  }
  args.out = out.data();
  tn_status s = run_checked(run_on, p, &args, diag);
  clean();
  for (uint32_t i = 0; s == TN_OK && i < a->n_out; ++i) {
    if (!out[i]) continue;
    if (!a->out[i]) s = tn_tensor_create(q, out[i]->type_id, &a->out[i], diag);
    if (s == TN_OK) s = copy_tensor(q, a->out[i], out[i], diag);
  }
  for (tn_tensor* t : out)
    if (t) unref_tensor(t);
  return s;
}

}  // namespace tenon::kernel

using namespace tenon::kernel;

extern "C" tn_status tn_call(tn_queue* q, const tn_call_args* a, tn_diag* diag) {
  const uint64_t op_attr = uint64_t{a->op} << 32 | a->attr;
  const uint64_t counts = uint64_t{a->push_bytes} << 32 | uint64_t{a->flags} << 24 | uint64_t{a->n_in & 0xFFF} << 12 | (a->n_out & 0xFFF);
  if (__builtin_expect(q->epoch != q->runtime->epoch().load(std::memory_order_relaxed), 0)) clear_cache(q);
  if (__builtin_expect(a->n_in > kKeyInputs, 0)) {
    std::vector<uint32_t> types(a->n_in);
    for (uint32_t i = 0; i < a->n_in; ++i) types[i] = !a->in[i] ? 0 : is_type_only(a->in[i]) ? type_only_id(a->in[i]) : a->in[i]->type_id;
    return call_slow(q, a, nullptr, op_attr, counts, types.data(), diag);
  }
  uint32_t types[kKeyInputs];
  uint64_t h = mix(mix(0, op_attr), counts);
  uint32_t foreign = 0;
  const uint32_t here = q->device->index;
  for (uint32_t i = 0; i < a->n_in; ++i) {
    const tn_tensor* t = a->in[i];
    if (__builtin_expect(t != nullptr && !is_type_only(t), 1)) {
      types[i] = t->type_id;
      foreign |= t->storage->device ^ here;
    } else {
      types[i] = !t ? 0 : type_only_id(t);
    }
    h = mix(h, types[i]);
  }
  CacheEntry* e = &q->cache[h >> 52];
  for (int way = 0;; ++way) {
    if (e->op_attr == op_attr && e->counts == counts && e->plan) {
      bool same = true;
      for (uint32_t i = 0; i < a->n_in; ++i) same &= e->types[i] == types[i];
      if (__builtin_expect(same, 1)) break;
    }
    if (way == 1) {
      CacheEntry* first = &q->cache[h >> 52];
      CacheEntry* victim = !first->plan ? first : !e->plan || (h & 1) ? e : first;
      return call_slow(q, a, victim, op_attr, counts, types, diag);
    }
    e = &q->cache[(h >> 52) ^ 1];
  }
  tn_plan* p = e->plan;
  if (__builtin_expect(foreign != 0 || p->asked != nullptr, 0)) return call_slow(q, a, nullptr, op_attr, counts, types, diag);
  tn_status status;
  if (__builtin_expect(p->simple && q->direct.load(std::memory_order_relaxed) && !any_given(p, a), 1)) status = run_simple(q, p, a, diag);
  else status = run_hit(q, p, a, diag);
  if (__builtin_expect(status != TN_OK, 0)) {
    const OpEntry* op = q->runtime->ops().get(a->op);
    return where(q, status, op ? op->name.c_str() : "?", diag);
  }
  return TN_OK;
}

namespace {

// The usual launch: every operand is there, of the type the plan was made for, on its device; given outputs are no inputs.
inline bool plain_launch(const tn_queue* q, const tn_plan* p, const tn_call_args* a) {
  if (!p->simple || !q->direct.load(std::memory_order_relaxed) || q->device != p->device || p->asked) return false;
  const uint32_t here = p->device->index;
  const uint32_t* types = p->in_types.data();
  for (uint32_t i = 0; i < a->n_in; ++i) {
    const tn_tensor* t = a->in[i];
    if (!t || is_type_only(t) || t->type_id != types[i] || t->storage->device != here) return false;
  }
  for (uint32_t i = 0; i < a->n_out; ++i) {
    const tn_tensor* t = a->out[i];
    if (!t) continue;
    if (t->type_id != p->outputs[i].type_id) return false;
    for (uint32_t k = 0; k < a->n_in; ++k)
      if (a->in[k]->storage == t->storage) return false;
  }
  return true;
}

tn_status check_launch_types(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  for (uint32_t i = 0; i < a->n_in; ++i) {
    const tn_tensor* t = a->in[i];
    const uint32_t given = !t ? 0 : is_type_only(t) ? type_only_id(t) : t->type_id;
    if (given == p->in_types[i]) continue;
    tn_type want{};
    q->runtime->types().get(p->in_types[i], &want);
    if (t && !is_type_only(t) && same_type(t->type, want)) continue;
    char have[96], need[96];
    return fail(diag, TN_E_SHAPE, id(kArg, 217), "plan input %u has the wrong type\nwhy: it is %s, the plan was made for %s\ntry: prepare a plan for it", i,
                t && !is_type_only(t) ? type_text(t->type, have, sizeof have) : "absent", type_text(want, need, sizeof need));
  }
  return TN_OK;
}

// Out of line, so that the usual launch pays nothing for it.
__attribute__((noinline)) tn_status launch_slow(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  if (tn_status s = check_launch_types(q, p, a, diag)) return s;
  return as_call(q, 0, [&] { return guarded(diag, [&] { return run_moved(q, p, a, diag); }); });
}

}  // namespace

extern "C" tn_status tn_plan_launch(tn_queue* q, tn_plan* p, const tn_call_args* a, tn_diag* diag) {
  if (__builtin_expect(a->n_in != p->n_in || a->n_out != p->n_out || a->push_bytes < p->push_bytes, 0))
    return fail(diag, TN_E_ARG, id(kArg, 216), "plan launched with the wrong operands\nwhy: %u inputs, %u outputs, %u push bytes; it takes %u, %u, %u\ntry: pass what tn_plan_inspect says", a->n_in, a->n_out, a->push_bytes, p->n_in, p->n_out, p->push_bytes);
  if (__builtin_expect(plain_launch(q, p, a), 1)) return run_simple(q, p, a, diag);
  return launch_slow(q, p, a, diag);
}
