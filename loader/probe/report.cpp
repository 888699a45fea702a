#include "loader/probe/report.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace tenon::loader {
namespace {

constexpr std::string_view kCounts = "counts ", kDevice = "device ";
constexpr size_t kNumbers = 12;

// One line, whatever a driver writes into its name.
template <size_t N>
std::string clean(const char (&text)[N]) {
  std::string out(text, strnlen(text, N));
  std::replace_if(out.begin(), out.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return out;
}

template <size_t N>
void put(char (&out)[N], std::string_view text) {
  const size_t n = std::min(text.size(), N - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

std::string device_line(const tn_device_info& i) {
  const uint64_t numbers[kNumbers] = {i.index, i.kind, i.flags, i.pci_domain, i.pci_bdf, i.vendor_id, i.device_id, i.mem_total_bytes, i.dtype_storage, i.dtype_compute, i.dtype_matrix, i.n_spaces};
  std::string line(kDevice);
  char digits[3];
  for (const uint8_t byte : i.uuid) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    line += digits;
  }
  for (const uint64_t number : numbers) line += ' ' + std::to_string(number);
  return line + ' ' + clean(i.name) + '\t' + clean(i.driver) + '\n';
}

// Takes one number off the front; with `last` it must be followed by nothing, else by a blank.
template <class T>
bool take(std::string_view* rest, T* out, bool last = false) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *out);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  if (last) return rest->empty();
  if (!rest->starts_with(' ')) return false;
  rest->remove_prefix(1);
  return true;
}

bool take_uuid(std::string_view* rest, tn_device_info* out) {
  if (rest->size() < 33 || (*rest)[32] != ' ') return false;
  for (size_t k = 0; k < sizeof out->uuid; ++k) {
    const char* at = rest->data() + 2 * k;
    const auto [end, error] = std::from_chars(at, at + 2, out->uuid[k], 16);
    if (error != std::errc() || end != at + 2) return false;
  }
  rest->remove_prefix(33);
  return true;
}

bool parse_device(std::string_view rest, tn_device_info* out) {
  *out = {};
  out->size = sizeof *out;
  if (!take_uuid(&rest, out)) return false;
  uint32_t* const words[] = {&out->index, &out->kind, &out->flags, &out->pci_domain, &out->pci_bdf, &out->vendor_id, &out->device_id};
  uint64_t* const sizes[] = {&out->mem_total_bytes, &out->dtype_storage, &out->dtype_compute, &out->dtype_matrix};
  static_assert(std::size(words) + std::size(sizes) + 1 == kNumbers);
  for (uint32_t* word : words)
    if (!take(&rest, word)) return false;
  for (uint64_t* size : sizes)
    if (!take(&rest, size)) return false;
  if (!take(&rest, &out->n_spaces)) return false;
  const size_t tab = rest.find('\t');
  if (tab == std::string_view::npos || rest.find('\t', tab + 1) != std::string_view::npos) return false;
  put(out->name, rest.substr(0, tab));
  put(out->driver, rest.substr(tab + 1));
  return true;
}

std::string counted(size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

bool same_device(const tn_device_info& a, const tn_device_info& b) { return device_line(a) == device_line(b); }

}  // namespace

std::string report_text(const PluginReport& r) {
  std::string text(kCounts);
  text += std::to_string(r.offers) + ' ' + std::to_string(r.kernels) + ' ' + std::to_string(r.for_others) + ' ' + std::to_string(r.ops) + '\n';
  for (const tn_device_info& device : r.devices) text += device_line(device);
  return text;
}

bool is_report_line(std::string_view line) { return line.starts_with(kCounts) || line.starts_with(kDevice); }

std::optional<PluginReport> parse_report(std::string_view text) {
  PluginReport report;
  bool counted = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.starts_with(kCounts)) {
      line.remove_prefix(kCounts.size());
      if (counted || !take(&line, &report.offers) || !take(&line, &report.kernels) || !take(&line, &report.for_others) || !take(&line, &report.ops, true)) return std::nullopt;
      counted = true;
    } else if (line.starts_with(kDevice)) {
      line.remove_prefix(kDevice.size());
      tn_device_info device;
      if (report.devices.size() == kReportDevices || !parse_device(line, &device)) return std::nullopt;
      report.devices.push_back(device);
    } else {
      return std::nullopt;
    }
  }
  if (!counted) return std::nullopt;
  return report;
}

bool can_wait(const PluginReport& r) {
  if (r.devices.empty() || r.for_others != 0 || r.ops != 0) return false;
  return std::none_of(r.devices.begin(), r.devices.end(), [](const tn_device_info& d) { return d.kind == TN_KIND_CPU; });
}

std::optional<std::string> report_change(const PluginReport& before, const PluginReport& now) {
  if (before.devices.size() != now.devices.size()) return "it reports " + counted(now.devices.size(), "device") + ", its last trial gave " + std::to_string(before.devices.size());
  for (size_t i = 0; i < now.devices.size(); ++i)
    if (!same_device(before.devices[i], now.devices[i])) return "its device " + std::to_string(i) + " is \"" + clean(now.devices[i].name) + "\" now, not what its last trial gave";
  if (before.kernels != now.kernels || before.for_others != now.for_others || before.ops != now.ops)
    return "it offers " + counted(now.kernels, "kernel") + " now, its last trial gave " + std::to_string(before.kernels);
  return std::nullopt;
}

}  // namespace tenon::loader
