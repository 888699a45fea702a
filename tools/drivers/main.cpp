// tenon-drivers KIND NAME... - meets one driver of the machine, where it can harm nobody.
//
// Run by `tenon doctor` (tools/tenon/look/drivers_ask.h), never by people; protocol.h lists kinds and records.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>

#include "tools/drivers/drivers.h"
#include "tools/drivers/library.h"
#include "tools/drivers/say.h"

#if defined(__SANITIZE_ADDRESS__)
// Signals shall end the process as they do without the sanitizer; what a driver leaks is not the subject.
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_sigill=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0:detect_leaks=0:abort_on_error=1:allocator_may_return_null=1";
}
#endif

namespace tenon::drivers {

void try_library(const Names& names) {
  if (names.size() != 2) return;
  stage("load");
  if (void* library = open_library({names[0]})) symbol(library, names[1].c_str(), names[0]);
}

void try_nodes(const Names& paths) {
  stage("open");
  for (const std::string& path : paths) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int error = errno;
    if (fd >= 0) {
      close(fd);
      continue;
    }
    const char* name = strerrorname_np(error);
    fault("node", std::strerror(error), JsonRow().add("path", path).add("code", name != nullptr ? name : "").add("errno", error));
  }
}

namespace {

void limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min(now.rlim_max, most);
  setrlimit(what, &now);
}

// No core files, no filled disks. Address space stays open: drivers reserve terabytes of it.
void keep_small() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{64} << 20);
}

int run(const std::string& kind, const Names& names) {
  static constexpr struct { const char* kind; void (*run)(const Names&); } kKinds[] = {
      {"library", try_library}, {"opencl", try_opencl}, {"vulkan", try_vulkan}, {"cuda", try_cuda}, {"rocm", try_rocm}, {"nodes", try_nodes}};
  for (const auto& k : kKinds) {
    if (kind != k.kind) continue;
    k.run(names);
    used_files();
    done();
    _exit(0);  // how a driver behaves at the end of a process is not asked
  }
  return 1;
}

}  // namespace
}  // namespace tenon::drivers

int main(int count, char** arguments) {
  if (count < 3 || fcntl(tenon::drivers::kPipe, F_GETFD) < 0) return 1;
  tenon::drivers::keep_small();
  return tenon::drivers::run(arguments[1], tenon::drivers::Names(arguments + 2, arguments + count));
}
