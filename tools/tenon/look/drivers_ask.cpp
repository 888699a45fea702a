// Asking drivers: one child process each, all at once, with a time limit for each stage.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/drivers/protocol.h"
#include "tools/tenon/look/drivers.h"

extern char** environ;

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t id = -1;
  int pipe = -1;
  std::string rows, stage = "start of tenon-drivers";
  size_t read_to = 0;  // of rows: complete lines that were looked at
  Clock::time_point deadline;
  bool running = false;
};

std::string fault_row(const char* reason, const std::string& why, const JsonRow& more) {
  return JsonRow().add("fault", JsonRow().add("reason", reason).add("why", why).add("more", more)).text() + "\n";
}

struct SpawnPlan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  explicit SpawnPlan(int pipe) {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    for (int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);  // what drivers print is not for the reader
    posix_spawn_file_actions_adddup2(&files, pipe, drivers::kPipe);
    posix_spawn_file_actions_addclosefrom_np(&files, drivers::kPipe + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own: what it starts can be ended with it
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

std::vector<std::string> variables_of(const AskOptions& options) {
  std::vector<std::string> all;
  if (options.bare) all.push_back("PATH=/usr/bin:/bin");
  for (char** v = environ; !options.bare && *v != nullptr; ++v) all.push_back(*v);
  for (const std::string& more : options.variables) {
    const std::string name = more.substr(0, more.find('=') + 1);
    if (std::none_of(all.begin(), all.end(), [&](const std::string& v) { return v.rfind(name, 0) == 0; })) all.push_back(more);
  }
  return all;
}

// 0 or errno.
int start(const DriverJob& job, const AskOptions& options, Child* out) {
  int low[2], ends[2];
  if (pipe2(low, O_CLOEXEC) != 0) return errno;
  // Above the descriptors that the child is given, so that placing one there covers no other.
  for (int i : {0, 1}) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
    close(low[i]);
  }
  if (ends[0] < 0 || ends[1] < 0) return EMFILE;
  std::vector<char*> arguments{const_cast<char*>(options.program.c_str()), const_cast<char*>(job.kind.c_str())};
  for (const std::string& name : job.names) arguments.push_back(const_cast<char*>(name.c_str()));
  arguments.push_back(nullptr);
  const SpawnPlan plan(ends[1]);
  std::vector<std::string> variables = variables_of(options);
  std::vector<char*> environment;
  for (std::string& v : variables) environment.push_back(v.data());
  environment.push_back(nullptr);
  const int error = posix_spawn(&out->id, options.program.c_str(), &plan.files, &plan.attributes, arguments.data(), environment.data());
  close(ends[1]);
  if (error != 0) return close(ends[0]), error;
  out->pipe = ends[0];
  fcntl(out->pipe, F_SETFL, O_NONBLOCK);
  out->running = true;
  return 0;
}

// The driver can write here too: only known names of stages are repeated to people.
bool take_stage(const std::string& line, std::string* stage) {
  for (const char* known : drivers::kStages)
    if (line == JsonRow().add("stage", known).text()) return *stage = known, true;
  return false;
}

// Reads what is there; false at the end of the pipe. A stage that is entered has the time limit for itself.
bool listen(Child* child, std::chrono::milliseconds limit) {
  char buffer[4096];
  ssize_t n;
  while ((n = read(child->pipe, buffer, sizeof buffer)) > 0)
    child->rows.append(buffer, std::min(static_cast<size_t>(n), drivers::kAnswerLimit - std::min(drivers::kAnswerLimit, child->rows.size())));
  for (size_t end; (end = child->rows.find('\n', child->read_to)) != std::string::npos; child->read_to = end + 1)
    if (take_stage(child->rows.substr(child->read_to, end - child->read_to), &child->stage)) child->deadline = Clock::now() + limit;
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

bool is_done(const std::string& rows) { return rows.size() >= 14 && rows.compare(rows.size() - 14, 14, "{\"done\":true}\n") == 0; }

// What the child could not say itself. An exit before the end record is a crash too.
void judge(Child* child, int status) {
  if (WIFEXITED(status) && is_done(child->rows)) return;
  child->rows.erase(child->read_to);
  const std::string place = " in stage " + child->stage;
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    const std::string signal = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
    child->rows += fault_row("driver_crashed", signal + place, JsonRow().add("signal", signal).add("stage", child->stage));
  } else {
    const std::string code = std::to_string(WEXITSTATUS(status));
    child->rows += fault_row("driver_crashed", "it ended the process with status " + code + place, JsonRow().add("status", code).add("stage", child->stage));
  }
}

void end_late(Child* child, const AskOptions& options) {
  child->rows.erase(child->read_to);
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g s", options.timeout_ms / 1000.0);
  child->rows += fault_row("driver_timeout", std::string(limit) + " passed in stage " + child->stage, JsonRow().add("limit", limit).add("stage", child->stage));
}

void finish(Child* child) {
  kill(-child->id, SIGKILL);  // also what it left running
  close(child->pipe);
  child->running = false;
}

// One look at a running child. A child that cannot be ended (it waits inside the kernel's driver) is left to itself.
void attend(Child* child, const AskOptions& options) {
  int status = 0;
  const pid_t ended = waitpid(child->id, &status, WNOHANG);  // asked before the pipe is read: all is there then
  listen(child, std::chrono::milliseconds(options.timeout_ms));
  if (ended == child->id) {
    judge(child, status);
    finish(child);
  } else if (ended < 0 && errno == ECHILD) {
    if (!is_done(child->rows)) child->rows += fault_row("driver_crashed", "it ended in stage " + child->stage, JsonRow().add("stage", child->stage));
    finish(child);
  } else if (Clock::now() >= child->deadline) {
    end_late(child, options);
    finish(child);
    waitpid(child->id, &status, WNOHANG);
  }
}

void attend_all(std::vector<Child>* children, const AskOptions& options) {
  for (;;) {
    std::vector<pollfd> wait;
    for (const Child& c : *children)
      if (c.running) wait.push_back({c.pipe, POLLIN, 0});
    if (wait.empty()) return;
    // The end of a pipe comes a little before the end of its process.
    poll(wait.data(), wait.size(), 10);
    if (std::all_of(wait.begin(), wait.end(), [](const pollfd& p) { return (p.revents & POLLIN) == 0 && (p.revents & POLLHUP) != 0; })) usleep(500);
    for (Child& c : *children)
      if (c.running) attend(&c, options);
  }
}

std::string words(const nlohmann::json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
}

DriverDevice device_of(const nlohmann::json& row) {
  DriverDevice d{words(row, "platform"), words(row, "name"), words(row, "type"), words(row, "version"), words(row, "driver"), words(row, "pci"), 0, false};
  if (row.contains("memory_bytes") && row["memory_bytes"].is_number_unsigned()) d.memory_bytes = row["memory_bytes"].get<uint64_t>();
  d.software = row.contains("software") && row["software"] == true;
  return d;
}

Fault fault_of(const nlohmann::json& row) {
  Fault fault{reason_of(words(row, "reason")), words(row, "why"), {}};
  if (row.contains("more") && row["more"].is_object())
    for (const auto& [key, value] : row["more"].items())
      if (value.is_string()) fault.more[key] = value.get<std::string>();
  return fault;
}

}  // namespace

