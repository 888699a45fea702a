#include "tools/tenon/bench/rival_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace tenon::cli {
namespace {

constexpr int kPatienceMs = 180000;  // a case that is opened may compile or train its first steps

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& t : texts) list.push_back(const_cast<char*>(t.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

std::unique_ptr<RivalProcess> RivalProcess::start(const std::vector<std::string>& command, const std::vector<std::string>& environment, std::string* why) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return *why = std::strerror(errno), nullptr;
  if (pipe2(out, O_CLOEXEC) != 0) return close(in[0]), close(in[1]), *why = std::strerror(errno), nullptr;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<std::string> variables = environment;
  for (char** v = environ; *v; ++v) variables.push_back(*v);
  pid_t child = -1;
  const int error = posix_spawnp(&child, command[0].c_str(), &actions, nullptr, pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (error != 0) return close(in[1]), close(out[0]), *why = command[0] + ": " + std::strerror(error), nullptr;
  std::unique_ptr<RivalProcess> rival(new RivalProcess(child, in[1], out[0]));
  const auto info = rival->ask("info");
  if (!info) return *why = command[0] + " ended without a word", nullptr;
  rival->info_ = *info;
  return rival;
}

RivalProcess::~RivalProcess() {
  close(to_);
  close(from_);
  // Its input has ended, so it ends; a child that hangs is not waited for long.
  for (int i = 0; i < 100; ++i) {
    if (waitpid(child_, nullptr, WNOHANG) == child_) return;
    usleep(20000);
  }
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

std::optional<std::string> RivalProcess::ask(const std::string& request) {
  const std::string line = request + "\n";
  if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return std::nullopt;
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string answer = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return answer;
    }
    pollfd waiting{from_, POLLIN, 0};
    const int ready = poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[512];
    const ssize_t n = read(from_, buffer, sizeof buffer);
    if (n <= 0) return std::nullopt;
    pending_.append(buffer, static_cast<size_t>(n));
  }
}

bool RivalProcess::open(const std::string& name, std::string* why) {
  const auto answer = ask("open " + name);
  if (answer && *answer == "ok") return true;
  *why = answer ? *answer : "the program ended";
  return false;
}

std::optional<double> RivalProcess::sample() {
  const auto answer = ask("sample");
  if (!answer) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(answer->c_str(), &end);
  return end != answer->c_str() && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace tenon::cli
