#include "tools/drivers/say.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace tenon::drivers {
namespace {

void line(const JsonRow& row) {
  const std::string text = row.text() + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(kPipe, text.data() + at, text.size() - at);
    if (n <= 0) _exit(1);  // nobody listens any more
    at += static_cast<size_t>(n);
  }
}

std::string stamp_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "." + std::to_string(info.st_ino);
}

}  // namespace

void stage(const char* name) { line(JsonRow().add("stage", name)); }

void used_files() {
  static std::set<std::string> said;
  std::ifstream maps("/proc/self/maps");
  for (std::string row; std::getline(maps, row);) {
    const size_t slash = row.find('/');
    if (slash == std::string::npos || row.find(".so", slash) == std::string::npos) continue;
    const std::string path = row.substr(slash);
    if (said.insert(path).second) line(JsonRow().add("library", path).add("stamp", stamp_of(path)));
  }
}

void fault(const char* reason, const std::string& why, const JsonRow& more) {
  line(JsonRow().add("fault", JsonRow().add("reason", reason).add("why", why).add("more", more)));
}

void done() {
  stage("end");
  line(JsonRow().add("done", true));
}

std::string text(const Version& version) { return std::to_string(version.major) + "." + std::to_string(version.minor); }

void device(const DeviceFacts& facts) {
  line(JsonRow().add("device", JsonRow().add("platform", facts.platform).add("name", facts.name).add("type", facts.type).add("version", facts.version)
                                   .add("driver", facts.driver).add("memory_bytes", facts.memory_bytes).add("software", facts.software)
                                   .add("vendor_id", facts.vendor_id).add("device_id", facts.device_id).add("pci", facts.pci)));
}

}  // namespace tenon::drivers
