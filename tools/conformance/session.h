// tools/conformance/session.h - one run over a plugin: options, and the frame in which each check is made.
//
//   session.check("2.alloc", {"memory"}, [&](Trial& t) {
//     t.count();
//     if (bad) return t.fail("alloc of 64 bytes: ...");
//   });
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/conformance/lists.h"
#include "tools/conformance/report.h"

namespace tenon::conformance {

struct Options {
  std::string plugin;       // file; empty: the linked reference plugin
  uint32_t device = 0;      // index
  int level = 3;            // 1..this are run
  int only_level = 0;       // not 0: this one alone
  std::vector<std::string> only;  // prefixes of check ids; empty: all
  std::map<std::string, std::string> config;  // what host->config answers
  Lists lists;
  uint64_t seed = 1;
  uint32_t rounds = 2000;   // random ops of level 4
  bool full = false;        // every combination instead of a fixed sample
  uint32_t timeout_s = 600; // per level
  std::function<void(const std::string& id)> progress;  // when a check begins
};

// How one check goes. The first failure is kept, others are counted.
class Trial {
 public:
  void count(uint64_t n = 1) { tried_ += n; }
  void fail(const std::string& what);
  void skip(const std::string& why) { skipped_ = why; }
  void note(const std::string& text);
  void need(bool holds, const std::string& what) { if (!holds) fail(what); }
  bool failed() const { return failures_ != 0; }

 private:
  friend class Session;
  uint64_t tried_ = 0, failures_ = 0;
  std::string first_, skipped_;
  std::vector<std::string> notes_;
};

class Session {
 public:
  explicit Session(const Options& o) : options(o) {}
  const Options& options;
  std::vector<Check> done;
  std::function<void(const Check&)> finished;

  // Runs the body unless the lists or --only leave it out; a C++ exception is a failure of the check.
  void check(const std::string& id, std::vector<std::string> tags, const std::function<void(Trial&)>& body);
};

// Levels. Each opens the plugin anew.
void level1(Session&);
void level2(Session&);
void level3(Session&);
void level4(Session&);
void level5(Session&);
void level6(Session&);

// Every level in a process of its own: a crash or a hang is a failed check, and the report is complete.
// Throws std::runtime_error when the system refuses a process.
Report run(const Options& options);

}  // namespace tenon::conformance
