// backends/cpu/amx/target.h - for amx.cpp and its parts alone: every function that touches tiles or AVX-512 carries its own target
// attribute, so that the file holds no instruction beyond the baseline outside them.
#pragma once
#include <immintrin.h>

#include <algorithm>

#include "backends/cpu/amx/amx.h"

#define TENON_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-int8,amx-bf16")))

namespace tenon::cpu {

constexpr int64_t kPanelBytes = 2048;  // one k step (64 bytes of each row of A) of a panel of 32 rows or columns
inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
// The tile intrinsics do not tell the compiler which memory they read and write.
inline void fence_compiler() { __asm__ volatile("" ::: "memory"); }

}  // namespace tenon::cpu
