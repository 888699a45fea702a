#include "backends/gpu_common/cu_like/context.h"

namespace tenon::gpu::cu_like {

Context::Context(const Api& a, uint32_t k, const char* p, int d) : api(a), kind(k), plugin(p), device(d) {}

tn_status Context::open(const Api& api, uint32_t kind, const char* plugin, int device, std::shared_ptr<Context>* out, tn_diag* diag) {
  std::shared_ptr<Context> made(new Context(api, kind, plugin, device));
  if (api.context_retain != nullptr)
    if (tn_status s = made->check(api.context_retain(&made->context, device), "open the device's context", diag); s != TN_OK) return s;
  *out = std::move(made);
  return TN_OK;
}

Context::~Context() {
  {
    Current current(*this);
    for (Handle event : events_) api.event_destroy(event);
  }
  if (context != nullptr) api.context_release(device);
}

std::string Context::words(int code) const {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name != nullptr) api.error_name(code, &name);
  if (api.error_text != nullptr) api.error_text(code, &text);
  if (api.hip_error_name != nullptr) name = api.hip_error_name(code);
  if (api.hip_error_text != nullptr) text = api.hip_error_text(code);
  return std::string(name != nullptr ? name : "error") + " (" + std::to_string(code) + ")" + (text != nullptr ? std::string(", ") + text : "");
}

tn_status Context::alive(tn_diag* diag) const {
  const int code = lost_.load(std::memory_order_relaxed);
  if (code == 0) return TN_OK;
  fail(diag, TN_E_DEVICE_LOST, kErrLost, "%s:%d: the device is lost\nwhy: the driver said %s\ntry: start the program again; see the driver's log", plugin, device, words(code).c_str());
  if (diag != nullptr) diag->native_code = code, diag->native_domain = kind;
  return TN_E_DEVICE_LOST;
}

tn_status Context::check(int code, const char* call, tn_diag* diag) {
  if (code == kGood) return TN_OK;
  if (is_sticky(code)) {
    int none = 0;
    lost_.compare_exchange_strong(none, code);
    return alive(diag);
  }
  const std::string said = words(code);
  tn_status status = TN_E_FAILED;
  if (code == kOutOfMemory)
    status = fail(diag, TN_E_OOM, kErrMemory, "%s:%d: out of memory: %s\nwhy: %s\ntry: use smaller batches, or free memory that other programs hold", plugin, device, call, said.c_str());
  else
    fail(diag, status, kErrDriverCall, "%s:%d: the driver refused: %s\nwhy: %s\ntry: look this code up in the vendor's manual; update the driver", plugin, device, call, said.c_str());
  if (diag != nullptr) diag->native_code = code, diag->native_domain = kind;
  return status;
}

Handle Context::take_event(int* code) {
  *code = kGood;
  {
    std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      Handle event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  Handle event = nullptr;
  *code = api.event_create(&event, kEventNoTiming | kEventBlockingSync);
  return *code == kGood ? event : nullptr;
}

void Context::give_event(Handle event) {
  std::lock_guard lock(mutex_);
  events_.push_back(event);
}

Current::Current(const Context& context) : context_(context) {
  const Api& api = context.api;
  if (api.context_push != nullptr)
    changed_ = api.context_push(context.context) == kGood;
  else if (api.get_device(&before_) != kGood || before_ != context.device)
    changed_ = api.set_device(context.device) == kGood;
}

Current::~Current() {
  if (!changed_) return;
  Handle top = nullptr;
  if (context_.api.context_pop != nullptr)
    context_.api.context_pop(&top);
  else if (before_ >= 0)
    context_.api.set_device(before_);
}

}  // namespace tenon::gpu::cu_like
