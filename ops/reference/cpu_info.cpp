// ops/reference/cpu_info.cpp
#include "ops/reference/cpu_info.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tenon::reference {
namespace {

void set_if(uint64_t* out, bool condition, int bit) {
  if (condition) out[bit / 64] |= uint64_t{1} << (bit % 64);
}

#if defined(__x86_64__)
struct Regs { uint32_t a = 0, b = 0, c = 0, d = 0; };
Regs leaf(uint32_t number, uint32_t sub = 0) {
  Regs r;
  if (__get_cpuid_count(number, sub, &r.a, &r.b, &r.c, &r.d) == 0) return Regs{};
  return r;
}
// Which register files the operating system saves; 0 where it says nothing.
uint64_t saved_state(const Regs& one) {
  if ((one.c >> 27 & 1) == 0) return 0;  // OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}
void x86_bits(uint64_t* out) {
  const Regs one = leaf(1), seven = leaf(7), seven1 = leaf(7, 1), extended = leaf(0x80000001);
  const uint64_t xcr0 = saved_state(one);
  const bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xE6) == 0xE6, tile = (xcr0 & 0x60000) == 0x60000;
  struct Bit { uint32_t word; int position; bool state; int isa; };
  const Bit bits[] = {
      {one.d, 26, true, TN_ISA_SSE2}, {one.c, 0, true, TN_ISA_SSE3}, {one.c, 9, true, TN_ISA_SSSE3}, {one.c, 19, true, TN_ISA_SSE41},
      {one.c, 20, true, TN_ISA_SSE42}, {one.c, 23, true, TN_ISA_POPCNT}, {one.c, 25, true, TN_ISA_AES}, {one.c, 1, true, TN_ISA_PCLMUL},
      {one.c, 28, ymm, TN_ISA_AVX}, {one.c, 29, ymm, TN_ISA_F16C}, {one.c, 12, ymm, TN_ISA_FMA}, {seven.b, 5, ymm, TN_ISA_AVX2},
      {seven.b, 3, true, TN_ISA_BMI1}, {seven.b, 8, true, TN_ISA_BMI2}, {extended.c, 5, true, TN_ISA_LZCNT}, {one.c, 22, true, TN_ISA_MOVBE},
      {seven.b, 16, zmm, TN_ISA_AVX512F}, {seven.b, 28, zmm, TN_ISA_AVX512CD}, {seven.b, 17, zmm, TN_ISA_AVX512DQ},
      {seven.b, 30, zmm, TN_ISA_AVX512BW}, {seven.b, 31, zmm, TN_ISA_AVX512VL}, {seven.b, 21, zmm, TN_ISA_AVX512IFMA},
      {seven.c, 1, zmm, TN_ISA_AVX512VBMI}, {seven.c, 6, zmm, TN_ISA_AVX512VBMI2}, {seven.c, 11, zmm, TN_ISA_AVX512VNNI},
      {seven.c, 12, zmm, TN_ISA_AVX512BITALG}, {seven.c, 14, zmm, TN_ISA_AVX512VPOPCNTDQ}, {seven1.a, 5, zmm, TN_ISA_AVX512BF16},
      {seven.d, 23, zmm, TN_ISA_AVX512FP16}, {seven.c, 8, true, TN_ISA_GFNI}, {seven.c, 9, ymm, TN_ISA_VAES},
      {seven.c, 10, ymm, TN_ISA_VPCLMULQDQ}, {seven1.a, 4, ymm, TN_ISA_AVXVNNI}, {seven.d, 24, tile, TN_ISA_AMX_TILE},
      {seven.d, 25, tile, TN_ISA_AMX_INT8}, {seven.d, 22, tile, TN_ISA_AMX_BF16}, {seven1.a, 21, tile, TN_ISA_AMX_FP16},
  };
  for (const Bit& b : bits) set_if(out, b.state && (b.word >> b.position & 1) != 0, b.isa);
}
#endif

const char* architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

uint64_t vector_bytes(const uint64_t* isa) {
  const auto has = [&](int bit) { return (isa[bit / 64] >> (bit % 64) & 1) != 0; };
  return has(TN_ISA_AVX512F) ? 64 : has(TN_ISA_AVX) ? 32 : 16;
}

}  // namespace

