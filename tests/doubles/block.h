// tests/doubles/block.h - runs the blocks of a launch, each thread on a stack of its own.
#pragma once
#include <cstdint>
#include <string>

#include "tests/doubles/device_abi.h"

namespace tenon_double {

struct Launch { const TenonKernel* kernel = nullptr; std::string name; TenonIndex grid{1, 1, 1}, block{1, 1, 1}; void** arguments = nullptr; uint32_t warp = 32; bool reverse = false; };
// 0, or the error of the device: 700 a fault of memory, 719 threads that missed a barrier, 715 an operation without result. What
// happened is printed. One launch of the process at a time; others wait.
int run(const Launch&);

}  // namespace tenon_double
