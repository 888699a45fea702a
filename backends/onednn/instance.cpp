#include "backends/onednn/instance.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "backends/onednn/operand.h"

std::shared_ptr<tenon::onednn::Recipe> tn_instance::find(const std::string& key) {
  const std::lock_guard lock(mutex);
  const auto it = recipes_.find(key);
  return it == recipes_.end() ? nullptr : it->second.lock();
}

void tn_instance::keep(const std::shared_ptr<tenon::onednn::Recipe>& recipe) {
  const std::lock_guard lock(mutex);
  recipes_[recipe->key] = recipe;
  ++live_plans;
}

void tn_instance::forget_unused() {
  const std::lock_guard lock(mutex);
  --live_plans;
  std::erase_if(recipes_, [](const auto& entry) { return entry.second.expired(); });
}

namespace tenon::onednn {
namespace {

struct Plan {
  tn_kernel_plan head;  // first: the core's pointer is to this
  std::shared_ptr<Recipe> recipe;
  const tn_host* host;
};

tn_status launch_plan(const tn_kernel_plan* head, const tn_launch* call) {
  const auto* plan = static_cast<const Plan*>(head->self);
  return plan->recipe->launch(*plan->host, *call);
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_program(std::string& key, const tn_program& p) {
  append(key, p.n_in);
  key.append(reinterpret_cast<const char*>(p.out), p.n_out * sizeof p.out[0]);
  key.append(reinterpret_cast<const char*>(p.inst), p.n_inst * sizeof(tn_inst));
}

void append_attr(std::string& key, const tn_attr& a) {
  append(key, a.key);
  append(key, a.len);
  switch (a.type) {
    case TN_ATTR_PROGRAM: append_program(key, *static_cast<const tn_program*>(a.v.p)); break;
    case TN_ATTR_I64S:
    case TN_ATTR_F64S: key.append(static_cast<const char*>(a.v.p), a.len * 8); break;
    case TN_ATTR_STRING: key.append(static_cast<const char*>(a.v.p), a.len); break;
    case TN_ATTR_TYPE: append(key, *static_cast<const tn_type*>(a.v.p)); break;
    default: append(key, a.v); break;
  }
}

}  // namespace

std::string recipe_key(const tn_op& op) {
  std::string key;
  append(key, op.op_id);
  append(key, op.math_flags);
  append(key, op.push_bytes);
  for (uint32_t i = 0; i < op.n_attr; ++i) append_attr(key, op.attr[i]);
  for (uint32_t i = 0; i < static_cast<uint32_t>(op.n_in + op.n_out); ++i) {
    const tn_type& t = op.type[i];
    append(key, t.dtype);
    append(key, t.rank);
    append(key, t.layout);
    key.append(reinterpret_cast<const char*>(t.dim), t.rank * sizeof t.dim[0]);
    key.append(reinterpret_cast<const char*>(t.stride), t.rank * sizeof t.stride[0]);
  }
  return key;
}

tn_status prepare_plan(tn_instance* self, const tn_op& op, uint32_t row, BuildFn build, const tn_kernel_plan** out,
                       tn_diag* diag) {
  try {
    std::string key = recipe_key(op);
    std::shared_ptr<Recipe> recipe = self->find(key);
    if (recipe == nullptr) {
      recipe = build(*self, op);
      recipe->push_bytes = op.push_bytes;
      recipe->key = std::move(key);
    }
    auto plan = std::make_unique<Plan>();
    plan->head = {launch_plan, plan.get(), recipe->workspace_bytes, recipe->n_views, op.push_bytes, 0, row};
    plan->host = self->host;
    self->keep(recipe);
    plan->recipe = std::move(recipe);
    *out = &plan.release()->head;
    return TN_OK;
  } catch (const std::bad_alloc&) {
    return fail(diag, TN_E_OOM, kLibraryFailed, "no memory to prepare a oneDNN plan\nwhy: allocation failed\ntry: %s",
                "free memory and try again");
  } catch (const dnnl::error& e) {
    const tn_status status = e.status == dnnl_out_of_memory ? TN_E_OOM : TN_E_UNAVAILABLE;
    return fail(diag, status, kLibraryFailed, "oneDNN could not make a primitive\nwhy: %s (dnnl_status %d)\ntry: %s",
                e.what(), static_cast<int>(e.status), "pin another kernel for this call");
  } catch (const std::exception& e) {
    return fail(diag, TN_E_UNAVAILABLE, kLibraryFailed, "a oneDNN plan could not be prepared\nwhy: %s\ntry: %s",
                e.what(), "pin another kernel for this call");
  }
}

void retire_plan(tn_instance* self, const tn_device_ref*, const tn_kernel_plan* head) {
  delete static_cast<const Plan*>(head->self);
  self->forget_unused();
}

double estimate_ns(const tn_instance& self, double flops, double rate, double bytes, int threads) {
  const double work = std::max(flops / rate, bytes / self.copy_rate) / threads;
  return kCallNs + work + (threads > 1 ? kWakeNs : 0);
}

int useful_threads(const tn_instance& self, double single_thread_ns) {
  const double worth = single_thread_ns / (2 * kWakeNs);
  return static_cast<int>(std::clamp<double>(worth, 1, self.threads));
}

void fill_support(tn_support* out, double est_ns, double flops, double bytes) {
  out->est_ns = est_ns;
  out->confidence = 0.5f;
  out->flops = static_cast<uint64_t>(flops);
  out->bytes = static_cast<uint64_t>(bytes);
}

}  // namespace tenon::onednn