void isa_bits(uint64_t out[4]) {
  std::memset(out, 0, 4 * sizeof *out);
#if defined(__x86_64__)
  x86_bits(out);
#elif defined(__aarch64__)
  const unsigned long have = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
  set_if(out, (have >> 1 & 1) != 0, TN_ISA_NEON);      // HWCAP_ASIMD
  set_if(out, (have >> 10 & 1) != 0, TN_ISA_FP16);     // HWCAP_ASIMDHP
  set_if(out, (have >> 20 & 1) != 0, TN_ISA_DOTPROD);  // HWCAP_ASIMDDP
  set_if(out, (have >> 22 & 1) != 0, TN_ISA_SVE);
  set_if(out, (more >> 1 & 1) != 0, TN_ISA_SVE2);
  set_if(out, (more >> 13 & 1) != 0, TN_ISA_I8MM);
  set_if(out, (more >> 14 & 1) != 0, TN_ISA_BF16);
  set_if(out, (more >> 23 & 1) != 0, TN_ISA_SME);
#else
  (void)set_if;
#endif
}

void cpu_name(char* out, uint32_t bytes) {
  char name[49] = {};
#if defined(__x86_64__)
  for (uint32_t i = 0; i < 3; ++i) {
    const Regs r = leaf(0x80000002 + i);
    std::memcpy(name + 16 * i, &r, 16);
  }
#endif
  const char* start = name;
  while (*start == ' ') ++start;
  std::snprintf(out, bytes, "%s", *start != 0 ? start : architecture());
}

uint32_t cpu_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? static_cast<uint32_t>(n) : 1;
}

uint64_t memory_total_bytes() {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : 0;
}
uint64_t memory_free_bytes() {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? (uint64_t{info.freeram} + info.bufferram) * info.mem_unit : 0;
}

uint32_t cpu_caps(tn_cap* out, uint32_t cap) {
  uint32_t n = 0;
  const auto put = [&](uint32_t key, uint64_t value) {
    if (value == 0) return;  // unknown: left out
    if (n < cap) {
      out[n] = tn_cap{};
      out[n].key = key, out[n].type = TN_CAP_U64, out[n].provenance = TN_FROM_DRIVER;
      out[n].v.u = value;
    }
    ++n;
  };
  const auto system = [](int name) { const long v = sysconf(name); return v > 0 ? static_cast<uint64_t>(v) : 0; };
  uint64_t isa[4];
  isa_bits(isa);
  put(TN_CAPKEY_CORES, cpu_cores());
  for (uint32_t i = 0; i < 4; ++i) put(TN_CAPKEY_ISA_0 + i, isa[i]);
  put(TN_CAPKEY_PAGE_BYTES, system(_SC_PAGESIZE));
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  put(TN_CAPKEY_CACHE_L1D_BYTES, system(_SC_LEVEL1_DCACHE_SIZE));
  put(TN_CAPKEY_CACHE_L2_BYTES, system(_SC_LEVEL2_CACHE_SIZE));
  put(TN_CAPKEY_CACHE_L3_BYTES, system(_SC_LEVEL3_CACHE_SIZE));
  put(TN_CAPKEY_CACHE_LINE_BYTES, system(_SC_LEVEL1_DCACHE_LINESIZE));
#endif
  put(TN_CAPKEY_HUGE_PAGE_BYTES, 2u << 20);
  put(TN_CAPKEY_VECTOR_BYTES, vector_bytes(isa));
  if (n < cap) {
    out[n] = tn_cap{};
    out[n].key = TN_CAPKEY_ARCHITECTURE, out[n].type = TN_CAP_TEXT, out[n].provenance = TN_FROM_DRIVER;
    out[n].v.s = architecture();
  }
  return n + 1;
}

}  // namespace tenon::reference
