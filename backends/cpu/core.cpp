#include "backends/cpu/core.h"

#include <cstdarg>
#include <cstdio>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {
namespace {

void write_diag(tn_diag* diag, tn_status status, uint32_t id, const char* format, va_list args) {
  if (!diag) return;
  std::memset(diag, 0, sizeof *diag);
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id;
  const int len = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  diag->len = len < 0 ? 0 : len < int(sizeof diag->msg) ? uint32_t(len) : uint32_t(sizeof diag->msg - 1);
}

#if defined(__x86_64__)
uint64_t enabled_state() {  // XCR0: which registers the OS saves
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  uint32_t lo, hi;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return uint64_t{hi} << 32 | lo;
}
#endif

}  // namespace

tn_status decline(tn_support* out, tn_diag* diag, uint32_t reason, const char* format, ...) {
  if (out) out->reason = reason;
  va_list args;
  va_start(args, format);
  write_diag(diag, TN_E_UNSUPPORTED, error_id(6, 60), format, args);
  va_end(args);
  return TN_E_UNSUPPORTED;
}

tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_diag(diag, status, id, format, args);
  va_end(args);
  return status;
}

Isa detect_isa(const char* cap) {
  Isa best = Isa::Baseline;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes"))
    best = Isa::Avx2;
  if (best == Isa::Avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    best = Isa::Avx512;
#endif
  if (cap && std::strcmp(cap, "baseline") == 0) return Isa::Baseline;
  if (cap && std::strcmp(cap, "avx2") == 0 && best > Isa::Avx2) return Isa::Avx2;
  return best;
}

bool detect_amx([[maybe_unused]] Isa isa) {
#if defined(__x86_64__) && defined(__linux__)
  if (isa != Isa::Avx512) return false;
  uint32_t a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24 & 1) && (d >> 22 & 1) && (d >> 25 & 1);  // AMX-TILE, AMX-BF16, AMX-INT8
  uint32_t a1, b1, c1, d1;
  if (!tiles || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) || !(a1 >> 5 & 1)) return false;  // AVX512-BF16
  constexpr uint64_t kTileState = 3u << 17;
  if ((enabled_state() & kTileState) != kTileState) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM: the kernel grants tiles on request only
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace tenon::cpu
