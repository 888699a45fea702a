// tenon-probe FILE - goes through the whole life of one plugin and names every stage on descriptor 3 before entering it.
//
// Run by the loader (probe/run.h), never by people. The plugin gets a real runtime with the linked reference plugin. A
// refusal in an orderly way ends the probe as well as a success does: the loader meets it again and gives it its name, but for
// what is absent, whose words it takes from here.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernel/runtime.h"
#include "loader/check.h"
#include "loader/handshake.h"
#include "loader/open.h"
#include "loader/probe/gather.h"
#include "loader/probe/run.h"
#include "loader/probe/trial.h"
#include "loader/start_verdict.h"

#if defined(__SANITIZE_ADDRESS__)
// Signals shall end the process as they do without the sanitizer; what the plugin leaks is not the probe's subject.
extern "C" __attribute__((visibility("default"), used)) const char* __asan_default_options() {
  return "handle_segv=0:handle_sigill=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0:detect_leaks=0:abort_on_error=1:allocator_may_return_null=1";
}
#endif

using namespace tenon::loader;

namespace {

void say(const std::string& line) {
  const std::string text = line + "\n";
  // A reader that is gone ends the probe by SIGPIPE: nobody wants it any more.
  if (write(kProbePipe, text.data(), text.size()) < 0) _exit(1);
}

void enter(const char* stage) { say(std::string("stage ") + stage); }

void limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min(now.rlim_max, most);
  now.rlim_max = now.rlim_cur;
  setrlimit(what, &now);
}

// No core files, no filled disks. Address space stays open: drivers reserve terabytes of it.
void keep_small() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{64} << 20);
  limit(RLIMIT_CPU, 120);
}

// The steps of the loader's own boarding, each named. False: the plugin was refused in an orderly way.
bool board(tenon::kernel::Runtime& runtime, tenon::kernel::PluginSlot* slot, const std::string& path, tn_plugin* table) {
  MappedFile file;
  if (file.open(path)) return false;
  const ColdResult cold = read_cold(file.bytes());
  const HostFacts host = host_facts();
  if (check_cold(cold, host)) return false;
  std::strcpy(slot->entry.id, cold.cold.id);
  const uint32_t abi = *common_abi(host.abi_min, host.abi_max, cold.cold.abi_min, cold.cold.abi_max);
  OpenedLibrary opened;
  enter("constructor");
  if (auto refused = open_library(path, true, &opened)) {
    if (refused->cause.find("threw an exception") != std::string::npos) throw 0;
    return false;
  }
  enter("query");
  if (query_table(opened.query, abi, &slot->host, table)) return false;
  slot->table = table;
  slot->library = opened.handle;
  runtime.on_stage = enter;
  tn_diag diag{};
  diag.size = sizeof diag;
  const tn_status status = runtime.attach(slot, &diag);
  if (status == TN_E_UNAVAILABLE) {
    const Verdict absent = not_started(diag, status);
    say("absent " + std::to_string(absent.native_code) + " " + absent.cause);
  }
  return status == TN_OK;
}

void probe(const std::string& path) {
  tn_runtime_options options{};
  options.size = sizeof options;
  options.flags = TN_RT_NO_SEARCH;
  options.threads = 1;
  tn_runtime* runtime = nullptr;
  if (tn_runtime_create(&options, &runtime, nullptr) != TN_OK) std::exit(1);
  runtime->core.set_filter({});  // everything is tried and told; what the program sees is its own matter
  static tn_plugin table;  // outlives the runtime
  tenon::kernel::PluginSlot* slot = runtime->core.add_slot();
  const bool aboard = board(runtime->core, slot, path, &table);
  if (aboard) {
    enter("kernels");
    const std::string report = report_text(gather_report(*slot));
    say(report.substr(0, report.size() - 1));
    try_kernels(runtime, slot->entry.index, enter);
    enter("close");
  }
  tn_runtime_destroy(runtime, TN_FOREVER, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || getppid() == 1) return 1;
  keep_small();
  try {
    probe(arguments[1]);
  } catch (...) {
    say("threw");
    _exit(1);
  }
  enter("exit");
  say("done");
  return 0;
}
