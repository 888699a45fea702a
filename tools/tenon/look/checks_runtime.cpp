// Checks of plugins and devices.
#include <algorithm>
#include <tenon/core/error.hpp>
#include <tenon/core/ops.hpp>

#include "tools/tenon/common/context.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/look/checks.h"

namespace tenon::cli {
namespace {

std::string short_id(const tn_plugin_entry& p) {
  const std::string id = p.id;
  return id.substr(id.rfind('.') + 1);
}

std::string code_id(uint32_t code) {
  char text[32];
  std::snprintf(text, sizeof text, "TN-LOAD-%03u", code);
  return text;
}

// A library that the dynamic linker missed, as the package that brings it.
std::string package_of(const std::string& cause) {
  static constexpr struct { const char *library, *package; } kPackages[] = {
      {"libdnnl", "libdnnl2"}, {"libgomp", "libgomp1"}, {"libOpenCL", "ocl-icd-libopencl1"}, {"libvulkan", "libvulkan1"}};
  for (const auto& p : kPackages)
    if (cause.find(p.library) != std::string::npos) return p.package;
  return "";
}

// Most machines lack most drivers: that is worth knowing and nothing to mend.
Finding refused(const tn_plugin_entry& p) {
  const std::string package = package_of(p.cause), reason = load_code_name(p.code);
  const State state = reason == "open-unavailable" ? State::note : State::warning;
  return {std::string("plugin ") + (p.id[0] ? short_id(p) : p.path), state, false, "refused: " + reason, p.cause,
          package.empty() ? "tenon explain " + code_id(p.code) : "sudo apt install " + package};
}

// Kernels that every machine profits from, and what brings them.
struct Wanted { const char *id, *why, *advice; };
constexpr Wanted kWanted[] = {
    {"cpu-kernels", "without it every op runs on the reference kernels, 10 to 100 times slower", "sudo apt install libhwy-dev, then build again"},
    {"onednn", "without it convolutions and large products run slower", "sudo apt install libdnnl-dev, then build again"}};

// 2 x 2 product on the device, by the road that every program takes.
std::string compute(Context& context, const char* name) {
  try {
    const Device device = context.runtime().device(name, TN_POLICY_REQUIRE);
    const float values[] = {1, 2, 3, 4};
    const Tensor a = from_host(values, DType::f32, {2, 2}, {.device = device});
    const std::vector<float> y = matmul(a, a).to_vector<float>();
    return y == std::vector<float>{7, 10, 15, 22} ? "" : "a product of 2 x 2 matrices came out wrong";
  } catch (const Error& error) {
    return error.summary() + (error.why().empty() ? "" : ": " + error.why());
  }
}

}  // namespace

void check_plugins(Context& context, Findings* out) {
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  std::string used;
  for (const tn_plugin_entry& p : plugins)
    if (p.code == 0) used += (used.empty() ? "" : " ") + short_id(p);
  out->push_back({"plugins in use", State::good, false, used.empty() ? "none" : used, "", ""});
  for (const tn_plugin_entry& p : plugins) {
    const std::string note = p.cause;
    // That a plugin waits to be opened is as it should be; what follows such words is worth reading.
    const bool waits_only = note.rfind("not opened yet", 0) == 0 && note.find("; ") == std::string::npos;
    if (p.code != 0) out->push_back(refused(p));
    else if (note.find("worker process") != std::string::npos) out->push_back({"plugin " + short_id(p), State::note, false, note, "TENON_ISOLATE or loader.isolate names it", ""});
    else if (!note.empty() && !waits_only) out->push_back({"plugin " + short_id(p), State::note, false, note, "", "tenon plugins"});
  }
  for (const Wanted& w : kWanted) {
    const bool seen = std::any_of(plugins.begin(), plugins.end(), [&](const tn_plugin_entry& p) { return short_id(p) == w.id; });
    if (!seen) out->push_back({std::string("plugin ") + w.id, State::warning, false, "not found", w.why, w.advice});
  }
}

void check_devices(Context& context, Findings* out) {
  bool any = false;
  for (const tn_device_entry& d : device_entries(context.handle())) {
    const std::string check = std::string("device ") + d.name;
    if (d.verdict != 0) {
      const bool hidden = d.verdict == static_cast<uint32_t>(-TN_E_POLICY);  // somebody's wish, and no fault
      out->push_back({check, hidden ? State::note : State::warning, false, hidden ? "hidden" : "unusable", d.cause, "tenon devices"});
      continue;
    }
    const std::string fault = compute(context, d.name);
    any |= fault.empty();
    out->push_back({check, fault.empty() ? State::good : State::warning, false, fault.empty() ? std::string(d.info.name) + ", computes" : "does not compute", fault,
                    fault.empty() ? "" : std::string("tenon why matmul f32[2,2] f32[2,2] --device ") + d.name});
  }
  if (!any) out->push_back({"devices", State::missing, true, "no device computes", "every route failed, see above", "reinstall Tenon, then run `tenon doctor` again"});
}

}  // namespace tenon::cli
