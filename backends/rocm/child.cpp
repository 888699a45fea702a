#include "backends/rocm/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

extern char** environ;

namespace tenon::rocm {
namespace {

constexpr size_t kErrorLimit = 64 * 1024, kNoLimit = SIZE_MAX;

// Sockets, not pipes: writing to a child that has ended then gives an error instead of a signal to the whole program.
struct Line {
  int ours = -1, childs = -1;
  ~Line() {
    end(&ours);
    end(&childs);
  }
  static void end(int* fd) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
  // The child's end lies above 2, so that placing one there covers no other.
  bool open() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    ours = pair[0];
    childs = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
    close(pair[1]);
    return childs >= 0 && fcntl(ours, F_SETFL, O_NONBLOCK) == 0;
  }
};

int spawn(const std::vector<std::string>& arguments, const Line lines[3], pid_t* out) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < 3; ++fd) posix_spawn_file_actions_adddup2(&files, lines[fd].childs, fd);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own: what it starts is killed with it
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawn(out, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Reads what is there; closes our end when the child closed its own.
void take(Line* line, std::string* into, size_t limit) {
  char buffer[16384];
  for (;;) {
    const ssize_t n = read(line->ours, buffer, sizeof buffer);
    if (n > 0) {
      into->append(buffer, std::min(static_cast<size_t>(n), limit - std::min(limit, into->size())));
    } else {
      if (n == 0 || (errno != EAGAIN && errno != EINTR)) Line::end(&line->ours);
      if (n == 0 || errno != EINTR) return;
    }
  }
}

// Writes what the child will take; closes our end when all is written or the child wants no more.
void give(Line* line, const std::string& input, size_t* sent) {
  const ssize_t n = send(line->ours, input.data() + *sent, input.size() - *sent, MSG_NOSIGNAL);
  if (n >= 0) *sent += static_cast<size_t>(n);
  if (*sent == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) Line::end(&line->ours);
}

// Until both outputs are closed; false when the time is over before.
bool talk(Line lines[3], const std::string& input, uint32_t timeout_ms, ChildEnd* end) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  size_t sent = 0;
  if (input.empty()) Line::end(&lines[0].ours);
  while (lines[1].ours >= 0 || lines[2].ours >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait[3] = {{lines[0].ours, POLLOUT, 0}, {lines[1].ours, POLLIN, 0}, {lines[2].ours, POLLIN, 0}};
    poll(wait, 3, static_cast<int>(std::min<long long>(left, 1000)));
    if (lines[0].ours >= 0 && wait[0].revents != 0) give(&lines[0], input, &sent);
    if (lines[1].ours >= 0 && wait[1].revents != 0) take(&lines[1], &end->output, kNoLimit);
    if (lines[2].ours >= 0 && wait[2].revents != 0) take(&lines[2], &end->errors, kErrorLimit);
  }
  return true;
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& arguments, const std::string& input, uint32_t timeout_ms) {
  ChildEnd end;
  Line lines[3];
  for (Line& line : lines)
    if (!line.open()) return end.number = errno, end;
  pid_t child = -1;
  if (const int error = spawn(arguments, lines, &child)) return end.number = error, end;
  for (Line& line : lines) Line::end(&line.childs);
  const bool in_time = talk(lines, input, timeout_ms, &end);
  if (!in_time) kill(-child, SIGKILL);
  int status = 0;
  pid_t found;
  while ((found = waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
  kill(-child, SIGKILL);  // what it left running
  end.how = !in_time ? ChildEnd::TimedOut : found == child && WIFSIGNALED(status) ? ChildEnd::Signalled : ChildEnd::Exited;
  if (found == child) end.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

std::string end_text(const ChildEnd& end, uint32_t timeout_ms) {
  switch (end.how) {
    case ChildEnd::Exited: return "exit status " + std::to_string(end.number);
    case ChildEnd::TimedOut: return "no end within " + std::to_string(timeout_ms) + " ms";
    case ChildEnd::NotStarted: return std::string("cannot be started: ") + std::strerror(end.number);
    case ChildEnd::Signalled: break;
  }
  const char* name = sigabbrev_np(end.number);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(end.number);
}

}  // namespace tenon::rocm
