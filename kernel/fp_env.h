// kernel/fp_env.h - keeping a thread's floating-point environment as it was.
//
//   { FpEnvGuard keep; dlopen(...); }   // whatever a foreign constructor did to rounding or denormals is undone
//
// A library linked with -ffast-math switches flush-to-zero on for the thread that loads it; unrelated code then sees
// 1e-323 == 0. So every call into code that may do such a thing is made inside a guard.
#pragma once
#include <cfenv>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::kernel {

class FpEnvGuard {
 public:
  FpEnvGuard() { std::fegetenv(&saved_); }
  ~FpEnvGuard() { std::fesetenv(&saved_); }
  FpEnvGuard(const FpEnvGuard&) = delete;
  FpEnvGuard& operator=(const FpEnvGuard&) = delete;

 private:
  std::fenv_t saved_;
};

// The same at the cost of two reads: for calls that are made for every op. What it does not see is a change of the x87 control
// word alone, which no C function makes.
class FpModeGuard {
 public:
  FpModeGuard() : saved_(mode()) {}
  ~FpModeGuard() {
    if (__builtin_expect(mode() != saved_, 0)) restore();
  }
  FpModeGuard(const FpModeGuard&) = delete;
  FpModeGuard& operator=(const FpModeGuard&) = delete;

 private:
#if defined(__x86_64__)
  static uint64_t mode() { return _mm_getcsr() & ~0x3fu; }  // 0x3f: the exception flags, which are no setting
#elif defined(__aarch64__)
  static uint64_t mode() {
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
#else
  static uint64_t mode() { return static_cast<uint64_t>(std::fegetround()); }
#endif
  void restore() const;
  uint64_t saved_;
};

// A function of a plugin's, called so that the thread keeps its modes: call_plugin(table->alloc, device, space, ...).
template <class Result, class... Parameters, class... Arguments>
Result call_plugin(Result (*function)(Parameters...), Arguments&&... arguments) {
  const FpModeGuard keep;
  return function(std::forward<Arguments>(arguments)...);
}

// Puts the calling thread into the default environment: nearest even, denormals kept, nothing trapped. A few ns when it
// is there already.
void default_fp_env();

}  // namespace tenon::kernel
