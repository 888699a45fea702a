#include "kernel/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "kernel/thread_pool.h"

namespace tenon::kernel {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<int64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// The path on the line "0::/a/b" of /proc/self/cgroup.
std::optional<std::string> unified_group(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  int64_t quota = 0, period = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, quota);
  if (error != std::errc{} || quota <= 0 || rest == end || *rest != ' ') return std::nullopt;
  auto [tail, bad] = std::from_chars(rest + 1, end, period);
  if (bad != std::errc{} || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::optional<double> cgroup_cpu_limit(const std::string& root) {
  auto group = unified_group(root);
  if (!group || group->find("..") != std::string::npos) return std::nullopt;
  std::optional<double> limit;
  for (std::string at = *group;; at.resize(at.rfind('/'))) {
    if (const auto text = read_text(root + "/sys/fs/cgroup" + at + "/cpu.max")) {
      if (const auto here = parse_cpu_max(*text)) limit = limit ? std::min(*limit, *here) : *here;
    }
    if (at.rfind('/') == std::string::npos) return limit;
  }
}

uint32_t physical_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::pair<int64_t, int64_t>> cores;
  for (int cpu : cpus) {
    const std::string at = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const auto package = read_number(at + "physical_package_id");
    const auto core = read_number(at + "core_id");
    if (package && core) {
      cores.emplace(*package, *core);
    } else {
      cores.emplace(INT64_MIN, cpu);
    }
  }
  return static_cast<uint32_t>(cores.size());
}

std::vector<int> allowed_cpus() {
  // The kernel's mask may be wider than cpu_set_t: grow until it fits.
  for (int bits = CPU_SETSIZE; bits <= (1 << 20); bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(bits));
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    std::vector<int> cpus;
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; known && cpu < bits; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (known) return cpus;
  }
  return {};
}

uint32_t thread_count(const std::vector<int>& cpus, const std::string& root) {
  uint32_t count = std::max(physical_cores(cpus, root), 1u);
  if (const auto limit = cgroup_cpu_limit(root)) {
    // Rounded up: half a processor of quota is better used by a second thread than left alone.
    const double whole = std::ceil(std::min(*limit, 1e6));
    count = std::min(count, std::max(static_cast<uint32_t>(whole), 1u));
  }
  return count;
}

uint32_t default_thread_count() { return thread_count(allowed_cpus(), ""); }

}  // namespace tenon::kernel
