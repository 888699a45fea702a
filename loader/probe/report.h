// loader/probe/report.h - what a plugin said of itself when it was tried: enough to list its devices without opening it.
//
// As text it is one line for each fact, on the pipe from the child that tries plugins and in the cache alike:
//   counts 1 12 0 0
//   device 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a 0 2 4 0 25856 4318 9056 85899345920 ... NAME<tab>DRIVER
// A plugin can write to that pipe too: it says no more than it can by its own functions. All functions are pure.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::loader {

struct PluginReport {
  std::vector<tn_device_info> devices;  // without extensions, free memory 0: unknown
  uint32_t offers = 0;                  // 1: its table has the entries of a plugin with devices, if there are any
  uint32_t kernels = 0;                 // rows of its table
  uint32_t for_others = 0;              // of them, those that no condition binds to the kinds of its own devices
  uint32_t ops = 0;                     // ops that it defines
};

constexpr uint32_t kReportDevices = 256;

std::string report_text(const PluginReport&);
// Nothing unless every line is whole and well formed.
std::optional<PluginReport> parse_report(std::string_view text);
bool is_report_line(std::string_view line);

// Whether nothing is lost while the plugin is not opened: all it offers are devices, none of them a CPU, and kernels for
// devices of the same kinds.
bool can_wait(const PluginReport&);

// Nothing when both say the same, free memory aside; else what changed, in words with values.
std::optional<std::string> report_change(const PluginReport& before, const PluginReport& now);

}  // namespace tenon::loader
