// tools/conformance/report.h - what was looked at in a plugin, and what came of it.
//
//   Report r = run(options);
//   std::puts(r.passed() ? "conforms" : "does not conform");
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::conformance {

enum class State {
  Passed,
  Failed,
  Skipped,  // does not apply; detail says why
  Never,    // named in the plugin's `never` list: not run
  NotYet,   // named in its `not_yet` list and fails, as expected
};
const char* state_name(State state);  // "passed", "failed", "skipped", "never", "not_yet"

struct Check {
  int level = 0;
  std::string id;      // "3.values.sim.matmul": stable, what the lists name
  std::vector<std::string> tags;  // words of the id, and more: "f64", "import"
  State state = State::Passed;
  std::string detail;  // failed: what was wrong; skipped, never, not_yet: why
  std::vector<std::string> notes;
  uint64_t tried = 0;  // calls, transfers, rounds
  double seconds = 0;
};

struct Report {
  std::string plugin_id, plugin_version, path, device, abi;
  int level = 0;  // the highest that was run
  std::vector<Check> checks;

  bool passed() const;                  // no check failed
  bool passed_level(int level) const;   // none of this level failed, and one at least was run
  int reached() const;                  // the highest level below which nothing failed; 0: none
  size_t how_many(State state) const;
};

const char* level_name(int level);  // "numerics"
std::string json_text(const Report& report);  // one object on one line

}  // namespace tenon::conformance
