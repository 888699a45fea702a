// loader/filters.h - the variables by which people hide devices from their drivers: CUDA_VISIBLE_DEVICES and its like.
//
// Each driver obeys its own, and other routes to the same hardware know nothing of it. What a variable hides is learnt by
// comparing what a plugin reports with it and without it (tried in a child process that lacks the variables): no rule of
// any driver about the order of its devices is guessed.
#pragma once
#include <string>
#include <vector>

#include "loader/probe/report.h"

namespace tenon::loader {

// One line with the values of all variables that change which devices or drivers there are; "" when none is set. `hiding`:
// with those that hide devices.
std::string filter_text(bool hiding);

// Whether a variable that hides devices is set.
bool filters_set();

// "NAME=value" entries of an environment but those that hide devices.
std::vector<std::string> without_filters(const char* const* environment);

struct Hidden {
  std::vector<tn_device_info> devices;  // hidden ones that a UUID or a PCI address identifies
  size_t nameless = 0;                  // hidden ones that nothing identifies
};
Hidden hidden_devices(const PluginReport& all, const PluginReport& seen);

// "HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=0": the variables in force for devices of this kind and vendor.
std::string filters_of(const tn_device_info& device);

// Entries of those variables that mean none of the plugin's devices, each as a sentence.
std::vector<std::string> unknown_entries(const PluginReport& all);

}  // namespace tenon::loader
