#include "tools/tenon/common/context.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tenon/core/error.hpp>

#include "tools/tenon/common/failure.h"

namespace tenon::cli {
namespace {

bool colorful(int fd) {
  const char* off = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fd) && (off == nullptr || *off == 0) && (terminal == nullptr || std::string(terminal) != "dumb");
}

// Columns that a text takes: escapes none, continuation bytes of UTF-8 none.
size_t width(const std::string& text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') i = std::min(text.find('m', i), text.size());
    else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++columns;
  }
  return columns;
}

std::string scaled(double value, double base, std::initializer_list<const char*> prefixes, const char* unit) {
  auto prefix = prefixes.begin();
  while (value >= base && prefix + 1 != prefixes.end()) value /= base, ++prefix;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s%s", prefix == prefixes.begin() ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0, value, *prefix, unit);
  return text;
}

}  // namespace

Context::Context() : color(colorful(STDOUT_FILENO)), color_errors(colorful(STDERR_FILENO)), terminal(isatty(STDOUT_FILENO)) {}

uint32_t Context::policy_number() const {
  return policy == "require" ? TN_POLICY_REQUIRE : policy == "no-expand" ? TN_POLICY_NO_EXPAND : TN_POLICY_PREFER;
}

uint32_t Context::call_flags() const {
  return policy == "require" ? TN_CALL_REQUIRE : policy == "no-expand" ? TN_CALL_REQUIRE | TN_CALL_NO_EXPAND : 0;
}

void Context::open_every_plugin() {
  const char* given = std::getenv("TENON_CONFIG");
  std::string config = given == nullptr ? "" : given;
  if (config.find("loader.open") != std::string::npos) return;
  if (!config.empty() && config.back() != ';') config += ';';
  setenv("TENON_CONFIG", (config + "loader.open=all").c_str(), 1);
}

Runtime& Context::runtime() {
  if (!runtime_) {
    RuntimeOptions options;
    options.threads = static_cast<uint32_t>(threads);
    options.policy = policy_number();
    runtime_.emplace(options);
    set_default_runtime(*runtime_);
  }
  return *runtime_;
}

Device Context::device() {
  if (!device_) {
    device_ = runtime().device(device_spec, policy_number());
    set_default_device(device_);
    say_if_elsewhere();
  }
  return device_;
}

// A device that was asked for and is not used is named with the cause.
void Context::say_if_elsewhere() {
  const std::string first = device_spec.substr(0, device_spec.find(','));
  if (first.empty() || first == "auto" || first == device_.name()) return;
  try {
    if (runtime().device(first, TN_POLICY_REQUIRE) == device_) return;  // another spelling of it
    print_warning(*this, first + " is not used; running on " + device_.name());
  } catch (const Error& error) {
    print_warning(*this, first + " is not used: " + error.summary() + (error.why().empty() ? "" : ": " + error.why()) + "; running on " + device_.name());
  }
}

void Context::line(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

std::string Context::paint(const char* code, const std::string& text) const {
  return color ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

void print_table(const Context& context, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string text;
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const std::string& cell = rows[r][c];
      text += r == 0 ? context.bold(cell) : cell;
      if (c + 1 < rows[r].size()) text.append(widths[c] - width(cell) + 2, ' ');
    }
    context.line(text.substr(0, text.find_last_not_of(' ') + 1));
  }
}

std::string bytes_text(double bytes) { return scaled(bytes, 1024, {"", "Ki", "Mi", "Gi", "Ti"}, "B"); }

std::string time_text(double ns) {
  char text[64];
  if (ns < 1e3) std::snprintf(text, sizeof text, "%.0f ns", ns);
  else if (ns < 1e6) std::snprintf(text, sizeof text, "%.3g us", ns / 1e3);
  else if (ns < 1e9) std::snprintf(text, sizeof text, "%.3g ms", ns / 1e6);
  else std::snprintf(text, sizeof text, "%.3g s", ns / 1e9);
  return text;
}

std::string rate_text(double per_second, const char* unit) { return scaled(per_second, 1000, {"", "k", "M", "G", "T"}, unit); }

void throw_diag(const tn_diag& diag, tn_status status) {
  tn_diag d = diag;
  d.status = status;
  throw Error(d, Where{nullptr, 0}, "", "");
}

std::vector<tn_plugin_entry> plugin_entries(tn_runtime* runtime) {
  return read_list<tn_plugin_entry>([&](auto... a) { return tn_plugins(runtime, a...); });
}

std::vector<tn_device_entry> device_entries(tn_runtime* runtime) {
  return read_list<tn_device_entry>([&](auto... a) { return tn_devices(runtime, a...); });
}

std::vector<tn_cap> device_caps(tn_runtime* runtime, uint32_t device) {
  uint32_t n = 0;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_caps(runtime, device, nullptr, 0, &n, &diag); s != TN_OK) throw_diag(diag, s);
  std::vector<tn_cap> caps(n);
  if (n == 0) return caps;
  if (tn_status s = tn_caps(runtime, device, caps.data(), n, &n, &diag); s != TN_OK) throw_diag(diag, s);
  return caps;
}

}  // namespace tenon::cli
