// tools/conformance/level1.cpp - load and ABI: the file, its record, its table, and every list it gives.
#include <tenon/ops.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "loader/cold/elf.h"
#include "ops/op.h"
#include "tools/conformance/elf_symbols.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

std::vector<char> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& s : list) text += (text.empty() ? "" : " ") + s;
  return text.empty() ? "nothing" : text;
}

void exports(Session& session) {
  session.check("1.exports", {"load"}, [&](Trial& t) {
    if (session.options.plugin.empty()) return t.skip("linked into the process: there is no file");
    const std::vector<char> bytes = file_bytes(session.options.plugin);
    const ElfSymbols e = read_elf_symbols(std::as_bytes(std::span(bytes)));
    t.count();
    if (!e.fault.empty()) return t.fail(e.fault);
    t.need(e.exported == std::vector<std::string>{"tn_plugin_query"}, "exports " + joined(e.exported) + "; tn_plugin_query alone is wanted: hide the rest (-fvisibility=hidden, a version script)");
    t.need(e.unique.empty(), joined(e.unique) + " is unique in the process (STB_GNU_UNIQUE): build with -fno-gnu-unique");
    static const std::regex may_link(R"((ld-linux.*|libc|libm|libdl|libpthread|librt|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|libgomp|libdnnl|libglslang.*|libasan|libubsan|libtsan)\.so.*)");
    for (const std::string& library : e.needed)
      t.need(std::regex_match(library, may_link), "links " + library + "; open it inside open() instead, so that a machine without it gets an answer");
  });
}

void record(Session& session) {
  session.check("1.record", {"load"}, [&](Trial& t) {
    if (session.options.plugin.empty()) return t.skip("linked into the process: there is no record");
    const std::vector<char> bytes = file_bytes(session.options.plugin);
    const loader::ColdResult r = loader::read_cold_elf(std::as_bytes(std::span(bytes)));
    t.count();
    if (r.status != loader::ColdStatus::Ok) return t.fail("cold record: " + r.cause);
    t.need(std::strcmp(r.cold.target, loader::host_target()) == 0, std::string("built for ") + r.cold.target + ", this is " + loader::host_target());
    t.need(r.cold.abi_min <= TN_ABI_CURRENT && TN_ABI_CURRENT <= r.cold.abi_max, "the record's range of ABI versions leaves out this host's");
    t.need(std::strchr(r.cold.id, '.') != nullptr, std::string("id \"") + r.cold.id + "\" is no reverse DNS name: \"com.vendor.name\"");
    t.need(!r.build_id.empty(), "the file has no build id: link with -Wl,--build-id");
  });
}

void table(Session& session, const Library& library) {
  session.check("1.table", {"load"}, [&](Trial& t) {
    Host host(session.options.config);
    const tn_plugin* given = library.query(TN_ABI_CURRENT, host.table());
    t.count(3);
    if (given == nullptr) return t.fail("tn_plugin_query gives NULL for this host's version");
    t.need(given->abi == TN_ABI_CURRENT, "the table's abi differs from the version that was asked for");
    t.need(library.query(TN_ABI(0x7FFF, 0), host.table()) == nullptr, "a table is given for version 32767.0: NULL is the answer to a version that is not known");
    t.need(library.query(TN_ABI_CURRENT, host.table()) == given, "a second query gives another table");
    if (given->size < offsetof(tn_plugin, devices)) return t.fail("the table's size is " + std::to_string(given->size) + ", which ends before the required entries");
    const tn_plugin p = table_of(given);
    t.need(p.open != nullptr && p.quiesce != nullptr && p.close != nullptr, "open, quiesce and close are required");
    const bool entries[] = {p.device_open != nullptr, p.device_close != nullptr, p.spaces != nullptr, p.alloc != nullptr, p.free != nullptr, p.copy != nullptr,
                            p.queue_open != nullptr, p.queue_close != nullptr, p.timeline_open != nullptr, p.timeline_close != nullptr, p.signal != nullptr, p.wait != nullptr, p.query != nullptr};
    for (const bool has : entries)
      t.need(has == (p.devices != nullptr), p.devices != nullptr ? "offers devices, but lacks an entry that works on them" : "offers no devices, but has an entry that works on them");
    t.need(p.devices != nullptr || p.kernels != nullptr || p.ops != nullptr, "offers neither devices nor kernels nor ops");
    t.need(host.allocations() == 0, "tn_plugin_query allocates: it must run nothing else");
  });
}

