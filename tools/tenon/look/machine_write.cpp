// Machine files: the writer.
#include <cstdio>
#include <string>

#include "tools/tenon/common/json.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {
namespace {

std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

JsonRow cap_json(const CapRecord& c) {
  const CapText shown = cap_text(c.cap.type == TN_CAP_TEXT ? tn_cap{c.cap.key, TN_CAP_TEXT, c.cap.provenance, {}} : c.cap);
  JsonRow row;
  row.add("key", c.cap.key).add("name", shown.key).add("type", cap_type_name(c.cap.type)).add("unit", shown.unit);
  switch (c.cap.type) {
    case TN_CAP_U64: row.add("value", c.cap.v.u); break;
    case TN_CAP_I64: row.add("value", c.cap.v.i); break;
    case TN_CAP_F64: row.add("value", c.cap.v.f); break;
    default: row.add("value", c.text); break;
  }
  return row.add("source", source_name(c.cap.provenance));
}

std::vector<JsonRow> caps_json(const std::vector<CapRecord>& caps) {
  std::vector<JsonRow> rows;
  for (const CapRecord& c : caps) rows.push_back(cap_json(c));
  return rows;
}

JsonRow plugin_json(const PluginRecord& p) {
  return JsonRow().add("id", p.id).add("version", p.version).add("build_id", p.build_id).add("path", p.path).add("code", p.code).add("verdict", load_code_name(p.code))
      .add("stage", p.stage).add("native_code", p.native_code).add("abi", p.abi).add("flags", p.flags).add("cause", p.cause);
}

JsonRow device_json(const DeviceRecord& d) {
  std::vector<JsonRow> spaces;
  for (const tn_space_info& s : d.spaces)
    spaces.push_back(JsonRow().add("id", s.id).add("kind", s.kind).add("flags", s.flags).add("align_bytes", s.align_bytes).add("max_alloc_bytes", s.max_alloc_bytes).add("budget_bytes", s.budget_bytes));
  JsonRow row;
  row.add("name", d.name).add("plugin", d.plugin).add("physical", d.physical).add("verdict", d.verdict).add("cause", d.cause);
  row.add("kind", d.info.kind).add("kind_name", kind_name(d.info.kind)).add("flags", d.info.flags).add("hardware", d.hardware).add("driver", d.driver);
  row.add("vendor_id", d.info.vendor_id).add("device_id", d.info.device_id).add("pci_domain", d.info.pci_domain).add("pci_bdf", d.info.pci_bdf);
  row.add("memory_bytes", d.info.mem_total_bytes).add("memory_free_bytes", d.info.mem_free_bytes);
  row.add("dtypes_stored", hex(d.info.dtype_storage)).add("dtypes_computed", hex(d.info.dtype_compute)).add("dtypes_of_matrices", hex(d.info.dtype_matrix));
  row.add("caps", caps_json(d.caps)).add("spaces", spaces);
  return row.add("rates", JsonRow().add("state", d.rates.state).add("when", d.rates.when).add("note", d.rates.note).add("figures", caps_json(d.rates.figures)));
}

// What is 0 or about every operand is left out.
JsonRow need_json(const tn_constraint& c) {
  JsonRow row;
  need_name(c.kind) ? row.add("kind", need_name(c.kind)) : row.add("kind", c.kind);
  if (c.operand != TN_ANY_OPERAND) row.add("operand", c.operand);
  if (c.arg) row.add("arg", c.arg);
  if (c.mask) row.add("mask", hex(c.mask));
  if (c.lo) row.add("lo", c.lo);
  if (c.hi) row.add("hi", c.hi);
  return row;
}

JsonRow kernel_json(const KernelRecord& k) {
  JsonRow row;
  row.add("name", k.name).add("plugin", k.plugin).add("op", k.op).add("op_id", hex(k.op_id)).add("op_min", k.op_min).add("op_max", k.op_max).add("tier", k.tier);
  row.add("flags", k.flags).add("inplace_mask", k.inplace_mask).add("refines", k.refines);
  if (!k.layout.empty()) row.add("packed", JsonRow().add("operand", k.packed_operand).add("layout", k.layout));
  std::vector<JsonRow> needs;
  for (const tn_constraint& c : k.needs) needs.push_back(need_json(c));
  return row.add("needs", needs);
}

// One entry a line, so that two files can be compared.
template <class T>
std::string list_text(const char* key, const std::vector<T>& list, JsonRow (*json)(const T&)) {
  std::string text = json_string(key) + ":[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ",\n" : "\n") + json(list[i]).text();
  return text + "]";
}

JsonRow link_json(const LinkRecord& l) {
  return JsonRow().add("from", l.from).add("to", l.to).add("bytes_per_s", l.bytes_per_s).add("latency_ns", l.latency_ns).add("source", l.source);
}

}  // namespace

std::string machine_text(const Machine& m) {
  const JsonRow system = JsonRow().add("kernel", m.kernel).add("machine", m.architecture).add("libc", m.libc).add("distribution", m.distribution);
  std::string text = "{\"format\":\"tenon-machine\",\"version\":" + std::to_string(kMachineVersion) + ",\"tenon\":" + json_string(m.tenon) + ",\"abi\":" + json_string(m.abi) + ",\"system\":" + system.text();
  text += ",\n" + list_text("plugins", m.plugins, plugin_json) + ",\n" + list_text("devices", m.devices, device_json);
  return text + ",\n" + list_text("links", m.links, link_json) + ",\n" + list_text("kernels", m.kernels, kernel_json) + "}\n";
}

}  // namespace tenon::cli