DriverAnswer read_answer(const DriverJob& job, const std::string& rows) {
  DriverAnswer answer;
  answer.job = job;
  answer.rows = rows;
  for (size_t at = 0, end; (end = rows.find('\n', at)) != std::string::npos; at = end + 1) {
    const auto row = nlohmann::json::parse(rows.begin() + static_cast<ptrdiff_t>(at), rows.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    if (!row.is_object()) continue;
    if (row.contains("device") && row["device"].is_object()) answer.devices.push_back(device_of(row["device"]));
    if (row.contains("fault") && row["fault"].is_object()) answer.faults.push_back(fault_of(row["fault"]));
  }
  return answer;
}

std::vector<DriverAnswer> ask_drivers(const std::vector<DriverJob>& jobs, const AskOptions& options) {
  std::vector<DriverAnswer> answers(jobs.size());
  std::vector<Child> children(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string kept = options.again ? std::string() : kept_answer(options, jobs[i]);
    if (!kept.empty()) {
      answers[i] = read_answer(jobs[i], kept);
      answers[i].kept = true;
      continue;
    }
    children[i].deadline = Clock::now() + std::chrono::milliseconds(options.timeout_ms);
    if (const int error = start(jobs[i], options, &children[i]))
      children[i].rows = fault_row("init_failed", options.program + " cannot be started: " + std::strerror(error), JsonRow().add("code", strerrorname_np(error)).add("program", options.program));
  }
  attend_all(&children, options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (answers[i].kept) continue;
    answers[i] = read_answer(jobs[i], children[i].rows);
    keep_answer(options, answers[i]);
  }
  return answers;
}

}  // namespace tenon::cli
