#include "kernel/device_name.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace tenon::kernel {
namespace {

constexpr std::string_view kUuid = "uuid:", kPci = "pci:";

// A whole number in hexadecimal of at most `digits` digits.
bool read_hex(std::string_view text, size_t digits, uint32_t most, uint32_t* out) {
  if (text.empty() || text.size() > digits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
  return error == std::errc() && end == text.data() + text.size() && *out <= most;
}

bool read_uuid(std::string_view text, uint8_t (&out)[16]) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = text.size() == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash != (text[i] == '-')) return false;
    if (!dash) digits += text[i];
  }
  if (digits.size() != 32) return false;
  for (size_t k = 0; k < 16; ++k) {
    uint32_t byte = 0;
    if (!read_hex(std::string_view(digits).substr(2 * k, 2), 2, 0xFF, &byte)) return false;
    out[k] = static_cast<uint8_t>(byte);
  }
  return true;
}

// domain:bus:device.function, the domain may be left out.
bool read_address(std::string_view text, uint32_t* domain, uint32_t* bdf) {
  const size_t dot = text.rfind('.'), second = text.rfind(':');
  if (dot == std::string_view::npos || second == std::string_view::npos || dot < second) return false;
  std::string_view head = text.substr(0, second);
  const size_t first = head.find(':');
  uint32_t bus = 0, device = 0, function = 0;
  *domain = 0;
  if (first != std::string_view::npos) {
    if (!read_hex(head.substr(0, first), 8, UINT32_MAX, domain)) return false;
    head.remove_prefix(first + 1);
  }
  if (!read_hex(head, 2, 0xFF, &bus) || !read_hex(text.substr(second + 1, dot - second - 1), 2, 0x1F, &device) || !read_hex(text.substr(dot + 1), 1, 7, &function)) return false;
  *bdf = bus << 8 | device << 3 | function;
  return true;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

}  // namespace

std::optional<DeviceName> parse_device_name(const std::string& text) {
  DeviceName name;
  const std::string_view view = text;
  if (view.starts_with(kUuid)) {
    name.by = DeviceName::By::Uuid;
    if (!read_uuid(view.substr(kUuid.size()), name.uuid)) return std::nullopt;
    return name;
  }
  if (view.starts_with(kPci)) {
    name.by = DeviceName::By::Pci;
    if (!read_address(view.substr(kPci.size()), &name.pci_domain, &name.pci_bdf)) return std::nullopt;
    return name;
  }
  const size_t colon = view.find(':');
  name.plugin = view.substr(0, colon);
  if (!is_word(name.plugin)) return std::nullopt;
  if (colon == std::string_view::npos) return name;
  const std::string_view number = view.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.index);
  if (error != std::errc() || end != number.data() + number.size() || name.index < 0 || (number.size() > 1 && number[0] == '0')) return std::nullopt;
  return name;
}

bool names_device(const DeviceName& name, const char* listed_as, const tn_device_info& info) {
  switch (name.by) {
    case DeviceName::By::Uuid: return has_uuid(info) && std::memcmp(name.uuid, info.uuid, sizeof info.uuid) == 0;
    case DeviceName::By::Pci: return has_address(info) && name.pci_domain == info.pci_domain && name.pci_bdf == info.pci_bdf;
    case DeviceName::By::List: break;
  }
  const std::string wanted = name.plugin + ":" + (name.index < 0 ? "" : std::to_string(name.index));
  return name.index < 0 ? std::string_view(listed_as).starts_with(wanted) : wanted == listed_as;
}

bool has_uuid(const tn_device_info& info) {
  const auto same_byte = [&](uint8_t byte) { return std::all_of(std::begin(info.uuid), std::end(info.uuid), [&](uint8_t b) { return b == byte; }); };
  return (info.flags & TN_DEVICE_UUID_TRUSTED) != 0 && !same_byte(0) && !same_byte(0xFF);
}

bool has_address(const tn_device_info& info) { return (info.pci_domain != 0 || info.pci_bdf != 0) && (info.flags & TN_DEVICE_PARTITION) == 0; }

std::string uuid_text(const tn_device_info& info) {
  std::string text(kUuid);
  for (size_t k = 0; k < sizeof info.uuid; ++k) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", info.uuid[k]);
    text += digits;
  }
  return text;
}

std::string address_text(const tn_device_info& info) {
  char text[40];
  std::snprintf(text, sizeof text, "pci:%04x:%02x:%02x.%x", info.pci_domain, info.pci_bdf >> 8 & 0xFF, info.pci_bdf >> 3 & 0x1F, info.pci_bdf & 7);
  return text;
}

}  // namespace tenon::kernel
