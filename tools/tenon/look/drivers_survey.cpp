// What lies on the machine: files, device nodes and the PCI bus. Nothing is started or opened for use.
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tools/tenon/look/drivers.h"

extern char** environ;

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const Place& place, const char* name) {
  const auto at = place.variables.find(name);
  return at == place.variables.end() ? "" : at->second;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::string trimmed(std::string text) {
  const char* blank = " \t\r\n";
  text.erase(0, std::min(text.size(), text.find_first_not_of(blank)));
  return text.erase(text.find_last_not_of(blank) + 1);
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return trimmed(line);
}

// Bytewise order, so that two runs say the same.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Small text of a regular file; sets *error to errno when it cannot be read.
std::string read_text(const std::string& path, int* error) {
  *error = 0;
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return *error = errno, "";
  if (!S_ISREG(info.st_mode) || info.st_size > 1 << 20) return *error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "";
  std::ifstream in(path);
  if (!in) return *error = errno ? errno : EIO, "";
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool ends_with(const std::string& text, const std::string& end) { return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0; }

// ---- owners ------------------------------------------------------------------------------------------------------------
// A name from the root's own lists; the number where there is none.
std::string name_of(const Place& place, const char* list, unsigned id) {
  std::ifstream in(place.root + list);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name, password, number;
    if (std::getline(fields, name, ':') && std::getline(fields, password, ':') && std::getline(fields, number, ':') && number == std::to_string(id)) return name;
  }
  if (place.root.empty() && std::strcmp(list, "/etc/group") == 0)
    if (const group* g = getgrgid(id)) return g->gr_name;
  return std::to_string(id);
}

DeviceNode node_at(const Place& place, const std::string& path, const struct stat& info) {
  return {path, name_of(place, "/etc/passwd", info.st_uid), name_of(place, "/etc/group", info.st_gid), info.st_uid, info.st_gid, info.st_mode & 07777u, info.st_rdev};
}

// Whose the file is that may not be read.
void add_owner(const Place& place, VendorFile* file) {
  struct stat info {};
  if ((file->error == EACCES || file->error == EPERM) && stat((place.root + file->path).c_str(), &info) == 0) file->refused = node_at(place, file->path, info);
}

// ---- OpenCL: files *.icd whose first line is a library -----------------------------------------------------------------
VendorFile read_icd(const Place& place, const std::string& path) {
  VendorFile file{"opencl", path, "", "", 0, {}};
  const std::string text = read_text(place.root + path, &file.error);
  add_owner(place, &file);
  file.library = trimmed(text.substr(0, text.find('\n')));
  if (file.error != 0) file.fault = std::string("it cannot be read: ") + std::strerror(file.error);
  else if (file.library.empty()) file.fault = "it names no library";
  return file;
}

void survey_opencl(const Place& place, Survey* out) {
  std::string at = variable(place, "OCL_ICD_VENDORS");
  if (at.empty()) at = "/etc/OpenCL/vendors";
  out->opencl_places.push_back(at);
  std::error_code ignored;
  if (fs::is_directory(place.root + at, ignored)) {
    for (const std::string& name : names_in(place.root + at))
      if (ends_with(name, ".icd")) out->vendor_files.push_back(read_icd(place, at + "/" + name));
  } else if (ends_with(at, ".icd")) {
    out->vendor_files.push_back(read_icd(place, at));
  } else if (at.find(".so") != std::string::npos) {  // a loader of Debian takes a library here too
    out->vendor_files.push_back({"opencl", "OCL_ICD_VENDORS", at, "", 0, {}});
  }
  for (const std::string& library : split(variable(place, "OCL_ICD_FILENAMES"))) out->vendor_files.push_back({"opencl", "OCL_ICD_FILENAMES", library, "", 0, {}});
}

// ---- Vulkan: JSON manifests --------------------------------------------------------------------------------------------
// A library name with a slash that is no full path counts from the manifest's folder.
std::string library_of(const std::string& manifest, const std::string& library) {
  if (library.empty() || library[0] == '/' || library.find('/') == std::string::npos) return library;
  return (fs::path(manifest).parent_path() / library).lexically_normal().string();
}

VendorFile read_manifest(const Place& place, const std::string& path) {
  VendorFile file{"vulkan", path, "", "", 0, {}};
  const std::string text = read_text(place.root + path, &file.error);
  add_owner(place, &file);
  if (file.error != 0) return file.fault = std::string("it cannot be read: ") + std::strerror(file.error), file;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("ICD") || !json["ICD"].is_object()) return file.fault = "it is no manifest of a Vulkan driver", file;
  const auto& icd = json["ICD"];
  if (icd.contains("library_path") && icd["library_path"].is_string()) file.library = library_of(path, icd["library_path"].get<std::string>());
  if (file.library.empty()) file.fault = "it names no library_path";
  return file;
}

