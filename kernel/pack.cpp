// kernel/pack.cpp - runtime.h: tn_tensor_pack, storing an operand once as the best kernel reads it.
//
// For every layout that some row of the op wants for the operand the usual decision is made as if the operand lay in it
// already; the layout of the fastest winner is taken.
#include <algorithm>
#include <cstring>
#include <set>

#include "kernel/fp_env.h"
#include "kernel/guard.h"
#include "kernel/runtime.h"
#include "kernel/status.h"

namespace tenon::kernel {
namespace {

struct Choice {
  const KernelRow* row = nullptr;
  double est_ns = 0;
  int32_t tier = 0;
};

tn_type packed_type(tn_type t, uint8_t layout) {
  t.layout = layout;
  t.align_log2 = 6;
  set_dense_strides(&t);
  return t;
}

class Packer {
 public:
  Packer(tn_queue* q, Request request, uint32_t operand, tn_tensor* src) : q_(q), rt_(*q->runtime), request_(std::move(request)), operand_(operand), src_(src) {}

  tn_status run(tn_tensor** out, tn_diag* diag) {
    if (tn_status s = infer_concrete(*request_.op, *request_.attrs, request_.in, request_.push_bytes, 0, request_.n_out, &results_, rt_.ops(), diag)) return s;
    std::vector<Choice> choices;
    if (tn_status s = collect(&choices, diag)) return s;
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      if (a.est_ns != b.est_ns) return a.est_ns < b.est_ns;
      if (a.tier != b.tier) return a.tier > b.tier;
      return std::strcmp(a.row->info->name, b.row->info->name) < 0;
    });
    for (const Choice& c : choices) {
      tn_diag why{};
      why.size = sizeof why;
      const tn_status s = pack(*c.row, out, &why);
      if (s == TN_OK) return s;
      if (s != TN_E_UNSUPPORTED && s != TN_E_UNAVAILABLE) {
        if (diag) *diag = why;
        return s;
      }
      remember(*c.row, why.msg);
    }
    char text[96];
    return fail(diag, TN_E_UNSUPPORTED, id(kOp, 133), "nothing on %s packs operand %u of %s, %s\nwhy: %.110s\ntry: use the tensor as it is; `tenon why` lists the kernels", request_.device->name, operand_,
                request_.op->name.c_str(), type_text(src_->type, text, sizeof text), nearest_.empty() ? "no kernel of the op reads it in a layout of its own" : nearest_.c_str());
  }

 private:
  tn_status collect(std::vector<Choice>* choices, tn_diag* diag) {
    std::set<uint8_t> layouts;
    if (!request_.op->derived())
      for (const KernelRow* row : rt_.candidates().rows(request_.op->def->op_id, request_.op->def->version))
        if (row->packed && row->packed->operand == operand_) layouts.insert(row->layout);
    for (uint8_t layout : layouts) {
      Request asked = request_;
      asked.in[operand_] = packed_type(src_->type, layout);
      Decision decision;
      if (tn_status s = decide(rt_, asked, results_, &decision, 0, diag)) return s;
      for (const DecisionRow& row : decision.rows) {
        if (!row.kernel || row.kernel->layout != layout) continue;
        // The op's expansion may be what reads the layout: then any row of it packs.
        if (decision.has_winner) choices->push_back({row.kernel, decision.est_ns, row.shown.tier});
        else if (row.shown.why != TN_WHY_DEVICE) remember(*row.kernel, row.shown.reason);
      }
    }
    return TN_OK;
  }

  void remember(const KernelRow& row, const char* reason) {
    if (nearest_.empty()) nearest_ = std::string("nearest ") + row.info->name + ": " + reason;
  }

