// loader/probe/cache.h - what trying a plugin in a child process gave, kept between runs: the second start costs nothing, and
// a plugin that crashed is not run again (quarantine) until it, its driver or the machine changes, or somebody says so.
//
//   ProbeCache cache("/home/ann/.cache/tenon/probe");
//   if (auto known = cache.find(key)) ...;  else cache.keep(key, record);
//
// One small file per key, written beside and renamed into place. A file that is cut short, foreign, too long or of another
// key is as good as none. At most kMost files; the oldest go. The folder must belong to the user and to nobody else, or it
// is not used: whoever writes there decides which code is tried. Nothing here throws or fails: without a cache every start
// tries again. Threads and processes: any number at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "loader/probe/report.h"

namespace tenon::loader {

struct ProbeRecord {
  std::string id;     // of the plugin
  uint32_t code = 0;  // 0: harmless; else the verdict that stands (crashed-in-probe, probe-timeout, open-unavailable)
  int64_t native_code = 0;
  std::string cause;
  std::optional<PluginReport> report = {};  // of one that was taken into use when it was tried
  int64_t age_s = 0;  // since it was kept; filled by find()
};

class ProbeCache {
 public:
  static constexpr size_t kMost = 256, kRecordBytes = 128 * 1024;

  explicit ProbeCache(std::string folder) : folder_(std::move(folder)) {}  // "" = no cache
  // `key` is one line of text that names all that the result depends on.
  std::optional<ProbeRecord> find(const std::string& key) const;
  bool keep(const std::string& key, const ProbeRecord& record) const;
  // Drops every record of that plugin; how many there were.
  size_t forget(const std::string& id) const;

 private:
  void make_room() const;
  std::string folder_;
};

// What of the machine a probe's result depends on beside the plugin: kernel and driver modules, the libraries known to the
// dynamic linker, the lists of OpenCL and Vulkan drivers, the nodes of devices and who may open them, LD_LIBRARY_PATH. One
// line; changes when a driver is installed or a card is put in.
std::string driver_fingerprint();
// The files in the folders of LD_LIBRARY_PATH that the plugin would open, the `n` names `need` of its cold record: a driver that is
// replaced there changes no list of the machine. One line.
std::string needed_libraries(const char (*need)[32], uint32_t n);

}  // namespace tenon::loader
