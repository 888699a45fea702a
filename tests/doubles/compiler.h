// tests/doubles/compiler.h - a program as NVRTC and hiprtc know it.
#pragma once
#include <string>

namespace tenon_double {
struct CompilerProgram { std::string text, name, log, code, target; };
// Faults on demand: aborts, or never returns.
void compiler_fault();
}  // namespace tenon_double
