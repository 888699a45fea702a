// tools/tenon/look/checks.h - what `tenon doctor` looks at. Each check gives findings; none has an effect on the machine.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/tenon/common/json.h"

namespace tenon::cli {

class Context;

enum class State { good, note /* worth knowing */, warning /* works, but worse than it could */, missing };

const char* state_name(State state);  // "ok", "note", "warning", "missing"

// Why a driver or a device cannot be used: a closed list, the same words in text, JSON and docs/doctor.md.
enum class Reason {
  none,
  not_built,        // a driver is there and works; this build of Tenon has no backend for it
  library_missing,  // library, needed_by
  driver_too_old,   // have, need
  no_device,        // code: where the system gave one
  no_permission,    // path, owner, group, mode, code (EACCES or EPERM)
  abi_mismatch,     // library, symbol; or kernel and library with their versions
  init_failed,      // code, in the words of the system or the driver
  driver_crashed,   // signal or status, stage
  driver_timeout,   // limit, stage
};
const char* reason_name(Reason reason);              // "" of none
Reason reason_of(const std::string& name);           // none when unknown

struct Finding {
  std::string check;   // "processor", "plugin onednn", ...
  State state = State::good;
  bool required = false;  // with State::missing: nothing runs without it
  std::string value, why, advice;  // advice: what to type
  Reason reason = Reason::none;
  JsonRow detail = {};    // what belongs to the reason, and the devices of a driver
};

struct DriverOptions {
  std::vector<std::string> required;  // interfaces whose driver must work
  double timeout_s = 10;
  bool again = false;
};

using Findings = std::vector<Finding>;
void check_processor(Context&, Findings*);
void check_memory(Context&, Findings*);
void check_plugins(Context&, Findings*);
void check_devices(Context&, Findings*);   // computes a small product on each usable device
void check_drivers(Context&, const DriverOptions&, Findings*);  // hardware, device nodes, and the drivers of other interfaces
void check_data(Context&, Findings*);

}  // namespace tenon::cli
