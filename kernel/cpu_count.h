// kernel/cpu_count.h - how many processors this process may really use; the parts of default_thread_count().
//
// Pure but for the files they read; `root` stands before /sys and /proc, so that tests give a made-up machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::kernel {

// "200000 100000" -> 2.0 processors; "max 100000", or text that is not a cgroup v2 cpu.max -> no limit.
std::optional<double> parse_cpu_max(std::string_view text);

// The tightest cpu.max of this process's cgroup v2 group and all groups above it.
std::optional<double> cgroup_cpu_limit(const std::string& root);

// Distinct physical cores among these logical processors; one without topology files counts as a core of its own.
uint32_t physical_cores(const std::vector<int>& cpus, const std::string& root);

// The logical processors of the calling thread's affinity mask; empty if the system does not tell.
std::vector<int> allowed_cpus();

// Cores, cut to the quota rounded up; at least 1.
uint32_t thread_count(const std::vector<int>& cpus, const std::string& root);

}  // namespace tenon::kernel
