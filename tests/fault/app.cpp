// fault_app FOLDER - what a program has of the plugins in a folder, as JSON: each verdict, each device, the sum of two tensors
// on cpu:0 by every candidate that takes it, and whether the floating-point environment is still the program's own.
// Ends with status 0 whatever the plugins did.
#include <tenon/runtime.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

template <class T, class F>
std::vector<T> list(F fill) {
  uint32_t n = 0;
  fill(static_cast<T*>(nullptr), uint32_t{sizeof(T)}, 0u, &n);
  std::vector<T> all(n);
  for (T& e : all) e.size = sizeof e;
  fill(all.data(), uint32_t{sizeof(T)}, n, &n);
  return all;
}

// 3 + 4 in every element; "" or what went wrong. Several rounds, so that the plan is both made and found.
std::string add_on(tn_runtime* runtime, uint32_t device) {
  tn_diag diag{};
  diag.size = sizeof diag;
  tn_queue* queue = nullptr;
  uint32_t op = 0, type = 0;
  tn_type f32{};
  f32.dtype = TN_F32, f32.rank = 1, f32.dim[0] = 1000, f32.stride[0] = 1;
  if (tn_queue_get(runtime, device, &queue, &diag) || tn_op_find(runtime, "add", 0, &op, &diag) || tn_type_intern(runtime, &f32, &type, &diag)) return diag.msg;
  tn_tensor* in[2] = {};
  std::string fault;
  for (int i = 0; i < 2 && fault.empty(); ++i) {
    const std::vector<float> values(1000, i == 0 ? 3.0f : 4.0f);
    if (tn_tensor_create(queue, type, &in[i], &diag) || tn_tensor_write(queue, in[i], values.data(), 4000, &diag)) fault = diag.msg;
  }
  for (int round = 0; round < 3 && fault.empty(); ++round) {
    tn_tensor* out = nullptr;
    const tn_call_args args{op, 0, 0, 0, 2, 1, in, &out, nullptr};
    std::vector<float> result(1000);
    if (tn_call(queue, &args, &diag) || tn_tensor_read(queue, out, result.data(), 4000, &diag)) fault = diag.msg;
    else if (result != std::vector<float>(1000, 7.0f)) fault = "wrong result";
    tn_tensor_release(out);
  }
  for (tn_tensor* t : in) tn_tensor_release(t);
  return fault.substr(0, fault.find('\n'));
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

bool environment_is_own() {
  volatile float tiny = 1e-40f;
  return std::fegetround() == FE_TONEAREST && tiny * 1.0f == tiny;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  tn_runtime_options options{};
  options.size = sizeof options;
  options.paths = const_cast<const char**>(&arguments[1]);
  options.n_paths = 1;
  options.threads = 1;
  tn_runtime* runtime = nullptr;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_runtime_create(&options, &runtime, &diag) != TN_OK) return std::fprintf(stderr, "%s\n", diag.msg), 3;
  for (const tn_plugin_entry& e : list<tn_plugin_entry>([&](auto... a) { return tn_plugins(runtime, a..., nullptr); })) {
    std::printf("{\"plugin\": %s, \"code\": %u, \"stage\": %u, \"cause\": %s}\n", quoted(e.id).c_str(), e.code, e.stage, quoted(e.cause).c_str());
  }
  for (const tn_device_entry& d : list<tn_device_entry>([&](auto... a) { return tn_devices(runtime, a..., nullptr); })) {
    std::printf("{\"device\": %s, \"sum\": %s}\n", quoted(d.name).c_str(), quoted(add_on(runtime, d.device)).c_str());
  }
  std::printf("{\"own_environment\": %s}\n", environment_is_own() ? "true" : "false");
  const tn_status ended = tn_runtime_destroy(runtime, 1000000000, &diag);
  std::printf("{\"destroyed\": %d}\n", ended);
  std::fflush(stdout);
  return 0;
}
