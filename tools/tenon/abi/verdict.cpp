#include "tools/tenon/abi/verdict.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "tools/tenon/common/context.h"

namespace tenon::cli {
namespace {

// Verdicts of the loader's own trial, and its step; frozen (see names.cpp).
enum Code : uint32_t { kCrashedInProbe = 11, kProbeTimeout = 12, kProbeFailed = 25 };
constexpr uint32_t kStageProbe = 5;

// What the child says on the pipe: whole, or it does not count.
struct Answer {
  tn_status status = TN_OK;  // of making a runtime
  tn_diag diag{};
  tn_plugin_entry entry{};
};

Answer ask(const std::string& file) {
  Answer a;
  a.diag.size = sizeof a.diag;
  tn_runtime_options options{};
  options.size = sizeof options;
  options.flags = TN_RT_NO_SEARCH;
  tn_runtime* runtime = nullptr;
  if ((a.status = tn_runtime_create(&options, &runtime, &a.diag)) != TN_OK) return a;
  tn_diag ignored{};
  tn_plugin_load(runtime, file.c_str(), nullptr, &ignored);  // its answer stands in the entry
  for (const tn_plugin_entry& entry : plugin_entries(runtime))
    if (entry.path[0] != 0) a.entry = entry;
  tn_runtime_destroy(runtime, TN_FOREVER, nullptr);
  return a;
}

[[noreturn]] void be_child(int pipe, const std::string& file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // what the plugin starts goes with it
  try {
    const Answer a = ask(file);
    if (write(pipe, &a, sizeof a) != sizeof a) _exit(1);
  } catch (...) {
    _exit(1);
  }
  std::exit(0);  // the plugin's destructors too are tried
}

// Reads until the pipe is closed; false: the time was over before.
bool read_all(int pipe, double limit_s, std::string* out) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd wait{pipe, POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char bytes[1024];
    const ssize_t n = read(pipe, bytes, sizeof bytes);
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return true;
    if (n > 0) out->append(bytes, static_cast<size_t>(n));
  }
}

tn_plugin_entry fallen(tn_plugin_entry entry, const std::string& file, Code code, const std::string& cause, int64_t number) {
  entry.code = code, entry.stage = kStageProbe, entry.native_code = number;
  std::snprintf(entry.cause, sizeof entry.cause, "%s", cause.c_str());
  if (entry.path[0] == 0) std::snprintf(entry.path, sizeof entry.path, "%s", file.c_str());
  return entry;
}

std::string text_of_signal(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

}  // namespace

tn_plugin_entry verdict_in_child(const std::string& file, double limit_s) {
  int ends[2];
  if (pipe(ends) != 0) return fallen({}, file, kProbeFailed, std::string("no pipe: ") + std::strerror(errno), errno);
  const pid_t child = fork();
  if (child < 0) return close(ends[0]), close(ends[1]), fallen({}, file, kProbeFailed, std::string("no process: ") + std::strerror(errno), errno);
  if (child == 0) close(ends[0]), be_child(ends[1], file);
  setpgid(child, child);
  close(ends[1]);
  std::string said;
  const bool in_time = read_all(ends[0], limit_s, &said);
  close(ends[0]);
  if (!in_time) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  kill(-child, SIGKILL);  // also what it left running
  Answer a;
  const bool whole = said.size() == sizeof a;
  if (whole) std::memcpy(&a, said.data(), sizeof a);
  if (!in_time) return fallen(a.entry, file, kProbeTimeout, time_text(limit_s * 1e9) + " passed while it was loaded and ended", 0);
  const std::string when = whole ? " when the process ended" : " while it was loaded and ended";
  if (WIFSIGNALED(status)) return fallen(a.entry, file, kCrashedInProbe, text_of_signal(WTERMSIG(status)) + when, WTERMSIG(status));
  if (!whole || WEXITSTATUS(status) != 0) return fallen(a.entry, file, kCrashedInProbe, "exit status " + std::to_string(WEXITSTATUS(status)) + when, WEXITSTATUS(status));
  if (a.status != TN_OK) throw_diag(a.diag, a.status);
  return a.entry;
}

}  // namespace tenon::cli
