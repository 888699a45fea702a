// Machine files: the reader of tools/tenon/look.
#include <cmath>
#include <cstdlib>

#include "targets.h"
#include "tools/tenon/look/machine_file.h"

namespace tenon::fuzz {
namespace {

void promise(bool kept) {
  if (!kept) std::abort();
}

bool is_bounded(const std::string& text) {
  for (unsigned char c : text)
    if (c < ' ' || c == 0x7F) return false;
  return text.size() <= 1024;
}

void run_machine(const uint8_t* data, size_t size) {
  const auto machine = cli::parse_machine({reinterpret_cast<const char*>(data), size}, "input");
  if (!machine) {
    const io::Status& s = machine.status();
    return promise(!s.ok() && !s.what.empty() && !s.why.empty() && !s.fix.empty());
  }
  for (const cli::DeviceRecord& d : machine->devices) promise(d.plugin < machine->plugins.size() && !d.name.empty() && d.name.size() < 16 && is_bounded(d.cause));
  for (const cli::LinkRecord& l : machine->links) promise(std::isfinite(l.bytes_per_s) && l.bytes_per_s >= 0 && l.latency_ns >= 0);
  for (const cli::KernelRecord& k : machine->kernels) promise(k.plugin < machine->plugins.size() && !k.name.empty() && k.name.size() < 64 && k.needs.size() <= 256);
}

std::vector<std::string> machine_seeds() {
  return {R"({"format":"tenon-machine","version":1,"tenon":"0.1.0","abi":"0.1","system":{"kernel":"6","machine":"x86_64","libc":"2.36","distribution":"D"},"plugins":[],"devices":[],"links":[],"kernels":[]})",
          R"({"format":"tenon-machine","version":1,"tenon":"0.1.0","abi":"0.1","system":{"kernel":"6","machine":"x86_64","libc":"2.36","distribution":"D"},
"plugins":[{"id":"org.example.gpu","version":"1","build_id":"ab","path":"~/g.so","code":0,"verdict":"in-use","stage":9,"native_code":-1,"abi":1,"flags":0,"cause":""}],
"devices":[{"name":"gpu:0","plugin":0,"physical":1,"verdict":0,"cause":"","kind":2,"kind_name":"cuda","flags":0,"hardware":"G","driver":"5","vendor_id":1,"device_id":2,"pci_domain":0,"pci_bdf":3,"memory_bytes":18446744073709551615,"memory_free_bytes":1,"dtypes_stored":"0x100000","dtypes_computed":"0x0","dtypes_of_matrices":"0xffffffffffffffff","caps":[{"key":13,"name":"bandwidth","type":"f64","unit":"B/s","value":2.5e12,"source":"driver"},{"key":16,"name":"a","type":"text","unit":"text","value":"sm_90","source":"table"}],"spaces":[{"id":0,"kind":0,"flags":0,"align_bytes":256,"max_alloc_bytes":9,"budget_bytes":9}],"rates":{"state":1,"when":"2026-11-30","note":"","figures":[{"key":23,"name":"l","type":"f64","unit":"B/s","value":1e10,"source":"measured"}]}}],
"links":[{"from":"host","to":"gpu:0","bytes_per_s":1e10,"latency_ns":5000,"source":"measured"}],
"kernels":[{"name":"gpu.matmul.f16","plugin":0,"op":"matmul","op_id":"0x3","op_min":1,"op_max":1,"tier":200,"flags":1,"inplace_mask":0,"refines":true,"packed":{"operand":1,"layout":"gpu.tiles"},"needs":[{"kind":"device-kind","arg":2},{"kind":"dtype","operand":0,"mask":"0x40000"},{"kind":"dim-multiple","operand":1,"arg":4294967295,"lo":-9223372036854775808,"hi":9223372036854775807},{"kind":99}]}]})"};
}

}  // namespace

const Target kMachine{"machine", run_machine, machine_seeds};

}  // namespace tenon::fuzz
