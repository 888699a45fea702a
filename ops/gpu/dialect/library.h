// ops/gpu/dialect/library.h - the functions that kernel texts may call, and which of them a text needs.
#pragma once
#include <string>

namespace tenon::gpu {

// Definitions of all library functions that `text` names, and of those they call, in an order that compiles.
std::string library_for(const std::string& text);
// The whole library; for the tests that measure it.
std::string whole_library();
// f64 literals are written 1.5lf, as GLSL wants them. C knows no such suffix: this takes it off.
std::string without_f64_suffix(const std::string& text);

}  // namespace tenon::gpu
