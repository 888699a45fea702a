// tests/doubles/settings.h - how a double behaves. From the environment (TENON_DOUBLE_<NAME>, read when the library is loaded),
// or by the exported tenon_double_set in a test's own process.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace tenon_double {

struct Settings {
  int devices = 1;                 // DEVICES
  uint64_t memory_bytes = uint64_t{4} << 30;  // MEMORY: of each device
  uint32_t align = 256;            // ALIGN: of allocations; 16 puts the guard page right behind the last element
  uint64_t oom_at = 0;             // OOM_AT: the n-th allocation from now fails (1 = the next); 0 = none
  uint64_t launch_fails_at = 0;    // LAUNCH_FAILS_AT: the n-th launch from now is refused
  uint64_t lost_at = 0;            // LOST_AT: the device is lost in the n-th launch from now
  int init_code = 0;               // INIT: what cuInit and hipInit return
  bool reverse = false;            // FIBERS=reverse: threads of a block run last to first
  uint32_t warp = 0;               // WARP: lanes; 0 = as the architecture has
  std::string arch;                // ARCH: "sm_90", "gfx90a"; empty = these
  bool async = false;              // ASYNC=microseconds: streams work in threads of their own, each task that much later
  uint32_t delay_us = 0;
  bool pools = true;               // POOLS=0: no stream-ordered allocator
  std::string cache;               // CACHE: folder of compiled kernels
  std::string flags;               // CXXFLAGS: more options for the host compiler
  std::string compiler_fault;      // COMPILER_FAULT: "abort", "hang": what the compiler does
};
Settings& settings();
// False: no such setting, or a bad value.
bool change(const std::string& name, const std::string& value);

// What is alive, for tests of leaks.
struct Counters {
  std::atomic<int64_t> blocks{0}, bytes{0}, streams{0}, events{0}, modules{0}, contexts{0}, launches{0}, allocations{0}, compilations{0};
};
Counters& counters();
int64_t count(const std::string& name);  // -1: no such counter

}  // namespace tenon_double
