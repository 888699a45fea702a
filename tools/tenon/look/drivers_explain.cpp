// From what was seen and said to what a person reads: one finding each, with its reason and what to type.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/tenon/common/context.h"
#include "tools/tenon/look/drivers.h"
#include "tools/tenon/look/drivers_words.h"

namespace tenon::cli {
namespace {


struct Interface {
  const char *name, *title, *loader, *install, *install_loader;  // loader: NULL where the driver itself is opened
  uint32_t vendor;                                               // 0: of any maker
  const char* maker;
  const char *module, *library;  // of the kernel; of its package
};
constexpr Interface kInterfaces[] = {
    {"opencl", "OpenCL", "libOpenCL.so.1", "sudo apt install ocl-icd-libopencl1 pocl-opencl-icd", "sudo apt install ocl-icd-libopencl1", 0, "", "", ""},
    {"vulkan", "Vulkan", "libvulkan.so.1", "sudo apt install libvulkan1 mesa-vulkan-drivers", "sudo apt install libvulkan1", 0, "", "", ""},
    {"cuda", "CUDA", nullptr, "sudo apt install libcuda1", "", 0x10de, "NVIDIA", "nvidia", "libcuda.so.1"},
    {"rocm", "ROCm", nullptr, "sudo apt install libamdhip64-5", "", 0x1002, "AMD", "amdgpu", "libamdhip64.so"}};

// The package that brings a library, on Debian and its kin; "" where only `dpkg -S` knows.
std::string package_of(const std::string& library) {
  static constexpr struct { const char *part, *package; } kPackages[] = {
      {"libOpenCL.so", "ocl-icd-libopencl1"}, {"libvulkan.so", "libvulkan1"}, {"libpocl", "pocl-opencl-icd"}, {"libvulkan_", "mesa-vulkan-drivers"}, {"libcuda.so", "libcuda1"},
      {"libamdhip64", "libamdhip64-5"}, {"libnvidia-opencl", "nvidia-opencl-icd"}, {"libMesaOpenCL", "mesa-opencl-icd"}, {"libRusticlOpenCL", "mesa-opencl-icd"}, {"libigdrcl", "intel-opencl-icd"},
      {"libLLVM-14", "libllvm14"}, {"libLLVM-15", "libllvm15"}, {"libclang-cpp.so.14", "libclang-cpp14"}, {"libhwloc", "libhwloc15"}, {"libdrm_amdgpu", "libdrm-amdgpu1"}, {"libdrm.so", "libdrm2"}, {"libxcb", "libxcb1"}, {"libwayland-client", "libwayland-client0"}};
  for (const auto& p : kPackages)
    if (holds(library, p.part)) return p.package;
  return "";
}

// What brings a driver back in order, or out of the way of every program: a library that no package brought is not mended by one.
std::string mend(const DriverJob& job) {
  const std::string library = job.names.front(), package = package_of(library);
  const bool packaged = !holds(library, "/") || starts(library, "/usr/lib") || starts(library, "/lib");
  if (packaged && !package.empty()) return "sudo apt install --reinstall " + package;
  return !packaged && holds(job.source, "/") ? "sudo mv " + job.source + " " + job.source + ".off" : "dpkg -S " + library;
}

// ---- drivers -----------------------------------------------------------------------------------------------------------
// "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json" -> "lvp"
std::string short_name(const DriverJob& job) {
  const bool file = holds(job.source, "/");
  std::string name = std::filesystem::path(file ? job.source : job.names.front()).filename().string();
  name = name.substr(0, name.find('.'));
  return holds(name, "_icd") ? name.substr(0, name.find("_icd")) : name;
}

std::string device_text(const Interface& i, const DriverDevice& d) {
  std::string text = d.name + ", " + i.title + " " + d.version;
  if (d.memory_bytes != 0) text += ", " + bytes_text(static_cast<double>(d.memory_bytes));
  return text + (d.software ? ", runs on the processor" : d.type == "gpu" ? "" : ", " + d.type);
}

JsonRow device_row(const DriverDevice& d) {
  return JsonRow().add("platform", d.platform).add("name", d.name).add("type", d.type).add("version", d.version).add("driver", d.driver).add("memory_bytes", d.memory_bytes)
      .add("software", d.software).add("pci", d.pci);
}

bool is_used(const Interface& i, const Shown& shown) {
  return std::any_of(shown.used.begin(), shown.used.end(), [&](const std::string& name) { return starts(name, std::string(i.name) + ":"); });
}

// A driver that works. Tenon says when it has no use for it.
Finding working(const Interface& i, const DriverAnswer& a, const Shown& shown) {
  Finding f{std::string(i.name) + (i.loader != nullptr ? " " + short_name(a.job) : ""), State::good, false, "", "", ""};
  std::vector<std::string> texts;
  std::vector<JsonRow> rows;
  for (const DriverDevice& d : a.devices) {
    texts.push_back(device_text(i, d));
    rows.push_back(device_row(d));
  }
  f.value = joined(texts, "; ");
  f.detail.add("devices", rows).add("library", a.job.names.front()).add("source", a.job.source);
  if (is_used(i, shown)) return f;
  f.state = State::note;
  f.reason = Reason::not_built;
  f.why = std::string("the driver works; this build of Tenon has no backend for ") + i.title + " and does not use it";
  f.advice = "tenon devices";
  return f;
}

void add_owner(const DeviceNode& node, Finding* f) { f->detail.add("owner", node.owner).add("group", node.group).add("mode", mode_text(node.mode)); }

// A program would not find the devices that this look found, for it brought a folder of its own.
void explain_pocl_cache(const DriverAnswer& a, const Survey& seen, Findings* out) {
  if (!seen.pocl_blocked || !holds(a.job.names.front(), "libpocl")) return;
  const DeviceNode& folder = *seen.pocl_blocked;
  Finding f{"opencl pocl", State::warning, false, "PoCL shows programs no device", "it keeps compiled kernels below " + folder.path + ", where it may not write: " + folder.owner + ":" + folder.group + ", mode " + mode_text(folder.mode),
            "export POCL_CACHE_DIR=$(mktemp -d)", Reason::no_permission, {}};
  f.detail.add("path", folder.path);
  add_owner(folder, &f);
  out->push_back(f);
}

std::string more_of(const Fault& fault, const char* key) {
  const auto at = fault.more.find(key);
  return at == fault.more.end() ? "" : at->second;
}

bool has_hardware(const Interface& i, const Survey& seen) {
  return std::any_of(seen.hardware.begin(), seen.hardware.end(), [&](const PciDevice& d) { return d.vendor == i.vendor; });
}

std::string fault_title(const Fault& fault) {
  switch (fault.reason) {
    case Reason::library_missing: return more_of(fault, "library") + " is missing";
    case Reason::driver_too_old: return "the driver is too old: it has " + more_of(fault, "have") + ", needed is " + more_of(fault, "need");
    case Reason::no_device: return "no device";
    case Reason::no_permission: return more_of(fault, "path") + " may not be read";
    case Reason::abi_mismatch: return "its parts do not fit together";
    case Reason::driver_crashed: return "the driver crashes";
    case Reason::driver_timeout: return "the driver does not answer";
    default: return "the driver does not start: " + more_of(fault, "code");
  }
}

std::string fault_advice(const Interface& i, const DriverJob& job, const Fault& fault, const Survey& seen) {
  const auto filter = seen.filters.find(i.name);
  switch (fault.reason) {
    case Reason::library_missing: {
      const std::string library = more_of(fault, "library"), package = package_of(library);
      return package.empty() ? "apt-file search " + std::filesystem::path(library).filename().string() : "sudo apt install " + package;
    }
    case Reason::no_device:
      if (filter != seen.filters.end()) return "unset " + filter->second;
      if (i.vendor != 0 && has_hardware(i, seen)) return std::string("sudo modprobe ") + i.module;
      return i.vendor != 0 ? "grep -l 0x" + hex4(i.vendor) + " /sys/bus/pci/devices/*/vendor" : "ls -l /dev/dri";
    case Reason::no_permission: return "sudo chmod a+rx " + more_of(fault, "path");
    case Reason::driver_too_old: return i.vendor == 0x10de ? "sudo apt install --only-upgrade nvidia-driver" : package_of(job.names.front()).empty() ? mend(job) : "sudo apt install --only-upgrade " + package_of(job.names.front());
    case Reason::init_failed: return i.vendor != 0 ? std::string("sudo modprobe ") + i.module : mend(job);
    default: return mend(job);
  }
}

Finding broken(const Interface& i, const DriverAnswer& a, const Fault& fault, const Survey& seen) {
  Finding f{std::string(i.name) + (i.loader != nullptr ? " " + short_name(a.job) : ""), State::warning, false, fault_title(fault), fault.why, fault_advice(i, a.job, fault, seen), fault.reason, {}};
  for (const auto& [key, value] : fault.more) f.detail.add(key, value);
  if (fault.more.count("library") == 0 && !a.job.names.empty()) f.detail.add("library", a.job.names.front());
  f.detail.add("source", a.job.source);
  if (!a.job.source.empty()) f.why += (f.why.empty() ? "" : "; ") + std::string("named by ") + a.job.source;
  if (holds(fault.why, "wrong ELF class")) {  // a partner for programs of the other width, as games bring along
    f.state = State::note;
    f.value = "is for programs of another width";
    f.advice = "readelf -h " + a.job.names.front();
  }
  if (a.kept && (fault.reason == Reason::driver_crashed || fault.reason == Reason::driver_timeout)) f.why += "; not started again until it changes, or: tenon doctor --again";
  return f;
}

bool only_no_device(const DriverAnswer& a) {
  return a.devices.empty() && a.faults.size() == 1 && a.faults[0].reason == Reason::no_device;
}

// Drivers for hardware that this machine lacks are no fault, and one line serves for all of them.
void explain_idle(const Interface& i, const std::vector<const DriverAnswer*>& idle, const Survey& seen, Findings* out) {
  if (idle.empty()) return;
  std::vector<std::string> names, sources;
  for (const DriverAnswer* a : idle) {
    names.push_back(short_name(a->job));
    sources.push_back(a->job.source);
  }
  Finding f{i.name, State::note, false, joined(names, ", ") + (names.size() == 1 ? " finds no device" : " find no device"), "", "", Reason::no_device, {}};
  f.why = names.size() == 1 ? "the driver starts; none of its devices is in this machine, or none that may be opened" : "these drivers start; none of their devices is in this machine, or none that may be opened";
  f.advice = fault_advice(i, idle[0]->job, idle[0]->faults[0], seen);
  f.detail.add("drivers", names).add("sources", sources);
  out->push_back(f);
}

const DriverAnswer* answer_of(const std::vector<DriverAnswer>& said, const std::string& kind, const std::string& name) {
  for (const DriverAnswer& a : said)
    if (a.job.kind == kind && (name.empty() || (!a.job.names.empty() && a.job.names[0] == name))) return &a;
  return nullptr;
}

void explain_vendor_files(const Interface& i, const Survey& seen, Findings* out) {
  for (const VendorFile& file : seen.vendor_files) {
    if (file.interface != i.name || file.fault.empty()) continue;
    const bool refused = file.error == EACCES || file.error == EPERM;
    Finding f{std::string(i.name), State::warning, false, file.path + " is of no use", file.fault, refused ? "sudo chmod a+r " + file.path : "dpkg -S " + file.path, refused ? Reason::no_permission : Reason::init_failed, {}};
    f.detail.add("path", file.path).add("code", file.error != 0 ? strerrorname_np(file.error) : "malformed");
    if (file.refused) add_owner(*file.refused, &f);
    out->push_back(f);
  }
}

// Interfaces with a loader and any number of drivers: OpenCL, Vulkan. True when a driver offers a device.
bool explain_many(const Interface& i, const Survey& seen, const std::vector<DriverAnswer>& said, const Shown& shown, Findings* out) {
  bool works = false, any = false;
  const DriverAnswer* loader = answer_of(said, "library", i.loader);
  const bool no_loader = loader != nullptr && !loader->faults.empty();
  std::vector<const DriverAnswer*> idle;
  explain_vendor_files(i, seen, out);
  for (const DriverAnswer& a : said) {
    if (a.job.kind != i.name) continue;
    any = true;
    if (!a.devices.empty()) {
      works = true;
      out->push_back(working(i, a, shown));
      explain_pocl_cache(a, seen, out);
    }
    if (only_no_device(a)) idle.push_back(&a);
    else
      for (const Fault& f : a.faults) out->push_back(broken(i, a, f, seen));
  }
  explain_idle(i, idle, seen, out);
  if (any && no_loader) {
    Finding f = broken(i, *loader, loader->faults[0], seen);
    f.check = std::string(i.name) + " loader";
    out->push_back(f);
    return false;  // programs find drivers through it
  }
  if (any) return works;
  const std::vector<std::string>& places = std::string(i.name) == "opencl" ? seen.opencl_places : seen.vulkan_places;
  Finding f{i.name, State::note, false, "no driver is installed", "", i.install, Reason::library_missing, {}};
  if (!places.empty()) f.why = (places.size() == 1 ? "" : "none of " + std::to_string(places.size()) + " places names a driver, the last of them is ") + places.back() + (places.size() == 1 ? " names no driver" : "");
  f.detail.add("places", places);
  if (no_loader) f.why = loader->faults[0].why + "; " + f.why;
  const auto filter = seen.filters.find(i.name);
  if (filter != seen.filters.end()) f.advice = "unset " + filter->second;
  f.detail.add("library", no_loader ? i.loader : std::string("a driver of ") + i.title);
  out->push_back(f);
  return false;
}

// ---- drivers of one maker ----------------------------------------------------------------------------------------------
// The usual state after an upgrade: the old module runs on until the next start of the machine.
bool explain_versions(const Interface& i, const Survey& seen, Findings* out) {
  if (i.vendor != 0x10de || seen.nvidia_version.empty() || seen.nvidia_library_version.empty() || seen.nvidia_version == seen.nvidia_library_version) return false;
  Finding f{i.name, State::warning, false, "the kernel's driver and libcuda.so.1 are of different versions", "the kernel runs " + seen.nvidia_version + ", the library is " + seen.nvidia_library_version, "sudo reboot", Reason::abi_mismatch, {}};
  f.detail.add("kernel", seen.nvidia_version).add("library_version", seen.nvidia_library_version).add("library", "libcuda.so.1");
  out->push_back(f);
  return true;
}

Finding absent(const Interface& i, const Survey& seen) {
  if (!has_hardware(i, seen)) {
    Finding f{i.name, State::note, false, std::string("no ") + i.maker + " device in this machine", std::string(i.library) + " is not installed either", "grep -l 0x" + hex4(i.vendor) + " /sys/bus/pci/devices/*/vendor", Reason::no_device, {}};
    f.detail.add("library", i.library);
    return f;
  }
  Finding f{i.name, State::warning, false, std::string(i.library) + " is missing", std::string("there is ") + i.maker + " hardware, but no library to reach it by", i.install, Reason::library_missing, {}};
  f.detail.add("library", i.library);
  return f;
}

bool explain_one(const Interface& i, const Survey& seen, const std::vector<DriverAnswer>& said, const Shown& shown, Findings* out) {
  const DriverAnswer* a = answer_of(said, i.name, "");
  if (a == nullptr) return false;
  if (!a->devices.empty()) return out->push_back(working(i, *a, shown)), true;
  if (explain_versions(i, seen, out) || a->faults.empty()) return false;
  const Fault& fault = a->faults[0];
  if (fault.reason == Reason::library_missing && more_of(fault, "needed_by").empty() && !holds(fault.why, "stub")) return out->push_back(absent(i, seen)), false;
  Finding f = broken(i, *a, fault, seen);
  if (fault.reason == Reason::library_missing && !has_hardware(i, seen)) f.state = State::note;
  if (fault.reason == Reason::no_device) {
    f.value = std::string("the driver's library is there, but no device");
    f.state = has_hardware(i, seen) ? State::warning : State::note;
    if (i.vendor == 0x10de && seen.nvidia_version.empty()) f.why += "; the kernel's driver nvidia is not loaded";
  }
  out->push_back(f);
  return false;
}

}  // namespace

void explain_drivers(const Survey& seen, const std::vector<DriverAnswer>& said, const Person& person, const Shown& shown, Findings* out) {
  explain_hardware(seen, out);
  explain_nodes(seen, said, person, out);
  if (said.empty()) return;  // nobody was asked
  for (const Interface& i : kInterfaces) {
    const size_t first = out->size();
    const bool works = i.loader != nullptr ? explain_many(i, seen, said, shown, out) : explain_one(i, seen, said, shown, out);
    if (works || std::find(shown.required.begin(), shown.required.end(), i.name) == shown.required.end()) continue;
    for (size_t at = first; at < out->size(); ++at) {
      Finding& f = (*out)[at];
      if (f.reason == Reason::none || f.reason == Reason::not_built) continue;  // that driver itself works
      f.state = State::missing;
      f.required = true;
    }
  }
}

}  // namespace tenon::cli
