#include "tools/conformance/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tenon::conformance {

const char* state_name(State state) {
  static const char* const names[] = {"passed", "failed", "skipped", "never", "not_yet"};
  return names[static_cast<int>(state)];
}

const char* level_name(int level) {
  static const char* const names[] = {"", "load and ABI", "memory and timelines", "numerics", "honesty", "threads and asynchrony", "faults and unload"};
  return level >= 1 && level <= 6 ? names[level] : "";
}

bool Report::passed() const {
  return std::none_of(checks.begin(), checks.end(), [](const Check& c) { return c.state == State::Failed; });
}

bool Report::passed_level(int wanted) const {
  bool any = false;
  for (const Check& c : checks) {
    if (c.level != wanted) continue;
    any = true;
    if (c.state == State::Failed) return false;
  }
  return any;
}

int Report::reached() const {
  int top = 0;
  while (top < level && passed_level(top + 1)) ++top;
  return top;
}

size_t Report::how_many(State state) const {
  return static_cast<size_t>(std::count_if(checks.begin(), checks.end(), [&](const Check& c) { return c.state == state; }));
}

std::string json_text(const Report& report) {
  nlohmann::ordered_json all;
  all["plugin"] = report.plugin_id;
  all["version"] = report.plugin_version;
  all["path"] = report.path;
  all["device"] = report.device;
  all["abi"] = report.abi;
  all["level"] = report.level;
  all["reached"] = report.reached();
  all["passed"] = report.passed();
  auto& list = all["checks"] = nlohmann::ordered_json::array();
  for (const Check& c : report.checks) {
    nlohmann::ordered_json row;
    row["level"] = c.level;
    row["check"] = c.id;
    row["tags"] = c.tags;
    row["state"] = state_name(c.state);
    row["detail"] = c.detail;
    row["notes"] = c.notes;
    row["tried"] = c.tried;
    row["seconds"] = c.seconds;
    list.push_back(row);
  }
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tenon::conformance
