#include "loader/probe/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "loader/small_file.h"

extern char** environ;

namespace tenon::loader {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kOutputLimit = 2048, kRecordLimit = 128 * 1024, kCauseLimit = 512;

// Both ends are above the descriptors that the child is given, so that placing one there covers no other.
struct Pipe {
  int read_end = -1, write_end = -1;
  ~Pipe() {
    close_end(&read_end);
    close_end(&write_end);
  }
  static void close_end(int* fd) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
    write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    if (read_end < 0 || write_end < 0) return errno = error, false;
    return fcntl(read_end, F_SETFL, O_NONBLOCK) == 0;
  }
};

struct Actions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

ProbeRun not_run(const char* what, int error) {
  return {ProbeEnd::NotRun, std::string(what) + ": " + std::generic_category().message(error), {}, error};
}

int start(const ProbeJob& job, const Pipe& records, const Pipe& output, pid_t* out) {
  Actions actions;
  posix_spawn_file_actions_addopen(&actions.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.files, output.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions.files, output.write_end, 2);
  posix_spawn_file_actions_adddup2(&actions.files, records.write_end, kProbePipe);
  // A descriptor that is where it shall be already would be closed on exec: it goes by way of a copy.
  const int plugin = job.descriptor >= 0 ? fcntl(job.descriptor, F_DUPFD_CLOEXEC, 10) : -1;
  if (plugin >= 0) posix_spawn_file_actions_adddup2(&actions.files, plugin, kProbePlugin);
  posix_spawn_file_actions_addclosefrom_np(&actions.files, plugin >= 0 ? kProbePlugin + 1 : kProbePlugin);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setpgroup(&actions.attributes, 0);  // a group of its own: what it starts can be killed with it
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const std::string path = plugin >= 0 ? "/proc/self/fd/" + std::to_string(kProbePlugin) : job.plugin;
  char* const arguments[] = {const_cast<char*>(job.program.c_str()), const_cast<char*>(path.c_str()), nullptr};
  std::vector<std::string> variables{"PATH=/usr/bin:/bin"};
  if (!job.secure && job.variables) variables = *job.variables;
  std::vector<char*> own;
  for (std::string& variable : variables) own.push_back(variable.data());
  own.push_back(nullptr);
  const int error = posix_spawn(out, job.program.c_str(), &actions.files, &actions.attributes, arguments, job.secure || job.variables ? own.data() : environ);
  if (plugin >= 0) close(plugin);
  return error;
}

// What the child has said so far.
struct Heard {
  std::string records, output, report, absent;
  std::string stage = "start";
  bool threw = false, done = false;

  // The complete lines; true when the child went on to another stage.
  bool take_records() {
    bool moved = false;
    for (size_t end; (end = records.find('\n')) != std::string::npos; records.erase(0, end + 1)) {
      const std::string line = records.substr(0, end);
      if (line == "done") done = true;
      if (line == "threw") threw = true;
      if (is_report_line(line) && report.size() + line.size() < kRecordLimit) report += line + "\n";
      if (line.starts_with("absent ")) absent = line.substr(7, kCauseLimit);
      if (!line.starts_with("stage ")) continue;
      const std::string name = line.substr(6);
      // The plugin can write here too: only known names are repeated to people.
      if (std::find(std::begin(kProbeStages), std::end(kProbeStages), name) == std::end(kProbeStages)) continue;
      stage = name;
      moved = true;
    }
    return moved;
  }
};

// Reads what is there; false at the end of the pipe. What goes beyond the limit is read and dropped.
bool drain(int fd, std::string* into, size_t limit) {
  char buffer[1024];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return false;
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    into->append(buffer, std::min(static_cast<size_t>(n), limit - std::min(limit, into->size())));
  }
}

enum class Ending { Running, Known, Unknown };

// Unknown: the program ignores SIGCHLD or has taken the status itself.
Ending look(pid_t child, int* status) {
  const pid_t found = waitpid(child, status, WNOHANG);
  if (found == child) return Ending::Known;
  return found < 0 && errno == ECHILD ? Ending::Unknown : Ending::Running;
}

Ending listen(pid_t child, const ProbeJob& job, const Pipe& records, const Pipe& output, Heard* heard, int* status, bool* timed_out) {
  const auto limit = std::chrono::milliseconds(job.timeout_ms);
  auto deadline = Clock::now() + limit;
  bool records_open = true, output_open = true;
  for (;;) {
    pollfd wait[2] = {{records_open ? records.read_end : -1, POLLIN, 0}, {output_open ? output.read_end : -1, POLLIN, 0}};
    poll(wait, 2, records_open || output_open ? 10 : 1);
    // Asked before the pipes are read: what an ended child wrote is all there then.
    const Ending ending = look(child, status);
    if (output_open) output_open = drain(output.read_end, &heard->output, kOutputLimit);
    if (records_open) records_open = drain(records.read_end, &heard->records, kRecordLimit);
    if (heard->take_records()) deadline = Clock::now() + limit;
    if (ending != Ending::Running) return ending;
    if (Clock::now() >= deadline) {
      *timed_out = true;
      return Ending::Running;
    }
  }
}

ProbeRun judge(const Heard& heard, Ending ending, int status) {
  const std::string place = " in " + heard.stage;
  if (heard.threw) return {ProbeEnd::Crashed, "a C++ exception" + place, heard.output, 0};
  if (ending == Ending::Known && WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return {ProbeEnd::Crashed, signal_name(number) + place, heard.output, number};
  }
  if (ending == Ending::Known && (!heard.done || WEXITSTATUS(status) != 0)) {
    // 127 before the first stage: the program could not be run at all.
    if (heard.stage == "start") return {ProbeEnd::NotRun, "it ended with status " + std::to_string(WEXITSTATUS(status)) + " before its first stage", heard.output, WEXITSTATUS(status)};
    const char* tail = heard.done ? "" : ", without an end record";
    return {ProbeEnd::Crashed, "exit status " + std::to_string(WEXITSTATUS(status)) + place + tail, heard.output, WEXITSTATUS(status)};
  }
  if (!heard.done) return {ProbeEnd::Crashed, "it ended" + place + ", without an end record", heard.output, 0};
  if (const size_t space = heard.absent.find(' '); space != std::string::npos)
    return {ProbeEnd::Safe, one_line(heard.absent.substr(space + 1)), heard.output, std::strtoll(heard.absent.c_str(), nullptr, 10), {}, true};
  return {ProbeEnd::Safe, {}, heard.output, 0, parse_report(heard.report)};
}

std::string time_text(uint32_t ms) {
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

ProbeRun run_probe(const ProbeJob& job) {
  Pipe records, output;
  if (!records.open() || !output.open()) return not_run("no pipe", errno);
  pid_t child = -1;
  if (const int error = start(job, records, output, &child)) return not_run(job.program.c_str(), error);
  Pipe::close_end(&records.write_end);
  Pipe::close_end(&output.write_end);
  Heard heard;
  int status = 0;
  bool timed_out = false;
  const Ending ending = listen(child, job, records, output, &heard, &status, &timed_out);
  kill(-child, SIGKILL);  // also what it left running
  if (!timed_out) return judge(heard, ending, status);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return {ProbeEnd::TimedOut, time_text(job.timeout_ms) + " passed in " + heard.stage, heard.output, 0};
}

}  // namespace tenon::loader
