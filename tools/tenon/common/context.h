// tools/tenon/common/context.h - what every command gets: where to print and how, and the runtime with the chosen device.
//
//   int run(Context& context) {
//     if (context.json) context.line(JsonRow().add("name", context.device().name()).text());
//     else context.line(context.bold("device ") + context.device().name());
//     return kDone;
//   }
//
// The runtime is made at the first use, with --policy and --threads, and is then the framework's default one.
// One thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tenon/core/runtime.hpp>
#include <vector>

namespace tenon::cli {

class Context {
 public:
  // The common options, as given.
  bool json = false;
  std::string device_spec = "auto", policy = "prefer";
  int64_t threads = 0;  // 0 = physical cores

  bool color = false;         // stdout is a terminal and NO_COLOR is not set
  bool color_errors = false;  // the same of stderr
  bool terminal = false;      // stdout is a terminal: progress may be redrawn
  std::string program;        // path of the running command

  Context();
  uint32_t policy_number() const;  // TN_POLICY_*
  uint32_t call_flags() const;     // TN_CALL_* for the policy
  // For questions about all candidates: the runtime opens every plugin, also those that wait until one of their devices is asked
  // for. Before the first use of runtime(). A `loader.open` in TENON_CONFIG stands.
  void open_every_plugin();
  Runtime& runtime();
  tn_runtime* handle() { return runtime().get(); }
  Device device();  // of --device; the framework's default device from then on. Throws what the core says.

  void line(const std::string& text = "") const;  // to stdout
  std::string bold(const std::string& text) const { return paint("1", text); }
  std::string dim(const std::string& text) const { return paint("2", text); }
  std::string good(const std::string& text) const { return paint("32", text); }
  std::string bad(const std::string& text) const { return paint("31", text); }
  std::string warn(const std::string& text) const { return paint("33", text); }

 private:
  void say_if_elsewhere();
  std::string paint(const char* code, const std::string& text) const;
  std::optional<Runtime> runtime_;
  Device device_;
};

// Rows of cells as aligned columns, two spaces between; the first row is the head. Colours may be in the cells.
void print_table(const Context& context, const std::vector<std::vector<std::string>>& rows);

std::string bytes_text(double bytes);  // "24.0 GiB"
std::string time_text(double ns);      // "83 ns", "1.20 ms"
std::string rate_text(double per_second, const char* unit);  // "179 GFLOP/s" for (1.79e11, "FLOP/s")

// Reads a list of the C interface: calls fill(out, stride, cap, &n, &diag) twice. Throws tenon::Error.
[[noreturn]] void throw_diag(const tn_diag& diag, tn_status status);
template <class T, class Fill>
std::vector<T> read_list(Fill fill) {
  uint32_t n = 0;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = fill(static_cast<T*>(nullptr), uint32_t{sizeof(T)}, 0u, &n, &diag); s != TN_OK) throw_diag(diag, s);
  std::vector<T> list(n);
  for (T& entry : list) {
    entry = T{};
    entry.size = sizeof entry;
  }
  if (n == 0) return list;
  if (tn_status s = fill(list.data(), uint32_t{sizeof(T)}, n, &n, &diag); s != TN_OK) throw_diag(diag, s);
  list.resize(std::min<size_t>(n, list.size()));
  return list;
}
std::vector<tn_plugin_entry> plugin_entries(tn_runtime* runtime);
std::vector<tn_device_entry> device_entries(tn_runtime* runtime);
std::vector<tn_cap> device_caps(tn_runtime* runtime, uint32_t device);

}  // namespace tenon::cli