  tn_status pack(const KernelRow& row, tn_tensor** out, tn_diag* diag) {
    const OpView seen(*request_.op, *request_.attrs, request_.in, results_, request_.push_bytes, 0);
    const tn_device_ref& ref = request_.device->ref_for(row.plugin);
    uint64_t bytes = 0;
    if (tn_status s = call_plugin(row.packed->bytes, row.plugin->instance, &ref, &seen.op(), &bytes, diag)) return s;
    if (bytes == 0 || bytes > uint64_t{1} << 46)
      return fail(diag, TN_E_BUG, id(kAbi, 9), "%s: impossible size of a packed operand\nwhy: it asks for %llu bytes\ntry: report it to the plugin's author", row.info->name, static_cast<unsigned long long>(bytes));
    const tn_type type = packed_type(src_->type, row.layout);
    uint32_t type_id = 0;
    if (tn_status s = rt_.types().intern(type, &type_id, diag)) return s;
    std::unique_lock<std::recursive_mutex> lock(q_->lock, std::defer_lock);
    if (tn_status s = order_after(q_, src_->storage, diag)) return s;
    if (!q_->inline_work) lock.lock();
    Storage* storage = q_->pool->take(size_class_of(bytes), diag);
    if (!storage) return TN_E_OOM;
    storage->refs.store(1, std::memory_order_relaxed);
    tn_tensor* t = &storage->base;
    t->refs.store(1, std::memory_order_relaxed);
    t->view = tn_view{storage->buffer.handle, 0, storage->buffer.bytes, storage->buffer.host};
    t->type = type;
    t->type_id = type_id;
    if (tn_status s = call_plugin(row.packed->pack, row.plugin->instance, &ref, &seen.op(), &src_->view, &t->view, q_->dev_queue, diag)) {
      unref_tensor(t);
      return s;
    }
    const uint64_t value = q_->submitted.load(std::memory_order_relaxed) + 1;
    q_->submitted.store(value, std::memory_order_relaxed);
    storage->ready_queue.store(q_->id, std::memory_order_relaxed);
    storage->ready_value.store(value, std::memory_order_relaxed);
    storage->writes.fetch_add(1, std::memory_order_relaxed);
    if (!q_->inline_work) log_work(q_, value, &src_, 1);
    *out = t;
    return TN_OK;
  }

  tn_queue* q_;
  Runtime& rt_;
  Request request_;
  uint32_t operand_;
  tn_tensor* src_;
  std::vector<tn_type> results_;
  std::string nearest_;
};

bool same_element_dims(const tn_type& a, const tn_type& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::memcmp(a.dim, b.dim, sizeof a.dim) == 0;
}

// The tensor is the operand that the spec talks about, and lies where it is to be used.
tn_status check_pack(const tn_queue* q, const Request& r, uint32_t operand, const tn_tensor* src, tn_diag* diag) {
  char have[96], want[96];
  if (operand >= r.in.size() || r.in[operand].dtype == 0)
    return fail(diag, TN_E_ARG, id(kOp, 136), "%s: there is no operand %u to pack\nwhy: the spec has %zu inputs, and this one is not among them\ntry: give the number of an input that is present", r.op->name.c_str(), operand, r.in.size());
  if (is_opaque(src->type))
    return fail(diag, TN_E_ARG, id(kOp, 135), "the tensor is packed already\nwhy: it is %s\ntry: pack the tensor it was made from", type_text(src->type, have, sizeof have));
  if (is_opaque(r.in[operand]) || !same_element_dims(r.in[operand], src->type))
    return fail(diag, TN_E_SHAPE, id(kOp, 137), "the tensor is not the operand of the spec\nwhy: it is %s, operand %u of the spec is %s\ntry: make the spec from the tensor's own type", type_text(src->type, have, sizeof have), operand,
                type_text(r.in[operand], want, sizeof want));
  for (const tn_type& t : r.in)
    if (t.dtype && has_symbols(t)) return fail(diag, TN_E_SHAPE, id(kArg, 224), "a tensor needs known sizes\nwhy: the spec holds symbols\ntry: substitute them first");
  if (src->storage->device == q->device->index && r.device == q->device) return TN_OK;
  const Device* home = q->runtime->device(src->storage->device);
  return fail(diag, TN_E_ARG, id(kOp, 139), "a tensor is packed where it lies\nwhy: it lies on %s, the spec is for %s, the queue is of %s\ntry: move the tensor, and use a queue of its device", home ? home->name : "another runtime", r.device->name, q->device->name);
}

}  // namespace
}  // namespace tenon::kernel

using namespace tenon::kernel;

extern "C" {

tn_status tn_tensor_pack(tn_queue* q, const tn_spec* spec, uint32_t operand, tn_tensor* src, tn_tensor** out, tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Request request;
    if (tn_status s = make_request(*q->runtime, spec, &request, diag)) return s;
    if (!request.device) request.device = q->device;
    if (tn_status s = check_pack(q, request, operand, src, diag)) return s;
    request.in[operand] = src->type;  // its own strides: what is read
    request.flags |= q->runtime->call_flags();
    return Packer(q, std::move(request), operand, src).run(out, diag);
  });
}

const char* tn_layout_name(tn_runtime* rt, uint32_t layout) { return rt->core.layouts().find(layout); }

}  // extern "C"
