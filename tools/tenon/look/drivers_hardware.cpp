// The PCI bus and the device nodes: what is there, and who may open it.
#include <algorithm>
#include <set>

#include "tools/tenon/look/drivers.h"
#include "tools/tenon/look/drivers_words.h"

namespace tenon::cli {
namespace {

std::string maker_of(uint32_t vendor) { return vendor == 0x10de ? "NVIDIA" : vendor == 0x1002 ? "AMD" : "Intel"; }

std::string title_of(const PciDevice& d) {
  return "an " + maker_of(d.vendor) + " GPU (" + hex4(d.vendor) + ":" + hex4(d.device) + ") at " + d.address;
}

// ---- the PCI bus -------------------------------------------------------------------------------------------------------
Finding hardware_finding(const PciDevice& d) {
  static constexpr struct { uint32_t vendor; const char *module, *advice; } kModules[] = {
      {0x10de, "nvidia", "sudo apt install nvidia-driver"}, {0x1002, "amdgpu", "sudo apt install firmware-amd-graphics && sudo modprobe amdgpu"}, {0x8086, "i915", "sudo modprobe i915"}};
  Finding f{"hardware", State::good, false, title_of(d) + (d.driver.empty() ? "" : ", driver " + d.driver), "", ""};
  const auto* module = std::find_if(std::begin(kModules), std::end(kModules), [&](const auto& m) { return m.vendor == d.vendor; });
  f.detail.add("address", d.address).add("id", hex4(d.vendor) + ":" + hex4(d.device)).add("driver", d.driver);
  if (d.driver.empty()) {
    f.state = State::warning;
    f.value += " has no driver";
    f.reason = Reason::library_missing;
    f.why = std::string("no driver of the kernel is bound to it; its own is the module ") + module->module;
    f.detail.add("library", module->module);
    f.advice = module->advice;
  } else if (d.driver == "vfio-pci" || d.driver == "pci-stub" || d.driver == "nouveau") {
    f.state = State::note;
    f.reason = Reason::no_device;
    f.why = d.driver == "nouveau" ? "nouveau draws, but does not compute" : d.driver + " keeps it for a virtual machine";
    f.advice = d.driver == "nouveau" ? module->advice : "echo " + d.address + " | sudo tee /sys/bus/pci/drivers/" + d.driver + "/unbind";
  }
  return f;
}

// ---- device nodes ------------------------------------------------------------------------------------------------------
bool contains(const std::vector<gid_t>& groups, gid_t g) { return std::find(groups.begin(), groups.end(), g) != groups.end(); }

// Whether the owner, group and mode alone would let this person in.
bool mode_allows(const DeviceNode& node, const Person& person) {
  if (person.uid == 0) return true;
  const mode_t shift = node.uid == person.uid ? 6 : contains(person.groups, node.gid) ? 3 : 0;
  return (node.mode >> shift & 6) == 6;
}

// The least that opens it: joining its group, logging in again, a rule for one person.
std::string permission_advice(const DeviceNode& node, const Person& person) {
  if (mode_allows(node, person)) return "docker run --device=" + node.path + " IMAGE";  // what refuses is the container's list of devices
  const bool group_may = (node.mode >> 3 & 6) == 6 && node.gid != 0 && node.uid != person.uid;
  if (!group_may) return "sudo setfacl -m u:" + person.name + ":rw " + node.path;
  if (contains(person.member_of, node.gid)) return "newgrp " + node.group;
  const bool named = node.group != std::to_string(node.gid);
  return (named ? "" : "sudo groupadd -g " + node.group + " gpu && ") + ("sudo usermod -aG " + (named ? node.group : std::string("gpu")) + " " + person.name);
}

std::string permission_why(const DeviceNode& node, const Person& person) {
  const std::string facts = "it belongs to " + node.owner + ":" + node.group + " with mode " + mode_text(node.mode);
  if (mode_allows(node, person)) return facts + ", which allows it; the container does not";
  if (contains(person.member_of, node.gid) && !contains(person.groups, node.gid)) return facts + "; " + person.name + " is in that group, but logged in before";
  return facts + ", and " + person.name + " is " + (node.uid == person.uid ? "its owner" : contains(person.groups, node.gid) ? "in that group" : "not in that group");
}

Finding explain_node(const DeviceNode& node, const Fault& fault, const Person& person) {
  const auto at = fault.more.find("code");
  const std::string code = at == fault.more.end() ? "" : at->second;
  Finding f = refused_node(node, code, person);
  if (f.reason != Reason::no_permission) f.why = code + (code.empty() ? "" : ": ") + fault.why;
  if (fault.reason == Reason::none) return f;
  f.reason = fault.reason;  // the child did not come back from opening it
  f.value = node.path + (f.reason == Reason::driver_timeout ? " does not open in time" : " is not opened");
  return f;
}

// A driver of the kernel at work, and nothing in /dev to reach it by.
void explain_missing_nodes(const Survey& seen, Findings* out) {
  std::set<std::string> known;  // one line a driver, however many devices it serves
  static constexpr struct { const char *driver, *node, *advice; } kWanted[] = {
      {"nvidia", "/dev/nvidiactl", "sudo nvidia-modprobe -u -c 0"}, {"amdgpu", "/dev/dri/renderD", "docker run --device=/dev/dri --device=/dev/kfd IMAGE"},
      {"i915", "/dev/dri/renderD", "docker run --device=/dev/dri IMAGE"}, {"xe", "/dev/dri/renderD", "docker run --device=/dev/dri IMAGE"}};
  for (const PciDevice& d : seen.hardware)
    for (const auto& w : kWanted) {
      if (d.driver != w.driver || known.count(d.driver) != 0 || std::any_of(seen.nodes.begin(), seen.nodes.end(), [&](const DeviceNode& n) { return starts(n.path, w.node); })) continue;
      const std::string node = std::string(w.node) + (holds(w.node, "render") ? "*" : "");
      Finding f{"device nodes", State::warning, false, node + " is absent", "the driver " + d.driver + " serves " + d.address + ", but there is no node to reach it by: a container that was not given it, or a helper that did not run", w.advice, Reason::no_device, {}};
      f.detail.add("path", node);
      known.insert(d.driver);
      out->push_back(f);
    }
}

}  // namespace

void explain_hardware(const Survey& seen, Findings* out) {
  for (const PciDevice& d : seen.hardware) out->push_back(hardware_finding(d));
}

void explain_nodes(const Survey& seen, const std::vector<DriverAnswer>& said, const Person& person, Findings* out) {
  std::vector<std::string> open;
  for (const DeviceNode& node : seen.nodes)
    for (const DriverAnswer& a : said) {
      if (a.job.kind != "nodes" || a.job.names.front() != node.path) continue;
      if (a.faults.empty()) open.push_back(node.path);
      else out->push_back(explain_node(node, a.faults.front(), person));
    }
  if (!open.empty()) out->push_back({"device nodes", State::good, false, joined(open, ", ") + (open.size() == 1 ? " opens" : " open"), "", ""});
  explain_missing_nodes(seen, out);
}

Finding refused_node(const DeviceNode& node, const std::string& code, const Person& person) {
  Finding f{"device node", State::warning, false, "", "", ""};
  f.detail.add("path", node.path).add("owner", node.owner).add("group", node.group).add("mode", mode_text(node.mode)).add("code", code);
  const std::string log = "sudo dmesg | grep -iE 'drm|amdgpu|i915|nvidia'";
  if (code == "EACCES" || code == "EPERM") {
    f.reason = Reason::no_permission;
    f.value = node.path + " may not be opened";
    f.why = code + ": " + permission_why(node, person);
    f.advice = permission_advice(node, person);
  } else if (code == "ENODEV" || code == "ENXIO" || code == "ENOENT") {
    f.reason = Reason::no_device;
    f.value = node.path + " is there, but no device answers";
    f.advice = log;
  } else {
    f.reason = Reason::init_failed;
    f.value = node.path + " does not open: " + code;
    f.advice = code == "ENOMEM" ? "free -h" : log;
  }
  return f;
}

}  // namespace tenon::cli
