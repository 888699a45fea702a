#include "loader/filters.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "kernel/device_name.h"

namespace tenon::loader {
namespace {

constexpr uint32_t kAmd = 0x1002, kNvidia = 0x10DE, kIntel = 0x8086;

// Which devices a variable is about: those addressed by that API, and those of that vendor by any other of its drivers.
struct Filter {
  const char* name;
  uint32_t kind, vendor;
};
constexpr Filter kFilters[] = {{"CUDA_VISIBLE_DEVICES", TN_KIND_CUDA, kNvidia}, {"CUDA_VISIBLE_DEVICES", TN_KIND_HIP, kAmd}, {"HIP_VISIBLE_DEVICES", TN_KIND_HIP, kAmd},
                               {"ROCR_VISIBLE_DEVICES", TN_KIND_HIP, kAmd}, {"GPU_DEVICE_ORDINAL", TN_KIND_HIP, kAmd}, {"ZE_AFFINITY_MASK", 0, kIntel}};
// Those that order devices, or choose among drivers.
constexpr const char* kOthers[] = {"CUDA_DEVICE_ORDER", "ZE_FLAT_DEVICE_HIERARCHY", "VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "POCL_DEVICES"};

void add_value(const char* name, std::string* text) {
  const char* value = std::getenv(name);
  const std::string entry = value == nullptr ? "" : std::string(name) + '=' + value;
  if (!entry.empty() && text->find(entry) == std::string::npos) *text += (text->empty() ? "" : " ") + entry;
}

bool applies(const Filter& f, const tn_device_info& d) { return d.kind != TN_KIND_CPU && ((f.kind != 0 && d.kind == f.kind) || d.vendor_id == f.vendor); }

bool identified(const tn_device_info& d) { return kernel::has_uuid(d) || kernel::has_address(d); }

bool same_hardware(const tn_device_info& a, const tn_device_info& b) {
  if (kernel::has_uuid(a) && kernel::has_uuid(b)) return std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0;
  return kernel::has_address(a) && kernel::has_address(b) && a.pci_domain == b.pci_domain && a.pci_bdf == b.pci_bdf;
}

std::vector<std::string> entries_of(const char* text) {
  std::vector<std::string> entries;
  for (std::string rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (comma != 0) entries.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  return entries;
}

// True also where nobody here can tell: parts of devices, words of a driver's own.
bool may_mean_one(const std::string& entry, const std::vector<const tn_device_info*>& devices) {
  int64_t number = 0;
  const char* end = entry.data() + entry.size();
  const auto read = std::from_chars(entry.data(), end, number);
  if (read.ec == std::errc() && (read.ptr == end || *read.ptr == '.')) return number < static_cast<int64_t>(devices.size());  // -1 hides all
  if (!entry.starts_with("GPU-")) return true;
  std::string wanted;
  for (const char c : entry.substr(4))
    if (c != '-') wanted += c;
  return std::any_of(devices.begin(), devices.end(), [&](const tn_device_info* d) {
    std::string digits = kernel::uuid_text(*d).substr(5);
    std::erase(digits, '-');
    return !kernel::has_uuid(*d) || digits.starts_with(wanted);
  });
}

}  // namespace

std::string filter_text(bool hiding) {
  std::string text;
  for (const Filter& f : kFilters)
    if (hiding) add_value(f.name, &text);
  for (const char* name : kOthers) add_value(name, &text);
  return text;
}

bool filters_set() {
  return std::any_of(std::begin(kFilters), std::end(kFilters), [](const Filter& f) { return std::getenv(f.name) != nullptr; });
}

std::vector<std::string> without_filters(const char* const* environment) {
  std::vector<std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::none_of(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return name == f.name; })) kept.emplace_back(entry);
  }
  return kept;
}

Hidden hidden_devices(const PluginReport& all, const PluginReport& seen) {
  Hidden hidden;
  size_t nameless = 0;
  for (const tn_device_info& device : all.devices) {
    if (!identified(device)) ++nameless;
    else if (std::none_of(seen.devices.begin(), seen.devices.end(), [&](const tn_device_info& s) { return same_hardware(device, s); })) hidden.devices.push_back(device);
  }
  const auto shown = static_cast<size_t>(std::count_if(seen.devices.begin(), seen.devices.end(), [](const tn_device_info& d) { return !identified(d); }));
  hidden.nameless = nameless > shown ? nameless - shown : 0;
  return hidden;
}

std::string filters_of(const tn_device_info& device) {
  std::string text;
  for (const Filter& f : kFilters)
    if (applies(f, device)) add_value(f.name, &text);
  return text.empty() ? filter_text(true) : text;
}

std::vector<std::string> unknown_entries(const PluginReport& all) {
  std::vector<std::string> faults;
  for (const Filter& f : kFilters) {
    const char* value = std::getenv(f.name);
    std::vector<const tn_device_info*> devices;
    for (const tn_device_info& d : all.devices)
      if (applies(f, d)) devices.push_back(&d);
    if (value == nullptr || devices.empty()) continue;
    for (const std::string& entry : entries_of(value)) {
      if (may_mean_one(entry, devices)) continue;
      const std::string fault = std::string(f.name) + " names \"" + entry + "\", which is none of " + std::to_string(devices.size()) + (devices.size() == 1 ? " device" : " devices");
      if (std::find(faults.begin(), faults.end(), fault) == faults.end()) faults.push_back(fault);
    }
  }
  return faults;
}

}  // namespace tenon::loader
