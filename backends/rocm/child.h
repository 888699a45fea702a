// backends/rocm/child.h - runs a program to its end, with a text in and two texts out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::rocm {

struct ChildEnd {
  enum How : uint8_t { Exited, Signalled, TimedOut, NotStarted } how = NotStarted;
  int number = 0;  // exit status, signal, or errno
  std::string output, errors;  // what it wrote to standard output and error, the latter at most 64 KiB
};
// arguments[0] is the program's path. blocks: until it ended; after timeout_ms it and what it started are killed.
ChildEnd run_child(const std::vector<std::string>& arguments, const std::string& input, uint32_t timeout_ms);
// "SIGABRT", "exit status 3", "no end within 1000 ms", "cannot be started: No such file or directory".
std::string end_text(const ChildEnd&, uint32_t timeout_ms);

}  // namespace tenon::rocm