// Calls fill(out, stride, cap, &n) the ways the contract allows, and looks at what is written. `each` judges an element.
template <class T, class Fill, class Each>
void try_list(Trial& t, const std::string& what, Fill fill, Each each) {
  constexpr uint32_t kStride = (sizeof(T) + 7) / 8 * 8 + 40;
  uint32_t n = 0, again = 0;
  tn_diag d = empty_diag();
  need(fill(nullptr, uint32_t{sizeof(T)}, 0u, &n, &d), d, what + " with cap 0");
  std::vector<char> bytes(size_t{kStride} * (n + 1), '\x5A');
  need(fill(reinterpret_cast<T*>(bytes.data()), kStride, n, &again, &d), d, what);
  t.count(3);
  t.need(again == n, what + ": the count was " + std::to_string(n) + ", then " + std::to_string(again));
  for (uint32_t i = 0; i < n; ++i) {
    T row;
    std::memcpy(&row, &bytes[size_t{kStride} * i], sizeof row);
    t.need(row.size >= 8 && row.size <= kStride, what + ": element " + std::to_string(i) + " has size " + std::to_string(row.size) + ", the stride is " + std::to_string(kStride));
    for (uint32_t k = sizeof(T); k < kStride; ++k)
      if (row.size <= sizeof(T) && bytes[size_t{kStride} * i + k] != '\x5A') { t.fail(what + ": bytes between two elements were written: elements are `stride` bytes apart"); break; }
    each(row, i);
  }
  for (size_t k = size_t{kStride} * n; k < bytes.size(); ++k)
    if (bytes[k] != '\x5A') { t.fail(what + ": more than `cap` elements were written"); break; }
  if (n < 2) return;
  std::fill(bytes.begin(), bytes.end(), '\x5A');
  need(fill(reinterpret_cast<T*>(bytes.data()), kStride, 1u, &again, &d), d, what + " with cap 1");
  t.need(again == n, what + ": with cap 1 the full count is wanted all the same");
  t.need(bytes[kStride] == '\x5A', what + ": cap 1, but two elements were written");
}

template <size_t N> bool ends(const char (&text)[N]) { return std::memchr(text, 0, N) != nullptr; }

void devices(Session& session, const Library& library) {
  session.check("1.devices", {"load", "device"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    if (i.table.devices == nullptr) return t.skip("a kernel pack: no devices");
    try_list<tn_device_info>(t, "devices", [&](tn_device_info* out, uint32_t stride, uint32_t cap, uint32_t* n, tn_diag* d) { return i.table.devices(i.self, out, stride, cap, n, d); },
                             [&](const tn_device_info& info, uint32_t k) {
      const std::string at = "device " + std::to_string(k);
      t.need(info.index == k, at + " has index " + std::to_string(info.index));
      t.need(info.kind != 0, at + " has no kind");
      t.need(ends(info.name) && info.name[0] != 0, at + " has no name, or one without end");
      t.need(ends(info.driver), at + ": the text of driver has no end");
      t.need(info.mem_free_bytes <= info.mem_total_bytes, at + ": more memory is free than there is");
      t.need(info.n_spaces > 0, at + " has no memory space");
      t.need((info.dtype_compute & ~info.dtype_storage) == 0, at + " computes in a type that it cannot store");
    });
  });
}

void spaces(Session& session, const Library& library) {
  session.check("1.spaces", {"load", "device"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    if (i.table.devices == nullptr) return t.skip("a kernel pack: no devices");
    tn_device* device = nullptr;
    tn_diag d = empty_diag();
    need(i.table.device_open(i.self, session.options.device, nullptr, &device, &d), d, "device_open");
    std::set<uint32_t> ids;
    try_list<tn_space_info>(t, "spaces", [&](tn_space_info* out, uint32_t stride, uint32_t cap, uint32_t* n, tn_diag* e) { return i.table.spaces(device, out, stride, cap, n, e); },
                            [&](const tn_space_info& s, uint32_t) {
      t.need(ids.insert(s.id).second, "two spaces have id " + std::to_string(s.id));
      t.need(s.kind <= TN_SPACE_PAGEABLE, "a space is of no known kind");
      t.need(s.align_bytes != 0 && (s.align_bytes & (s.align_bytes - 1)) == 0, "the alignment of a space is no power of two");
      t.need(s.budget_bytes != 0 && s.max_alloc_bytes != 0, "a space has no room");
    });
    i.table.device_close(device);
  });
}

