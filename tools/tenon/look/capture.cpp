#include "tools/tenon/look/capture.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <tenon/caps.h>
#include <tenon/io/file.hpp>
#include <tenon/tenon.hpp>

#include <algorithm>
#include <map>

#include "tools/tenon/look/report.h"

namespace tenon::cli {
namespace {

// Fit for the file: no name of a person or machine, on one line.
std::string clean(const std::string& text) {
  std::string out = discreet(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = ' ';
  return out;
}

// A capability of a kind that the format does not know is left out, as one that nobody reports.
std::vector<CapRecord> records(const tn_cap* caps, size_t n) {
  std::vector<CapRecord> out;
  for (size_t i = 0; i < n; ++i) {
    if (!cap_type_name(caps[i].type) || !source_name(caps[i].provenance)) continue;
    CapRecord r{caps[i], ""};
    if (caps[i].type == TN_CAP_TEXT) {
      r.text = caps[i].v.s ? clean(caps[i].v.s) : "";
      r.cap.v.u = 0;
    }
    out.push_back(r);
  }
  return out;
}

// Plugins may be opened when one of their devices is: only then verdicts stand and kernels are known.
void open_all(tn_runtime* runtime) {
  for (const tn_device_entry& d : device_entries(runtime)) {
    uint32_t n = 0;
    tn_diag ignored{};
    ignored.size = sizeof ignored;
    if (d.verdict == 0) tn_caps(runtime, d.device, nullptr, 0, &n, &ignored);
  }
}

void add_plugins(tn_runtime* runtime, Machine* m, std::map<uint32_t, uint32_t>* place) {
  for (const tn_plugin_entry& p : plugin_entries(runtime)) {
    (*place)[p.index] = static_cast<uint32_t>(m->plugins.size());
    m->plugins.push_back({p.id, p.version, p.build_id, clean(p.path), clean(p.cause), p.code, p.stage, p.abi, p.flags, p.native_code});
  }
}

// What only an opened device says. One that does not open is captured with the cause.
void add_opened(tn_runtime* runtime, uint32_t id, DeviceRecord* d) {
  try {
    const std::vector<tn_cap> caps = device_caps(runtime, id);
    tn_rates_info kept{};
    kept.size = sizeof kept;
    tn_diag diag{};
    diag.size = sizeof diag;
    if (tn_status s = tn_rates(runtime, id, &kept, &diag)) throw_diag(diag, s);
    const size_t stated = caps.size() - std::min<size_t>(kept.n_caps, caps.size());
    d->caps = records(caps.data(), stated);
    d->rates = {kept.state, kept.when, clean(kept.note), records(caps.data() + stated, caps.size() - stated)};
    d->spaces = read_list<tn_space_info>([&](auto... a) { return tn_spaces(runtime, id, a...); });
  } catch (const Error& error) {
    d->verdict = static_cast<uint32_t>(-TN_E_UNAVAILABLE);
    d->cause = clean(error.summary() + (error.why().empty() ? "" : ": " + error.why()));
  }
}

void add_devices(tn_runtime* runtime, const std::map<uint32_t, uint32_t>& place, Machine* m) {
  for (const tn_device_entry& e : device_entries(runtime)) {
    DeviceRecord d;
    d.name = e.name, d.cause = clean(e.cause), d.hardware = clean(e.info.name), d.driver = clean(e.info.driver);
    d.plugin = place.count(e.plugin) ? place.at(e.plugin) : 0;
    d.physical = e.physical, d.verdict = e.verdict;
    d.info = e.info;
    if (d.verdict == 0) add_opened(runtime, e.device, &d);
    m->devices.push_back(std::move(d));
  }
}

// The link between the host and each device, where its figures are known.
void add_links(Machine* m) {
  for (const DeviceRecord& d : m->devices) {
    const auto figure = [&](uint32_t key) -> const CapRecord* {
      for (const auto* list : {&d.rates.figures, &d.caps})
        for (const CapRecord& c : *list)
          if (c.cap.key == key && c.cap.type == TN_CAP_F64) return &c;
      return nullptr;
    };
    const CapRecord* there_and_back = figure(TN_CAPKEY_LINK_NS);
    const double latency = there_and_back ? there_and_back->cap.v.f / 2 : 0;
    if (const CapRecord* c = figure(TN_CAPKEY_LINK_TO_DEVICE)) m->links.push_back({"host", d.name, source_name(c->cap.provenance), c->cap.v.f, latency});
    if (const CapRecord* c = figure(TN_CAPKEY_LINK_TO_HOST)) m->links.push_back({d.name, "host", source_name(c->cap.provenance), c->cap.v.f, latency});
  }
}

void add_kernels(tn_runtime* runtime, const std::map<uint32_t, uint32_t>& place, Machine* m) {
  std::map<uint64_t, std::string> ops;
  for (const tn_op_entry& op : read_list<tn_op_entry>([&](auto... a) { return tn_ops(runtime, a...); })) ops[op.op_id] = op.name;
  for (const tn_kernel_entry& e : read_list<tn_kernel_entry>([&](auto... a) { return tn_kernels(runtime, a...); })) {
    KernelRecord k;
    k.name = e.name, k.op = ops.count(e.op_id) ? ops[e.op_id] : "";
    k.plugin = place.count(e.plugin) ? place.at(e.plugin) : 0;
    k.op_id = e.op_id, k.op_min = e.op_min, k.op_max = e.op_max, k.tier = e.tier, k.flags = e.flags, k.inplace_mask = e.inplace_mask;
    k.refines = e.refines != 0;
    if (e.packed_layout) k.layout = e.packed_layout, k.packed_operand = e.packed_operand;
    k.needs.assign(e.cons, e.cons + e.n_cons);
    m->kernels.push_back(std::move(k));
  }
}

}  // namespace

Machine capture_machine(Context& context) {
  Machine m;
  m.tenon = TENON_VERSION;
  m.abi = std::to_string(tn_version() >> 16) + "." + std::to_string(tn_version() & 0xFFFF);
  utsname names{};
  uname(&names);
  m.kernel = names.release, m.architecture = names.machine, m.libc = gnu_get_libc_version(), m.distribution = distribution_name();
  tn_runtime* runtime = context.handle();
  std::map<uint32_t, uint32_t> place;
  open_all(runtime);
  add_plugins(runtime, &m, &place);
  add_devices(runtime, place, &m);
  add_links(&m);
  add_kernels(runtime, place, &m);
  return m;
}

void save_capture(Context& context, const std::string& path) {
  if (path.empty()) return;
  throw_if_failed(io::write_file(path, machine_text(capture_machine(context))), Where{"", 0});
  if (!context.json) context.line("The machine is in " + path + "; ask about it with tenon why-not DEVICE OP SPECS... --machine " + path);
}

}  // namespace tenon::cli
