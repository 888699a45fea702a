#include "loader/cpu_features.h"

#include <tenon/cpu.def>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tenon::loader {
namespace {

#define X(NAME, name, word, bit, meaning) constexpr uint64_t k##NAME = uint64_t{1} << bit;
TN_CPU_BITS(X)
#undef X

struct BitName {
  const char* name;
  uint32_t word, bit;
};
constexpr BitName kNames[] = {
#define X(NAME, name, word, bit, meaning) {#name, word, bit},
    TN_CPU_BITS(X)
#undef X
};

// State that the system saves on a task switch, as bits of XCR0.
constexpr uint64_t kYmmState = 0x6, kZmmState = 0xE6, kTileState = 0x60000;

bool bit(uint64_t word, uint32_t number) { return (word >> number & 1) != 0; }

const char* name_of(uint32_t word, uint32_t number) {
  for (const BitName& n : kNames) {
    if (n.word == word && n.bit == number) return n.name;
  }
  return nullptr;
}

#if defined(__x86_64__)
uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

X86Leaves read_leaves() {
  X86Leaves leaves;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return leaves;
  leaves.leaf1_ecx = c;
  if (bit(c, 27)) leaves.xcr0 = read_xcr0();  // OSXSAVE: xgetbv is allowed
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return leaves;
  const uint32_t subleaves = a;
  leaves.leaf7_ebx = b, leaves.leaf7_ecx = c, leaves.leaf7_edx = d;
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) leaves.leaf7_1_eax = a;
  return leaves;
}
#endif

}  // namespace

uint64_t x86_bits(const X86Leaves& r) {
  uint64_t have = 0;
  const auto add = [&have](bool present, uint64_t name) { if (present) have |= name; };
  add(bit(r.leaf1_ecx, 20), kSSE4_2);
  add(bit(r.leaf1_ecx, 23), kPOPCNT);
  add(bit(r.leaf7_ebx, 3) && bit(r.leaf7_ebx, 8), kBMI2);
  const bool ymm = (r.xcr0 & kYmmState) == kYmmState && bit(r.leaf1_ecx, 28);
  add(ymm, kAVX);
  add(ymm && bit(r.leaf1_ecx, 29), kF16C);
  add(ymm && bit(r.leaf1_ecx, 12), kFMA);
  add(ymm && bit(r.leaf7_ebx, 5), kAVX2);
  add(ymm && bit(r.leaf7_1_eax, 4), kAVX_VNNI);
  const bool zmm = ymm && (r.xcr0 & kZmmState) == kZmmState && bit(r.leaf7_ebx, 16);
  add(zmm, kAVX512F);
  add(zmm && bit(r.leaf7_ebx, 30), kAVX512BW);
  add(zmm && bit(r.leaf7_ebx, 17), kAVX512DQ);
  add(zmm && bit(r.leaf7_ebx, 31), kAVX512VL);
  add(zmm && bit(r.leaf7_ecx, 11), kAVX512VNNI);
  add(zmm && bit(r.leaf7_1_eax, 5), kAVX512BF16);
  add(zmm && bit(r.leaf7_edx, 23), kAVX512FP16);
  const bool tile = (r.xcr0 & kTileState) == kTileState && bit(r.leaf7_edx, 24);
  add(tile, kAMX_TILE);
  add(tile && bit(r.leaf7_edx, 22), kAMX_BF16);
  add(tile && bit(r.leaf7_edx, 25), kAMX_INT8);
  return have;
}

// Bit numbers of AT_HWCAP and AT_HWCAP2 as the Linux kernel's documentation of arm64 gives them.
uint64_t arm_bits(uint64_t hwcap, uint64_t hwcap2) {
  uint64_t have = 0;
  const auto add = [&have](bool present, uint64_t name) { if (present) have |= name; };
  add(bit(hwcap, 1), kNEON);
  add(bit(hwcap, 9) && bit(hwcap, 10), kARM_FP16);
  add(bit(hwcap, 20), kARM_DOTPROD);
  add(bit(hwcap, 22), kSVE);
  add(bit(hwcap2, 1), kSVE2);
  add(bit(hwcap2, 13), kARM_I8MM);
  add(bit(hwcap2, 14), kARM_BF16);
  add(bit(hwcap2, 23), kSME);
  return have;
}

CpuBits host_cpu_bits() {
#if defined(__x86_64__)
  return {x86_bits(read_leaves()), 0, 0, 0};
#elif defined(__aarch64__)
  return {0, arm_bits(getauxval(AT_HWCAP), getauxval(AT_HWCAP2)), 0, 0};
#else
  return {};
#endif
}

CpuBits missing_bits(const CpuBits& need, const CpuBits& have) {
  CpuBits missing{};
  for (size_t w = 0; w < need.size(); ++w) missing[w] = need[w] & ~have[w];
  return missing;
}

std::string cpu_bits_text(const CpuBits& bits) {
  std::string text;
  for (uint32_t word = 0; word < bits.size(); ++word) {
    for (uint32_t number = 0; number < 64; ++number) {
      if (!bit(bits[word], number)) continue;
      const char* name = name_of(word, number);
      if (!text.empty()) text += ' ';
      text += name != nullptr ? name : "word" + std::to_string(word) + ".bit" + std::to_string(number);
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace tenon::loader
