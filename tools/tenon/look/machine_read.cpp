// Machine files: the reader.
#include <tenon/runtime.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <tenon/io/file.hpp>

#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostPlugins = 1024, kMostDevices = 256, kMostCaps = 1024, kMostSpaces = 64, kMostLinks = 1024, kMostKernels = 65536, kMostNeeds = 256, kMostLayouts = 64;
constexpr size_t kDeepest = 8, kLongestText = 1024;

struct Refused {
  io::Status status;
};

// One object of the file and its place in it.
class Entry {
 public:
  Entry(const std::string& file, std::string place, const json& value) : file_(file), place_(std::move(place)), value_(value) {
    if (!value.is_object()) refuse("an object is wanted");
  }

  // Refuses keys that mean nothing: a slip must not be read as silence.
  void keys(std::initializer_list<const char*> known) const {
    for (const auto& [key, ignored] : value_.items())
      if (std::none_of(known.begin(), known.end(), [&, &name = key](const char* k) { return name == k; })) refuse("unknown key " + io::quote(key, 40));
  }
  bool has(const char* key) const { return value_.contains(key); }
  const json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) refuse(std::string("key \"") + key + "\" is missing");
    return *found;
  }
  std::string text(const char* key, size_t most = kLongestText) const {
    const json& v = at(key);
    if (!v.is_string()) refuse_at(key, "a text is wanted");
    const std::string& s = v.get_ref<const std::string&>();
    if (s.size() > most) refuse_at(key, std::to_string(s.size()) + " bytes, at most " + std::to_string(most) + " are allowed");
    if (std::any_of(s.begin(), s.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; })) refuse_at(key, "control characters in a text");
    return s;
  }
  std::string word(const char* key, size_t most, bool may_be_empty = false) const {
    const std::string s = text(key, most);
    const bool good = std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || std::strchr("._:+-", c); });
    if (!good || (s.empty() && !may_be_empty)) refuse_at(key, io::quote(s) + " is no name of letters, digits and . _ : + -");
    return s;
  }
  uint64_t number(const char* key, uint64_t most) const {
    const json& v = at(key);
    if (!v.is_number_unsigned() || v.get<uint64_t>() > most) refuse_at(key, "a whole number up to " + std::to_string(most) + " is wanted");
    return v.get<uint64_t>();
  }
  uint64_t number_or(const char* key, uint64_t most, uint64_t otherwise) const { return has(key) ? number(key, most) : otherwise; }
  int64_t integer(const char* key, int64_t least = INT64_MIN, int64_t most = INT64_MAX) const {
    const json& v = at(key);
    const bool fits = v.is_number_integer() && !(v.is_number_unsigned() && v.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    if (!fits || v.get<int64_t>() < least || v.get<int64_t>() > most) refuse_at(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + " is wanted");
    return v.get<int64_t>();
  }
  int64_t integer_or(const char* key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
  double real(const char* key) const {
    const json& v = at(key);
    if (!v.is_number() || !std::isfinite(v.get<double>())) refuse_at(key, "a finite number is wanted");
    return v.get<double>();
  }
  bool boolean(const char* key) const {
    if (!at(key).is_boolean()) refuse_at(key, "true or false is wanted");
    return at(key).get<bool>();
  }
  // "0x1f": all 64 bits, which not every reader of JSON keeps in a number.
  uint64_t mask(const char* key) const {
    const std::string s = text(key, 18);
    uint64_t bits = 0;
    const char *begin = s.data() + 2, *end = s.data() + s.size();
    const bool head = s.size() > 2 && s.compare(0, 2, "0x") == 0;
    const auto read = head ? std::from_chars(begin, end, bits, 16) : std::from_chars_result{begin, std::errc::invalid_argument};
    if (read.ec != std::errc() || read.ptr != end) refuse_at(key, io::quote(s) + " is no mask like \"0x1f\"");
    return bits;
  }
  uint64_t mask_or(const char* key, uint64_t otherwise) const { return has(key) ? mask(key) : otherwise; }
  template <class Each>
  void list(const char* key, size_t most, Each each) const {
    const json& v = at(key);
    if (!v.is_array()) refuse_at(key, "a list is wanted");
    if (v.size() > most) refuse_at(key, std::to_string(v.size()) + " entries, at most " + std::to_string(most) + " are allowed");
    size_t i = 0;
    for (const json& one : v) each(Entry(file_, below(key) + "[" + std::to_string(i++) + "]", one));
  }
  Entry object(const char* key) const { return Entry(file_, below(key), at(key)); }
  [[noreturn]] void refuse_at(const char* key, const std::string& why) const { refuse_place(below(key), why); }
  [[noreturn]] void refuse(const std::string& why) const { refuse_place(place_.empty() ? "the file" : place_, why); }

 private:
  std::string below(const char* key) const { return place_.empty() ? key : place_ + "." + key; }
  [[noreturn]] void refuse_place(const std::string& place, const std::string& why) const {
    throw Refused{{io::file_error(33), file_ + ": an entry is not what the format allows", place + ": " + why, "capture the machine again with tenon doctor --capture FILE", file_}};
  }
  const std::string& file_;
  std::string place_;
  const json& value_;
};

uint32_t number_of(const Entry& e, const char* key, const char* (*name)(uint32_t), uint32_t first, uint32_t end) {
  const std::string word = e.text(key, 32);
  for (uint32_t n = first; n < end; ++n)
    if (name(n) && word == name(n)) return n;
  e.refuse_at(key, io::quote(word) + " is no word of the format");
}

CapRecord read_cap(const Entry& e) {
  e.keys({"key", "name", "type", "unit", "value", "source"});
  CapRecord c;
  c.cap.key = static_cast<uint32_t>(e.number("key", UINT32_MAX));
  e.text("name", 64), e.text("unit", 16);  // for people
  c.cap.type = static_cast<uint16_t>(number_of(e, "type", cap_type_name, 0, 4));
  c.cap.provenance = static_cast<uint16_t>(number_of(e, "source", source_name, 1, 5));
  switch (c.cap.type) {
    case TN_CAP_U64: c.cap.v.u = e.number("value", UINT64_MAX); break;
    case TN_CAP_I64: c.cap.v.i = e.integer("value"); break;
    case TN_CAP_F64: c.cap.v.f = e.real("value"); break;
    default: c.text = e.text("value"); break;
  }
  return c;
}

PluginRecord read_plugin(const Entry& e) {
  e.keys({"id", "version", "build_id", "path", "code", "verdict", "stage", "native_code", "abi", "flags", "cause"});
  PluginRecord p;
  p.id = e.word("id", 63, true);
  p.version = e.text("version", 63), p.build_id = e.text("build_id", 63), p.path = e.text("path"), p.cause = e.text("cause");
  e.text("verdict", 64);  // for people: code says it
  p.code = static_cast<uint32_t>(e.number("code", UINT32_MAX)), p.stage = static_cast<uint32_t>(e.number("stage", UINT32_MAX));
  p.abi = static_cast<uint32_t>(e.number("abi", UINT32_MAX)), p.flags = static_cast<uint32_t>(e.number("flags", UINT32_MAX));
  p.native_code = e.integer("native_code");
  return p;
}

tn_space_info read_space(const Entry& e) {
  e.keys({"id", "kind", "flags", "align_bytes", "max_alloc_bytes", "budget_bytes"});
  tn_space_info s{};
  s.size = sizeof s;
  s.id = static_cast<uint32_t>(e.number("id", UINT32_MAX)), s.kind = static_cast<uint32_t>(e.number("kind", UINT32_MAX)), s.flags = static_cast<uint32_t>(e.number("flags", UINT32_MAX));
  s.align_bytes = e.number("align_bytes", UINT64_MAX), s.max_alloc_bytes = e.number("max_alloc_bytes", UINT64_MAX), s.budget_bytes = e.number("budget_bytes", UINT64_MAX);
  return s;
}

RatesRecord read_rates(const Entry& e) {
  e.keys({"state", "when", "note", "figures"});
  RatesRecord r;
  r.state = static_cast<uint32_t>(e.number("state", TN_RATES_IGNORED));
  r.when = e.text("when", 15), r.note = e.text("note");
  e.list("figures", kMostCaps, [&](const Entry& one) { r.figures.push_back(read_cap(one)); });
  return r;
}

void read_info(const Entry& e, tn_device_info* info) {
  info->size = sizeof *info;
  const auto u32 = [&](const char* key) { return static_cast<uint32_t>(e.number(key, UINT32_MAX)); };
  info->kind = u32("kind"), info->flags = u32("flags");
  info->vendor_id = u32("vendor_id"), info->device_id = u32("device_id"), info->pci_domain = u32("pci_domain"), info->pci_bdf = u32("pci_bdf");
  info->mem_total_bytes = e.number("memory_bytes", UINT64_MAX), info->mem_free_bytes = e.number("memory_free_bytes", UINT64_MAX);
  info->dtype_storage = e.mask("dtypes_stored"), info->dtype_compute = e.mask("dtypes_computed"), info->dtype_matrix = e.mask("dtypes_of_matrices");
}

DeviceRecord read_device(const Entry& e, const Machine& m) {
  e.keys({"name", "plugin", "physical", "verdict", "cause", "kind", "kind_name", "flags", "hardware", "driver", "vendor_id", "device_id", "pci_domain", "pci_bdf",
          "memory_bytes", "memory_free_bytes", "dtypes_stored", "dtypes_computed", "dtypes_of_matrices", "caps", "spaces", "rates"});
  DeviceRecord d;
  d.name = e.word("name", 15);
  for (const DeviceRecord& other : m.devices)
    if (other.name == d.name && other.verdict == 0) e.refuse_at("name", "another device is called " + d.name);
  if (e.number("plugin", UINT32_MAX) >= m.plugins.size()) e.refuse_at("plugin", "there are " + std::to_string(m.plugins.size()) + " plugins");
  d.plugin = static_cast<uint32_t>(e.number("plugin", UINT32_MAX));
  d.physical = static_cast<uint32_t>(e.number("physical", UINT32_MAX)), d.verdict = static_cast<uint32_t>(e.number("verdict", UINT32_MAX));
  d.cause = e.text("cause"), d.hardware = e.text("hardware", 63), d.driver = e.text("driver", 63);
  e.text("kind_name", 63);
  read_info(e, &d.info);
  e.list("caps", kMostCaps, [&](const Entry& one) { d.caps.push_back(read_cap(one)); });
  e.list("spaces", kMostSpaces, [&](const Entry& one) { d.spaces.push_back(read_space(one)); });
  d.rates = read_rates(e.object("rates"));
  return d;
}

LinkRecord read_link(const Entry& e) {
  e.keys({"from", "to", "bytes_per_s", "latency_ns", "source"});
  LinkRecord l{e.word("from", 15), e.word("to", 15), e.text("source", 32), e.real("bytes_per_s"), e.real("latency_ns")};
  if (l.bytes_per_s < 0 || l.latency_ns < 0) e.refuse("a rate below 0");
  return l;
}

tn_constraint read_need(const Entry& e) {
  e.keys({"kind", "operand", "arg", "mask", "lo", "hi"});
  tn_constraint c{};
  c.kind = e.at("kind").is_string() ? static_cast<uint16_t>(number_of(e, "kind", need_name, 1, 64)) : static_cast<uint16_t>(e.number("kind", UINT16_MAX));
  c.operand = static_cast<uint16_t>(e.number_or("operand", TN_ANY_OPERAND, TN_ANY_OPERAND));
  c.arg = static_cast<uint32_t>(e.number_or("arg", UINT32_MAX, 0));
  c.mask = e.mask_or("mask", 0);
  c.lo = e.integer_or("lo", 0), c.hi = e.integer_or("hi", 0);
  return c;
}

KernelRecord read_kernel(const Entry& e, const Machine& m) {
  e.keys({"name", "plugin", "op", "op_id", "op_min", "op_max", "tier", "flags", "inplace_mask", "refines", "packed", "needs"});
  KernelRecord k;
  k.name = e.word("name", 63), k.op = e.word("op", 63, true);
  if (e.number("plugin", UINT32_MAX) >= m.plugins.size()) e.refuse_at("plugin", "there are " + std::to_string(m.plugins.size()) + " plugins");
  k.plugin = static_cast<uint32_t>(e.number("plugin", UINT32_MAX));
  k.op_id = e.mask("op_id");
  k.op_min = static_cast<uint16_t>(e.number("op_min", UINT16_MAX)), k.op_max = static_cast<uint16_t>(e.number("op_max", UINT16_MAX));
  k.tier = static_cast<int32_t>(e.integer("tier", INT32_MIN, INT32_MAX));
  k.flags = static_cast<uint32_t>(e.number("flags", UINT32_MAX)), k.inplace_mask = static_cast<uint32_t>(e.number("inplace_mask", UINT32_MAX));
  k.refines = e.boolean("refines");
  if (e.has("packed")) {
    const Entry packed = e.object("packed");
    packed.keys({"operand", "layout"});
    k.layout = packed.word("layout", 63);
    k.packed_operand = static_cast<uint32_t>(packed.number("operand", UINT16_MAX));
  }
  e.list("needs", kMostNeeds, [&](const Entry& one) { k.needs.push_back(read_need(one)); });
  return k;
}

Machine read_all(const Entry& e) {
  e.keys({"format", "version", "tenon", "abi", "system", "plugins", "devices", "links", "kernels"});
  Machine m;
  m.tenon = e.text("tenon", 32), m.abi = e.text("abi", 16);
  const Entry system = e.object("system");
  system.keys({"kernel", "machine", "libc", "distribution"});
  m.kernel = system.text("kernel", 255), m.architecture = system.text("machine", 255), m.libc = system.text("libc", 255), m.distribution = system.text("distribution", 255);
  e.list("plugins", kMostPlugins, [&](const Entry& one) { m.plugins.push_back(read_plugin(one)); });
  e.list("devices", kMostDevices, [&](const Entry& one) { m.devices.push_back(read_device(one, m)); });
  e.list("links", kMostLinks, [&](const Entry& one) { m.links.push_back(read_link(one)); });
  std::set<std::string> layouts;
  e.list("kernels", kMostKernels, [&](const Entry& one) {
    m.kernels.push_back(read_kernel(one, m));
    if (!m.kernels.back().layout.empty()) layouts.insert(m.kernels.back().layout);
    if (layouts.size() > kMostLayouts) one.refuse("more than " + std::to_string(kMostLayouts) + " layouts");
  });
  return m;
}

// The text as a tree, in which no key is given twice and nothing is nested deeply; else what is wrong with it.
json tree_of(const std::string& text, std::string* fault) {
  std::vector<std::set<std::string>> keys;
  size_t depth = 0;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) ++depth;
    if (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end) --depth;
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second && fault->empty()) *fault = "key " + io::quote(value.get<std::string>(), 40) + " is given twice";
    if (depth > kDeepest && fault->empty()) *fault = "it is nested too deeply";
    return fault->empty();
  };
  json tree = json::parse(text, watch, false);
  if (fault->empty() && !tree.is_object()) *fault = "it is no JSON object";
  return tree;
}

}  // namespace

io::Result<Machine> parse_machine(const std::string& text, const std::string& name) {
  std::string fault;
  const json tree = tree_of(text, &fault);
  if (fault.empty() && (!tree.contains("format") || tree["format"] != "tenon-machine")) fault = "it does not say \"format\": \"tenon-machine\"";
  if (!fault.empty()) return io::Status{io::file_error(31), name + ": not a machine file", fault, "name a file that tenon doctor --capture FILE has written", name};
  if (!tree.contains("version") || tree["version"] != kMachineVersion)
    return io::Status{io::file_error(32), name + ": a machine file of another version", "version is " + (tree.contains("version") ? io::quote(tree["version"].dump(-1, ' ', false, json::error_handler_t::replace), 24) : "missing") + ", this Tenon reads " + std::to_string(kMachineVersion),
                      "capture the machine with the Tenon that asks, or ask with the one that captured", name};
  try {
    return read_all(Entry(name, "", tree));
  } catch (const Refused& refused) {
    return refused.status;
  }
}

io::Result<Machine> read_machine(const std::string& path) {
  const auto text = io::read_file(path, kMachineBytes);
  if (!text) return text.status();
  return parse_machine(*text, path);
}

}  // namespace tenon::cli
