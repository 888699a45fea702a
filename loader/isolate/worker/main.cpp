// tenon-worker FILE ABI THREADS BEAT_MS - runs one plugin for a program that wants it in another process.
//
// Started by the loader (loader/isolate/worker_process.h), never by people. Descriptor 3 is the event channel: over it come
// the lanes, each served by a thread of its own. The worker ends with the thread that started it, with the channel, or with
// the plugin.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "loader/isolate/worker/server.h"

#if defined(__SANITIZE_ADDRESS__)
// Signals shall end the process as they do without the sanitizer; what the plugin leaks at the end is not looked at.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "handle_segv=0:handle_sigill=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0:detect_leaks=0:abort_on_error=1:allocator_may_return_null=1";
}
#endif

using namespace tenon::loader::isolate;

namespace {

uint32_t number(const char* text) { return static_cast<uint32_t>(std::strtoul(text, nullptr, 10)); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // All of these live as long as the process: lanes use them until it ends.
  auto* events = new Channel(kEventChannel);
  auto* host = new WorkerHost(*events, number(arguments[3]));
  auto* server = new Server(arguments[1], number(arguments[2]), number(arguments[4]), *host);
  uint32_t kind = 0;
  std::string payload;
  while (events->receive(&kind, &payload) == Channel::Got::Frame) {
    if (kind == kReply) host->answered(payload);
    if (kind != kLane) continue;
    const int socket = events->take_descriptor();
    if (socket >= 0) std::thread([server, socket] { server->serve_lane(socket); }).detach();
  }
  // Nothing of the plugin runs at the end, not even its destructors.
  _exit(0);
}
