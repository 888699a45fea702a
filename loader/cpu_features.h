// loader/cpu_features.h - which instruction sets processor and system offer, in the bits of <tenon/cpu.def>.
//
// A CPUID bit alone is not enough: without the matching bits of XCR0 the first such instruction is SIGILL.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tenon::loader {

using CpuBits = std::array<uint64_t, 4>;  // as tn_cold.cpu_need

// The registers that the answer depends on; read from the processor, or made up by tests.
struct X86Leaves {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // 0 when the system does not use XSAVE
};
uint64_t x86_bits(const X86Leaves&);            // word 0
uint64_t arm_bits(uint64_t hwcap, uint64_t hwcap2);  // word 1, from the auxiliary vector

CpuBits host_cpu_bits();
CpuBits missing_bits(const CpuBits& need, const CpuBits& have);
std::string cpu_bits_text(const CpuBits&);  // "avx2 avx512f"; unknown bits as "word0.bit40"; "none"

}  // namespace tenon::loader
