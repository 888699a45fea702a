// Checks of processor, memory, buses and files.
#include <tenon/caps.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/tenon/common/context.h"
#include "tools/tenon/common/names.h"
#include "tools/tenon/look/checks.h"

namespace tenon::cli {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The instruction sets that matter for speed, widest first.
std::string isa_text(const std::vector<std::string>& all) {
  std::string text;
  for (const char* name : {"amx_bf16", "amx_int8", "avx512fp16", "avx512bf16", "avx512vnni", "avx512f", "avx2", "fma", "sve2", "sve", "i8mm", "bf16", "neon"})
    if (std::find(all.begin(), all.end(), name) != all.end()) text += (text.empty() ? "" : " ") + std::string(name);
  return text.empty() ? "no vector extension known" : text;
}

}  // namespace

void check_processor(Context& context, Findings* out) {
  for (const tn_device_entry& d : device_entries(context.handle())) {
    if (std::string(d.name) != "cpu:0") continue;
    uint64_t isa[4] = {}, cores = 0;
    for (const tn_cap& c : device_caps(context.handle(), d.device)) {
      if (c.key >= TN_CAPKEY_ISA_0 && c.key <= TN_CAPKEY_ISA_3) isa[c.key - TN_CAPKEY_ISA_0] = c.v.u;
      if (c.key == TN_CAPKEY_CORES) cores = c.v.u;
    }
    out->push_back({"processor", State::good, false, std::string(d.info.name) + ", " + std::to_string(cores) + " cores, " + isa_text(isa_names(isa)), "", ""});
    return;
  }
}

void check_memory(Context&, Findings* out) {
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const double total = page * static_cast<double>(sysconf(_SC_PHYS_PAGES)), free = page * static_cast<double>(sysconf(_SC_AVPHYS_PAGES));
  Finding memory{"memory", State::good, false, bytes_text(total) + ", " + bytes_text(free) + " free", "", ""};
  if (total < 2.0 * (1 << 30)) {
    memory.state = State::warning;
    memory.why = "training of the quickstart wants about 2 GiB";
    memory.advice = "use a smaller --batch";
  }
  out->push_back(memory);
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (huge.find("[never]") == std::string::npos) return;
  out->push_back({"huge pages", State::warning, false, "off", "a new result of 64 MiB costs about three times the page faults", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"});
}

void check_data(Context&, Findings* out) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  const bool there = std::filesystem::exists(folder);
  out->push_back({"data set", there ? State::good : State::warning, false, there ? folder : "fashion-mnist is not installed",
                  there ? "" : "`tenon quickstart` trains on it", there ? "" : "sudo apt install dataset-fashion-mnist"});
}

}  // namespace tenon::cli
