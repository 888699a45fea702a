// loader/probe/trial.h - asking and launching the kernels of one plugin, on small tensors that end at a page nobody may touch.
#pragma once
#include <tenon/runtime.h>

#include <cstdint>

namespace tenon::loader {

// Every kernel of the plugin that a few small calls can reach: stage "supports" asks all of them, stage "launch" runs each
// that accepted. Done where work is finished when a call returns (CPU devices, inline ones): the slow start of a driver is
// not paid for a device that nobody asked for. Failures in an orderly way are no matter of this function.
void try_kernels(tn_runtime* runtime, uint32_t plugin, void (*enter)(const char* stage));

}  // namespace tenon::loader