void judge_row(Trial& t, const tn_kernel_info& row, std::set<std::string>* names) {
  const std::string name = row.name != nullptr ? row.name : "(no name)";
  t.count();
  t.need(row.size >= offsetof(tn_kernel_info, supports), name + ": size " + std::to_string(row.size));
  t.need(names->insert(name).second, "two kernels are called " + name);
  static const std::regex form(R"([a-z0-9_-]+(\.[a-z0-9_-]+)+)");
  t.need(std::regex_match(name, form), "kernel \"" + name + "\" must be called BACKEND.OP or BACKEND.OP.VARIANT, in small letters");
  t.need(name.size() < 64, name + " is longer than 63 bytes");
  t.need(row.prepare != nullptr && row.retire != nullptr, name + ": prepare and retire are required");
  t.need(row.op_min <= row.op_max, name + ": the range of op versions is empty");
  t.need(row.op_id >= 1u << 16 || ops::find_op(row.op_id) != nullptr, name + ": no op has number " + std::to_string(row.op_id));
  t.need(row.n_cons == 0 || row.cons != nullptr, name + ": n_cons without constraints");
  if (const tn_kernel_packed* stored = packed_of(row); stored != nullptr) {
    t.need(stored->bytes != nullptr && stored->pack != nullptr, name + ": a stored input needs bytes and pack");
    t.need(stored->layout != nullptr && stored->layout[0] != 0 && std::strlen(stored->layout) < 64, name + ": the layout of its stored input has no name, or a long one");
  }
  bool device_kind = false;
  for (uint32_t i = 0; row.cons != nullptr && i < row.n_cons; ++i) {
    const tn_constraint& c = row.cons[i];
    const std::string at = name + ": constraint " + std::to_string(i);
    t.need(c.kind >= TN_NEED_DTYPE && c.kind <= TN_NEED_BYTES, at + " is of kind " + std::to_string(c.kind) + ", which is not known");
    const bool masks = c.kind == TN_NEED_DTYPE || c.kind == TN_NEED_LAYOUT || c.kind == TN_NEED_SPACE || c.kind == TN_NEED_PROGRAM_OPCODES;
    t.need(!masks || c.mask != 0, at + " lets nothing through: its mask is empty");
    device_kind |= c.kind == TN_NEED_DEVICE_KIND;
  }
  t.need(device_kind, name + ": no constraint on the kind of device (TN_NEED_DEVICE_KIND): it would be asked about every device there is");
}

void kernels(Session& session, const Library& library) {
  session.check("1.kernels", {"load"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    if (i.table.kernels == nullptr) return t.skip("no kernels");
    const tn_kernel_info *first = nullptr, *second = nullptr;
    uint32_t stride = 0, n = 0, n2 = 0;
    tn_diag d = empty_diag();
    need(i.table.kernels(i.self, &first, &stride, &n, &d), d, "kernels");
    need(i.table.kernels(i.self, &second, &stride, &n2, &d), d, "kernels");
    t.need(first == second && n == n2, "a second call gives other rows: they live until close");
    t.need(n == 0 || stride >= offsetof(tn_kernel_info, supports), "the stride is " + std::to_string(stride));
    std::set<std::string> names;
    for (uint32_t k = 0; k < n; ++k) judge_row(t, *reinterpret_cast<const tn_kernel_info*>(reinterpret_cast<const char*>(first) + size_t{k} * stride), &names);
  });
}

void offered_ops(Session& session, const Library& library) {
  session.check("1.ops", {"load"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    if (i.table.ops == nullptr) return t.skip("no ops");
    const tn_op_def* first = nullptr;
    uint32_t stride = 0, n = 0;
    tn_diag d = empty_diag();
    need(i.table.ops(i.self, &first, &stride, &n, &d), d, "ops");
    for (uint32_t k = 0; k < n; ++k) {
      const auto& def = *reinterpret_cast<const tn_op_def*>(reinterpret_cast<const char*>(first) + size_t{k} * stride);
      t.count();
      t.need(def.name != nullptr && std::strchr(def.name, '.') != nullptr, "an op of a vendor is called com.vendor.op");
      t.need(def.op_id >> 63 == 1, std::string("op ") + (def.name != nullptr ? def.name : "?") + ": bit 63 of the number of a vendor's op is set");
      t.need(def.infer != nullptr, "an op has no shape rule");
    }
  });
}

void lifecycle(Session& session, const Library& library) {
  session.check("1.open_close", {"load"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    t.count();
    if (i.table.iface != nullptr) t.need(i.table.iface(i.self, "tn.no.such.interface") == nullptr, "iface gives something for a name that nobody has defined: NULL is the answer");
    t.need(i.close() == 0, "nothing was made, but quiesce counts live objects");
  });
}

}  // namespace

void level1(Session& session) {
  exports(session);
  record(session);
  std::unique_ptr<Library> library;
  session.check("1.load", {"load"}, [&](Trial& t) {
    t.count();
    library = std::make_unique<Library>(session.options.plugin);
  });
  if (library == nullptr) return;
  table(session, *library);
  devices(session, *library);
  spaces(session, *library);
  kernels(session, *library);
  offered_ops(session, *library);
  lifecycle(session, *library);
}

}  // namespace tenon::conformance
