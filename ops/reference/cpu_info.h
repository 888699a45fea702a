// ops/reference/cpu_info.h - what this processor is and can do. Any thread; reads CPUID, XCR0 and sysconf, no environment.
#pragma once
#include <tenon/caps.h>

#include <cstdint>

namespace tenon::reference {

// Bits of TN_ISA_BITS: instructions present and registers kept by the operating system.
void isa_bits(uint64_t out[4]);
// The processor's own name, e.g. "Intel(R) Xeon(R) Platinum 8480"; the architecture's where it has none.
void cpu_name(char* out, uint32_t bytes);
uint32_t cpu_cores();            // processors this process may run on
uint64_t memory_total_bytes();
uint64_t memory_free_bytes();
// Fills at most cap entries; returns the full count. Texts are static.
uint32_t cpu_caps(tn_cap* out, uint32_t cap);

}  // namespace tenon::reference
