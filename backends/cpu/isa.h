// backends/cpu/isa.h - choosing among the code that Highway's foreach_target made, without linking its library.
//
//   HWY_BEFORE_NAMESPACE(); namespace tenon::cpu::HWY_NAMESPACE { const Table* table() {...} } HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   const Table* f32_table(Isa isa) { return TENON_CPU_PICK(isa, table)(); }
//   #endif
// Include after hwy/highway.h, inside HWY_ONCE.
#pragma once
#include "backends/cpu/core.h"

#if defined(__x86_64__)
#define TENON_CPU_PICK(isa, fn) \
  ((isa) == ::tenon::cpu::Isa::Avx512 ? &N_AVX3::fn : (isa) == ::tenon::cpu::Isa::Avx2 ? &N_AVX2::fn : &HWY_STATIC_DISPATCH(fn))
#else
#define TENON_CPU_PICK(isa, fn) (&HWY_STATIC_DISPATCH(fn))
#endif
