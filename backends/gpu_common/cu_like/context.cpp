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
  fail_why(diag, TN_E_DEVICE_LOST, kErrLost, std::string(plugin) + ":" + std::to_string(device) + ": the device is lost", "the driver said " + words(code),
           "start the program again; see the driver's log");
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
  const std::string place = std::string(plugin) + ":" + std::to_string(device) + ": ";
  const tn_status status = code == kOutOfMemory ? TN_E_OOM : TN_E_FAILED;
  if (code == kOutOfMemory)
    fail_why(diag, status, kErrMemory, place + "out of memory: " + call, words(code), "use smaller batches, or free memory that other programs hold");
  else
    fail_why(diag, status, kErrDriverCall, place + "the driver refused: " + call, words(code), "look this code up in the vendor's manual; update the driver");
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