// The folders that loaders document, in their order.
std::vector<std::string> vulkan_folders(const Place& place) {
  const auto list = [&](const char* name, const char* instead) { return split(variable(place, name).empty() ? instead : variable(place, name)); };
  std::vector<std::string> bases;
  const std::string home = variable(place, "HOME");
  const auto add = [&](const std::vector<std::string>& more) { bases.insert(bases.end(), more.begin(), more.end()); };
  add(list("XDG_CONFIG_HOME", home.empty() ? "" : (home + "/.config").c_str()));
  add(list("XDG_CONFIG_DIRS", "/etc/xdg"));
  add({"/usr/local/etc", "/etc"});
  add(list("XDG_DATA_HOME", home.empty() ? "" : (home + "/.local/share").c_str()));
  add(list("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
  std::vector<std::string> folders;
  for (const std::string& base : bases) {
    const std::string folder = base + "/vulkan/icd.d";
    if (base[0] == '/' && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  }
  return folders;
}

// VK_LOADER_DRIVERS_DISABLE and _SELECT: patterns of manifest names, separated by commas.
bool any_matches(std::string patterns, const std::string& name) {
  std::replace(patterns.begin(), patterns.end(), ',', ':');
  for (const std::string& p : split(patterns))
    if (fnmatch(p.c_str(), name.c_str(), FNM_CASEFOLD) == 0) return true;
  return false;
}

void survey_vulkan(const Place& place, Survey* out) {
  std::vector<std::string> places = split(variable(place, "VK_DRIVER_FILES"));
  if (places.empty()) places = split(variable(place, "VK_ICD_FILENAMES"));
  if (places.empty()) {
    places = split(variable(place, "VK_ADD_DRIVER_FILES"));
    for (const std::string& folder : vulkan_folders(place)) places.push_back(folder);
  }
  const std::string select = variable(place, "VK_LOADER_DRIVERS_SELECT"), disable = variable(place, "VK_LOADER_DRIVERS_DISABLE");
  const auto take = [&](const std::string& file) {
    const std::string name = fs::path(file).filename().string();
    if ((!select.empty() && !any_matches(select, name)) || any_matches(disable, name)) return;
    out->vendor_files.push_back(read_manifest(place, file));
  };
  for (const std::string& at : places) {
    out->vulkan_places.push_back(at);
    std::error_code ignored;
    if (!fs::is_directory(place.root + at, ignored)) {
      if (ends_with(at, ".json")) take(at);
      continue;
    }
    for (const std::string& name : names_in(place.root + at))
      if (ends_with(name, ".json")) take(at + "/" + name);
  }
}

// ---- device nodes ------------------------------------------------------------------------------------------------------
void add_node(const Place& place, const std::string& path, Survey* out) {
  struct stat info {};
  if (stat((place.root + path).c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return;
  out->nodes.push_back(node_at(place, path, info));
}

void survey_nodes(const Place& place, Survey* out) {
  for (const std::string& name : names_in(place.root + "/dev")) {
    const bool numbered = name.rfind("nvidia", 0) == 0 && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    if (name == "kfd" || name == "nvidiactl" || name == "nvidia-uvm" || numbered) add_node(place, "/dev/" + name, out);
  }
  for (const std::string& name : names_in(place.root + "/dev/dri"))
    if (name.rfind("renderD", 0) == 0) add_node(place, "/dev/dri/" + name, out);
}

// PoCL keeps kernels that it has compiled; where it cannot, it says CL_DEVICE_NOT_FOUND.
void survey_pocl_cache(const Place& place, Survey* out) {
  const std::string own = variable(place, "POCL_CACHE_DIR"), cache = variable(place, "XDG_CACHE_HOME"), home = variable(place, "HOME");
  fs::path at = !own.empty() ? own : !cache.empty() ? cache + "/pocl/kcache" : !home.empty() ? home + "/.cache/pocl/kcache" : "/tmp/pocl/kcache";
  struct stat info {};
  while (stat((place.root + at.string()).c_str(), &info) != 0 && at.has_relative_path()) at = at.parent_path();
  if (access((place.root + at.string()).c_str(), W_OK | X_OK) != 0) out->pocl_blocked = node_at(place, at.string(), info);
}

// ---- the PCI bus -------------------------------------------------------------------------------------------------------
void survey_hardware(const Place& place, Survey* out) {
  const std::string bus = place.root + "/sys/bus/pci/devices";
  for (const std::string& address : names_in(bus)) {
    const std::string at = bus + "/" + address;
    const auto number = [&](const char* name) { return static_cast<uint32_t>(std::strtoul(first_line(at + "/" + name).c_str(), nullptr, 16)); };
    PciDevice d{address, number("vendor"), number("device"), number("class"), ""};
    const uint32_t base = d.kind >> 16;
    if ((base != 0x03 && base != 0x12) || (d.vendor != 0x10de && d.vendor != 0x1002 && d.vendor != 0x8086)) continue;
    std::error_code ignored;
    d.driver = fs::read_symlink(at + "/driver", ignored).filename().string();
    out->hardware.push_back(d);
  }
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu ..." -> "535.129.03"
std::string version_word(const std::string& line) {
  std::istringstream in(line);
  for (std::string word; in >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "";
}

// libcuda.so.1 is a link to libcuda.so.VERSION in every packaging.
std::string cuda_library_version(const Place& place) {
  std::vector<std::string> folders = split(variable(place, "LD_LIBRARY_PATH"));
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib"}) folders.push_back(folder);
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string file = fs::canonical(place.root + folder + "/libcuda.so.1", error).filename().string();
    if (!error && file.rfind("libcuda.so.", 0) == 0) return file.size() > 13 ? file.substr(11) : "";
  }
  return "";
}

// Variables that may hide devices from programs; the first that is set of each interface.
void survey_filters(const Place& place, Survey* out) {
  static constexpr struct { const char *interface, *name; } kFilters[] = {
      {"cuda", "CUDA_VISIBLE_DEVICES"}, {"rocm", "ROCR_VISIBLE_DEVICES"}, {"rocm", "HIP_VISIBLE_DEVICES"}, {"opencl", "POCL_DEVICES"}, {"opencl", "OCL_ICD_VENDORS"},
      {"vulkan", "VK_DRIVER_FILES"}, {"vulkan", "VK_ICD_FILENAMES"}, {"vulkan", "VK_LOADER_DRIVERS_SELECT"}, {"vulkan", "VK_LOADER_DRIVERS_DISABLE"}};
  for (const auto& f : kFilters)
    if (place.variables.count(f.name) != 0) out->filters.emplace(f.interface, f.name);
}

// ---- what an answer depends on -----------------------------------------------------------------------------------------
std::string stamp_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "-";
  return std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "." + std::to_string(info.st_ino);
}

std::string identity_of(const Place& place, const Survey& seen) {
  std::ostringstream text;
  text << first_line(place.root + "/proc/sys/kernel/random/boot_id") << '|' << geteuid() << '.' << getegid();
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  if (!groups.empty() && getgroups(static_cast<int>(groups.size()), groups.data()) >= 0)
    for (const gid_t g : groups) text << '.' << g;
  text << '|' << stamp_of(place.root + "/etc/ld.so.cache") << '|' << seen.nvidia_version;
  for (const char* folder : {"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}) text << '|' << stamp_of(place.root + folder);
  std::error_code ignored;
  for (const char* module : {"nvidia", "amdgpu", "i915", "xe"}) text << '|' << first_line(place.root + "/sys/module/" + module + "/version") << fs::exists(place.root + "/sys/module/" + module, ignored);
  for (const PciDevice& d : seen.hardware) text << '|' << d.address << d.vendor << '.' << d.device << d.driver;
  for (const DeviceNode& n : seen.nodes) text << '|' << n.path << n.uid << '.' << n.gid << '.' << n.mode << '.' << n.number;
  for (const auto& [name, value] : place.variables)
    for (const char* prefix : {"VK_", "OCL_", "POCL_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "GPU_", "ZE_", "MESA_", "LIBGL_", "LP_", "RADV_", "ANV_", "LD_", "DRI_", "XDG_", "HOME"})
      if (name.rfind(prefix, 0) == 0) text << '|' << name << '=' << value;
  for (const std::string& folder : split(variable(place, "LD_LIBRARY_PATH"))) text << '|' << stamp_of(place.root + folder);
  return text.str();
}

}  // namespace

Place Place::here() {
  Place place;
  if (getauxval(AT_SECURE) != 0) return place;
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string text = *v;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) place.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return place;
}

Survey survey(const Place& place) {
  Survey seen;
  survey_opencl(place, &seen);
  survey_vulkan(place, &seen);
  survey_nodes(place, &seen);
  survey_pocl_cache(place, &seen);
  survey_hardware(place, &seen);
  survey_filters(place, &seen);
  seen.nvidia_version = version_word(first_line(place.root + "/proc/driver/nvidia/version"));
  seen.nvidia_library_version = cuda_library_version(place);
  seen.identity = identity_of(place, seen);
  return seen;
}

Person Person::here() {
  Person person;
  person.uid = geteuid();
  const passwd* entry = getpwuid(person.uid);
  person.name = entry != nullptr ? entry->pw_name : std::to_string(person.uid);
  person.groups.resize(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  if (!person.groups.empty() && getgroups(static_cast<int>(person.groups.size()), person.groups.data()) < 0) person.groups.clear();
  person.groups.push_back(getegid());
  if (entry == nullptr) return person;
  gid_t listed[256];
  int n = 256;
  if (getgrouplist(entry->pw_name, entry->pw_gid, listed, &n) >= 0) person.member_of.assign(listed, listed + n);
  return person;
}

std::vector<DriverJob> jobs_of(const Survey& seen) {
  std::vector<DriverJob> jobs{{"library", {"libOpenCL.so.1", "clGetPlatformIDs"}, ""}, {"library", {"libvulkan.so.1", "vkCreateInstance"}, ""}};
  std::set<std::string> taken;  // two files that name one library are one driver
  for (const VendorFile& file : seen.vendor_files)
    if (!file.library.empty() && taken.insert(file.interface + file.library).second) jobs.push_back({file.interface, {file.library}, file.path});
  jobs.push_back({"cuda", {"libcuda.so.1"}, ""});
  jobs.push_back({"rocm", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}, ""});
  for (const DeviceNode& n : seen.nodes) jobs.push_back({"nodes", {n.path}, ""});
  return jobs;
}

}  // namespace tenon::cli
