// tools/tenon/look/checks.h - what `tenon doctor` looks at. Each check gives findings; none has an effect on the machine.
#pragma once
#include <string>
#include <vector>

namespace tenon::cli {

class Context;

enum class State { good, note /* worth knowing */, warning /* works, but worse than it could */, missing };

const char* state_name(State state);  // "ok", "note", "warning", "missing"

struct Finding {
  std::string check;   // "processor", "plugin onednn", ...
  State state = State::good;
  bool required = false;  // with State::missing: nothing runs without it
  std::string value, why, advice;  // advice: what to type
};

using Findings = std::vector<Finding>;
void check_processor(Context&, Findings*);
void check_memory(Context&, Findings*);
void check_plugins(Context&, Findings*);
void check_devices(Context&, Findings*);   // computes a small product on each usable device
void check_hardware(Context&, Findings*);  // accelerators on the PCI bus that no device stands for
void check_data(Context&, Findings*);

}  // namespace tenon::cli
