// tools/conformance/run.cpp - one child process a level. The child writes one JSON line when a check begins and one when it
// has ended, so that the parent knows what was going on when a child dies.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/conformance/session.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;
using Level = void (*)(Session&);
constexpr Level kLevels[] = {level1, level2, level3, level4, level5, level6};

void put_line(int fd, const json& row) {
  const std::string line = row.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = write(fd, line.data() + at, line.size() - at);
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

[[noreturn]] void child(const Options& given, int level, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever ends the parent ends this too
  Options options = given;
  options.progress = [&](const std::string& id) { put_line(fd, {{"begin", id}}); };
  Session session(options);
  session.finished = [&](const Check& c) {
    put_line(fd, {{"id", c.id}, {"tags", c.tags}, {"state", static_cast<int>(c.state)}, {"detail", c.detail}, {"notes", c.notes}, {"tried", c.tried}, {"seconds", c.seconds}});
  };
  kLevels[level - 1](session);
  put_line(fd, {{"end", level}});
  // No destructor and no atexit of anybody: what the plugin left running must not decide how this ends.
  _exit(0);
}

struct Watched {
  Report* report;
  const Options& options;
  int level;
  std::string current = {};
  bool ended = false;

  void take(const std::string& line) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object()) return;
    if (row.contains("end")) {
      ended = true;
    } else if (row.contains("begin")) {
      current = row["begin"];
      if (options.progress) options.progress(current);
    } else {
      Check c;
      c.level = level, c.id = row["id"], c.tags = row["tags"].get<std::vector<std::string>>();
      c.state = static_cast<State>(row["state"].get<int>()), c.detail = row["detail"];
      c.notes = row["notes"].get<std::vector<std::string>>(), c.tried = row["tried"], c.seconds = row["seconds"];
      report->checks.push_back(c);
      current.clear();
    }
  }

  void died(const std::string& how) {
    Check c;
    c.level = level, c.id = std::to_string(level) + ".survives", c.tags = {"process"};
    c.state = State::Failed;
    c.detail = "the process " + how + (current.empty() ? " between two checks" : " in check " + current);
    report->checks.push_back(c);
  }
};

// Reads until the child closes its end. False when the time is over.
bool read_all(int fd, uint32_t timeout_s, Watched* watched) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  std::string rest;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd p{fd, POLLIN, 0};
    if (left <= 0 || poll(&p, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) == 0) return false;
    char bytes[65536];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    rest.append(bytes, static_cast<size_t>(n));
    for (size_t at; (at = rest.find('\n')) != std::string::npos; rest.erase(0, at + 1)) watched->take(rest.substr(0, at));
    if (watched->ended) return true;
  }
}

void run_level(const Options& options, int level, Report* report) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    child(options, level, ends[1]);
  }
  close(ends[1]);
  Watched watched{report, options, level};
  const bool in_time = read_all(ends[0], options.timeout_s, &watched);
  close(ends[0]);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (!in_time) watched.died("did not end within " + std::to_string(options.timeout_s) + " s");
  else if (WIFSIGNALED(status)) watched.died(std::string("was ended by ") + strsignal(WTERMSIG(status)));
  else if (!watched.ended) watched.died("left with exit status " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace

Report run(const Options& options) {
  Report report;
  report.path = options.plugin.empty() ? "(linked)" : options.plugin;
  report.level = options.only_level != 0 ? options.only_level : options.level;
  describe(options, &report);
  const int first = options.only_level != 0 ? options.only_level : 1;
  for (int level = first; level <= report.level; ++level) run_level(options, level, &report);
  return report;
}

}  // namespace tenon::conformance
