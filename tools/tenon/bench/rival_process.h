// tools/tenon/bench/rival_process.h - a rival program (tools/bench/rival.h) as a child process.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace tenon::cli {

class RivalProcess {
 public:
  // Starts `command` (path and arguments). Nothing when it cannot be started; `why` then says so.
  static std::unique_ptr<RivalProcess> start(const std::vector<std::string>& command, const std::vector<std::string>& environment, std::string* why);
  ~RivalProcess();
  RivalProcess(const RivalProcess&) = delete;
  RivalProcess& operator=(const RivalProcess&) = delete;

  const std::string& info() const { return info_; }  // library and version
  pid_t id() const { return child_; }
  bool open(const std::string& name, std::string* why);
  std::optional<double> sample();  // nothing when the child is gone or answers no number

 private:
  RivalProcess(pid_t child, int to, int from) : child_(child), to_(to), from_(from) {}
  // (blocks) at most some minutes. Nothing when the child is gone or silent.
  std::optional<std::string> ask(const std::string& request);
  pid_t child_;
  int to_, from_;
  std::string info_, pending_;
};

}  // namespace tenon::cli
