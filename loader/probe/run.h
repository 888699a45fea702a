// loader/probe/run.h - trying a plugin in a child process, where it can harm nobody.
//
//   ProbeRun r = run_probe({"/usr/libexec/tenon/tenon-probe", "/opt/p/libtenon_backend_x.so"});
//   r.end == ProbeEnd::Crashed, r.cause == "SIGSEGV in constructor"
//
// The child (probe/main.cpp) names each stage on a pipe before it enters it, and writes an end record when all are over: a
// plugin that calls exit(0) has crashed the probe like one that runs into a signal. Each stage has the time limit for
// itself. What the child prints is kept, to a limit. Nothing of this process but three descriptors reaches the child.
// Threads: any. Blocks until the child has ended or was killed; nothing waits longer than the limit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loader/probe/report.h"

namespace tenon::loader {

struct ProbeJob {
  std::string program;         // the executable tenon-probe
  std::string plugin;          // path
  int descriptor = -1;         // >= 0: the child opens this descriptor's file instead of the path
  uint32_t timeout_ms = 10000; // of each stage
  bool secure = false;         // raised rights: the child gets no variable of the user
  std::optional<std::vector<std::string>> variables = {};  // "NAME=value": exactly these; nothing = those of this process
};

enum class ProbeEnd {
  Safe,      // every stage was entered and left; refusals in an orderly way are safe too
  Crashed,   // a signal, an exit without end record, or a C++ exception
  TimedOut,
  NotRun,    // the child could not be started: cause says why
};

struct ProbeRun {
  ProbeEnd end = ProbeEnd::NotRun;
  std::string cause;           // "SIGSEGV in constructor", "exit status 0 in open, without an end record"; empty when safe
  std::string output;          // the first bytes of what it printed
  int64_t native_code = 0;     // signal, exit status or errno
  std::optional<PluginReport> report = {};  // of a plugin that was taken into use there; nothing when it was refused
  bool absent = false;         // safe, and its open() said TN_E_UNAVAILABLE: cause and native_code are those of the verdict
};

ProbeRun run_probe(const ProbeJob&);

// ---- the protocol, shared with the child: lines on descriptor kProbePipe --------------------------------------------
inline constexpr int kProbePipe = 3;       // "stage NAME", lines of the report, "absent NUMBER CAUSE", "threw", "done"
inline constexpr int kProbePlugin = 4;     // the plugin's file, where a descriptor was given
inline constexpr const char* kProbeStages[] = {"constructor", "query", "open", "kernels", "devices", "supports", "launch", "close", "exit"};

}  // namespace tenon::loader
