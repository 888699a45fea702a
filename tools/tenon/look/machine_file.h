// tools/tenon/look/machine_file.h - a machine as data: what `tenon doctor --capture FILE` saves and `tenon why-not --machine FILE`
// reads. The format is described in docs/machine-files.md.
//
//   auto machine = parse_machine(text, "lab.json");
//   if (!machine) std::cerr << machine.status().text();   // error[TN-FILE-033]: lab.json: kernels[7].needs[0].kind ...
//
// A file comes from a stranger: nothing in it is believed to be in order, and all of it is bounded. Threads: any.
#pragma once
#include <tenon/plugin.h>

#include <string>
#include <tenon/io/status.hpp>
#include <vector>

namespace tenon::cli {

struct CapRecord {
  tn_cap cap{};      // v.s is not used
  std::string text;  // of TN_CAP_TEXT
};

struct PluginRecord {
  std::string id, version, build_id, path, cause;
  uint32_t code = 0, stage = 0, abi = 0, flags = 0;
  int64_t native_code = 0;
};

struct RatesRecord {
  uint32_t state = 0;  // TN_RATES_*
  std::string when, note;
  std::vector<CapRecord> figures;
};

struct DeviceRecord {
  std::string name, cause, hardware, driver;
  uint32_t plugin = 0;   // place in Machine::plugins
  uint32_t physical = 0, verdict = 0;
  tn_device_info info{};  // without names, uuid and extensions
  std::vector<CapRecord> caps;
  std::vector<tn_space_info> spaces;
  RatesRecord rates;
};

struct LinkRecord {
  std::string from, to, source;  // "host" or the name of a device
  double bytes_per_s = 0, latency_ns = 0;
};

struct KernelRecord {
  std::string name, op, layout;  // op: "" where the capturing runtime knew no such op; layout: "" = takes no packed operand
  uint32_t plugin = 0, flags = 0, inplace_mask = 0, packed_operand = 0;
  uint64_t op_id = 0;
  uint16_t op_min = 0, op_max = 0;
  int32_t tier = 0;
  bool refines = false;  // it has a supports() of its own, which cannot be asked here
  std::vector<tn_constraint> needs;
};

struct Machine {
  std::string tenon, abi;  // versions that captured it
  std::string kernel, architecture, libc, distribution;
  std::vector<PluginRecord> plugins;
  std::vector<DeviceRecord> devices;
  std::vector<LinkRecord> links;
  std::vector<KernelRecord> kernels;
};

inline constexpr uint64_t kMachineBytes = 16 << 20;  // a longer file is refused
inline constexpr uint32_t kMachineVersion = 1;

// errors: TN-FILE-031 no machine file, 032 of another version, 033 an entry is not what the format allows.
io::Result<Machine> parse_machine(const std::string& text, const std::string& name);
io::Result<Machine> read_machine(const std::string& path);
std::string machine_text(const Machine& machine);  // reads back as the same machine

// Words of the format for kinds of conditions, types and origins of capabilities; nullptr: none.
const char* need_name(uint32_t kind);
const char* cap_type_name(uint32_t type);
const char* source_name(uint32_t provenance);

}  // namespace tenon::cli
