// tests/gpu/write_library.cpp - prints the kernel library as C++ text; math_test.cpp includes it.
#include <cstdio>

#include "ops/gpu/dialect/library.h"

int main() { std::fputs(tenon::gpu::without_f64_suffix(tenon::gpu::whole_library()).c_str(), stdout); }
