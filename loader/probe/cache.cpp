#include "loader/probe/cache.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "loader/small_file.h"

namespace tenon::loader {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kHead = "tenon-probe 2", kSuffix = ".probe";

std::string text_of(const std::string& key, const ProbeRecord& r) {
  std::string text(kHead);
  text += "\nkey " + one_line(key) + "\nid " + one_line(r.id) + "\ncode " + std::to_string(r.code) + "\nnative " + std::to_string(r.native_code);
  return text + "\ncause " + one_line(r.cause) + "\n" + (r.report ? report_text(*r.report) : "") + "end\n";
}

// The value of the next line, which must begin with `name`; takes the line off the front.
std::optional<std::string> take_line(std::string_view* rest, std::string_view name) {
  const size_t end = rest->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  if (!line.starts_with(name)) return std::nullopt;
  return std::string(line.substr(std::min(line.size(), name.size() + 1)));
}

template <class T>
bool read_number(const std::string& text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Nothing unless the text is whole; out_key gets the key it was written for.
std::optional<ProbeRecord> parse(std::string_view text, std::string* out_key) {
  ProbeRecord record;
  if (!take_line(&text, kHead)) return std::nullopt;
  const auto key = take_line(&text, "key"), id = take_line(&text, "id"), code = take_line(&text, "code"), native = take_line(&text, "native"), cause = take_line(&text, "cause");
  if (!key || !id || !code || !native || !cause || !text.ends_with("end\n")) return std::nullopt;
  text.remove_suffix(std::string_view("end\n").size());
  if (!text.empty() && !(record.report = parse_report(text))) return std::nullopt;
  if (!read_number(*code, &record.code) || !read_number(*native, &record.native_code)) return std::nullopt;
  *out_key = *key;
  record.id = *id;
  record.cause = *cause;
  return record;
}

std::string stamp_of(const char* path) {
  struct stat info {};
  if (stat(path, &info) != 0) return "-";
  return std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "/" + std::to_string(info.st_size);
}

// Names in a folder that begin so, in order; with what this user may do with each.
std::string names_in(const std::string& folder, std::string_view beginning, bool nodes) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(beginning)) names.push_back(name + (nodes ? access((folder + "/" + name).c_str(), R_OK | W_OK) == 0 ? "+" : "-" : ""));
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + ' ';
  return one_line(text);
}

// The devices that drivers could find. A record that lists devices must not outlive a card that was put in or a group that
// the user was added to.
std::string device_nodes() {
  std::string text;
  for (const char* beginning : {"nvidia", "kfd", "dxg"}) text += names_in("/dev", beginning, true) + '|';
  for (const char* folder : {"/dev/dri", "/dev/accel"}) text += names_in(folder, "", true) + '|';
  for (const char* folder : {"/proc/driver/nvidia/gpus", "/sys/class/kfd/kfd/topology/nodes", "/sys/class/drm"}) text += names_in(folder, "", false) + '|';
  return text;
}

std::vector<std::string> record_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(kSuffix)) files.push_back(folder + "/" + name);
  }
  return files;
}

}  // namespace

std::string driver_fingerprint() {
  std::string text;
  utsname system{};
  if (uname(&system) == 0) text += system.release;
  for (const char* module : {"nvidia", "amdgpu", "i915", "xe"}) {
    text += '|' + one_line(read_small(std::string("/sys/module/") + module + "/version", 128));
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/OpenCL/vendors", "/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d"}) text += '|' + stamp_of(path);
  const char* folders = std::getenv("LD_LIBRARY_PATH");
  text += '|' + device_nodes();
  return text + '|' + one_line(folders == nullptr ? "" : folders);
}

std::string needed_libraries(const char (*need)[32], uint32_t n) {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  std::string text, folders = variable == nullptr ? "" : variable;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    for (uint32_t i = 0; i < n && !folder.empty(); ++i) text += stamp_of((folder + "/" + std::string(need[i], strnlen(need[i], sizeof need[i]))).c_str()) + '|';
    begin = end + 1;
  }
  return text;
}

std::optional<ProbeRecord> ProbeCache::find(const std::string& key) const {
  if (!own_folder(folder_, false)) return std::nullopt;
  const std::string line = one_line(key);
  std::string written_for;
  const std::string path = folder_ + "/" + short_hash(line) + std::string(kSuffix);
  auto record = parse(read_small(path, kRecordBytes), &written_for);
  if (!record || written_for != line) return std::nullopt;  // two keys of one hash: the other one's
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) record->age_s = std::max<int64_t>(0, time(nullptr) - info.st_mtim.tv_sec);
  return record;
}

bool ProbeCache::keep(const std::string& key, const ProbeRecord& record) const {
  const std::string text = text_of(key, record);
  if (text.size() > kRecordBytes || !own_folder(folder_, true)) return false;
  const std::string path = folder_ + "/" + short_hash(one_line(key)) + std::string(kSuffix);
  const bool placed = replace_small(path, text);
  if (placed) make_room();
  return placed;
}

void ProbeCache::make_room() const {
  std::vector<std::pair<fs::file_time_type, std::string>> files;
  for (std::string& file : record_files(folder_)) {
    std::error_code error;
    const auto time = fs::last_write_time(file, error);
    if (!error) files.emplace_back(time, std::move(file));
  }
  if (files.size() <= kMost) return;
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size() - kMost; ++i) unlink(files[i].second.c_str());
}

size_t ProbeCache::forget(const std::string& id) const {
  if (!own_folder(folder_, false)) return 0;
  size_t n = 0;
  for (const std::string& file : record_files(folder_)) {
    std::string ignored;
    const auto record = parse(read_small(file, kRecordBytes), &ignored);
    if (record && record->id == id && unlink(file.c_str()) == 0) ++n;
  }
  return n;
}

}  // namespace tenon::loader
