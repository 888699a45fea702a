// tests/conformance/everywhere.h - one call by every candidate, forced in turn, on every device.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/compare.h"
#include "tools/conformance/trial.h"

namespace tenon::conformance {

struct Expected {
  std::vector<Array> out;     // exact numbers; dtype of an element type or f64. dtype 0: not looked at
  std::vector<Bound> bounds;  // one per output, or one for all
};

// On the full machine (cpu:0, sim:0) and on the reference alone. `parts`: expansions with each kernel of a primitive.
// Returns the first differences, empty when there are none; *calls counts what ran.
std::string differences(const Call& call, const Expected& expected, bool parts, int* calls = nullptr);

// Every outcome to a function that gives "" or what is wrong with it; the same rounds.
std::string for_everyone(const Call& call, bool parts, const std::function<std::string(const Outcome&)>& judge, int* calls = nullptr);

}  // namespace tenon::conformance
