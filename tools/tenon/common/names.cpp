#include "tools/tenon/common/names.h"

#include <tenon/caps.h>

#include <cctype>
#include <cstdio>
#include <cstring>

#include "tools/tenon/common/context.h"

namespace tenon::cli {
namespace {

struct Named { const char* name; uint32_t number; };
#define DTYPE(name, number, bits) {#name + 3, number},
constexpr Named kDtypes[] = {TN_DTYPES(DTYPE)};
#undef DTYPE

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string number_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string in_unit(double value, const std::string& unit) {
  if (unit == "B") return bytes_text(value);
  if (unit == "B/s" || unit == "1/s") return rate_text(value, unit == "1/s" ? "/s" : "B/s");
  return number_text(value) + (unit.empty() ? "" : " " + unit);
}

}  // namespace

std::string dtype_name(uint32_t dtype) {
  for (const Named& d : kDtypes)
    if (d.number == dtype) return lower(d.name);
  return "dtype " + std::to_string(dtype);
}

uint32_t dtype_number(const std::string& name) {
  for (const Named& d : kDtypes)
    if (lower(d.name) == name) return d.number;
  return 0;
}

std::vector<std::string> dtype_names(uint64_t mask) {
  std::vector<std::string> names;
  for (const Named& d : kDtypes)
    if (mask >> d.number & 1) names.push_back(lower(d.name));
  return names;
}

std::string kind_name(uint32_t kind) {
  switch (kind) {
    case TN_KIND_CPU: return "cpu";
    case TN_KIND_CUDA: return "cuda";
    case TN_KIND_HIP: return "hip";
    case TN_KIND_OPENCL: return "opencl";
    case TN_KIND_VULKAN: return "vulkan";
    default: break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "kind 0x%08x", kind);
  return text;
}

// The codes are frozen, so that they may be named here too; docs/errors/TN-LOAD.md explains each.
std::string load_code_name(uint32_t code) {
  static constexpr const char* kNames[] = {
      "in-use", "not-a-plugin", "not-regular-file", "unreadable", "empty-file", "bad-elf", "wrong-target", "abi-range",
      "cpu-need", "missing-dependency", "open-failed", "crashed-in-probe", "probe-timeout", "no-symbol", "query-refused",
      "duplicate-of", "untrusted", "bad-table", "open-unavailable", "open-error", "not-allowed", "bad-record", "unloaded", "not-found", "relative-path", "probe-failed", "cannot-isolate"};
  return code < std::size(kNames) ? kNames[code] : "code " + std::to_string(code);
}

std::string stage_name(uint32_t stage) {
  static constexpr const char* kNames[] = {"none", "find", "trust", "dedupe", "cold", "probe", "open", "query", "validate", "start"};
  return stage < std::size(kNames) ? kNames[stage] : "stage " + std::to_string(stage);
}

std::vector<std::string> isa_names(const uint64_t words[4]) {
  std::vector<std::string> names;
#define ISA(NAME, name, bit) \
  if (words[(bit) / 64] >> ((bit) % 64) & 1) names.push_back(#name);
  TN_ISA_BITS(ISA)
#undef ISA
  return names;
}

CapText cap_text(const tn_cap& cap) {
  static constexpr struct { uint32_t key; const char *name, *unit; } kKeys[] = {
#define CAP(NAME, name, key, type, unit, since) {key, #name, unit},
      TN_CAPS(CAP)
#undef CAP
  };
  CapText text;
  char number[32];
  std::snprintf(number, sizeof number, "0x%08x", cap.key);
  text.key = number;
  for (const auto& k : kKeys)
    if (k.key == cap.key) text.key = k.name, text.unit = k.unit;
  static constexpr const char* kSources[] = {"", "measured", "driver", "table", "guess"};
  text.source = cap.provenance < std::size(kSources) ? kSources[cap.provenance] : "";
  if (cap.type == TN_CAP_TEXT) {
    text.value = cap.v.s ? cap.v.s : "";
    return text;
  }
  text.is_number = true;
  text.number = cap.type == TN_CAP_F64 ? cap.v.f : cap.type == TN_CAP_I64 ? static_cast<double>(cap.v.i) : static_cast<double>(cap.v.u);
  if (text.unit == "mask") {
    std::snprintf(number, sizeof number, "0x%llx", static_cast<unsigned long long>(cap.v.u));
    text.value = number;
    text.is_number = false;
  } else {
    text.value = in_unit(text.number, text.unit);
  }
  return text;
}

}  // namespace tenon::cli
