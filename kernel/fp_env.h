// kernel/fp_env.h - keeping a thread's floating-point environment as it was.
//
//   { FpEnvGuard keep; dlopen(...); }   // whatever a foreign constructor did to rounding or denormals is undone
//
// A library linked with -ffast-math switches flush-to-zero on for the thread that loads it; unrelated code then sees
// 1e-323 == 0. So every call into code that may do such a thing is made inside a guard.
#pragma once
#include <cfenv>

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

// Puts the calling thread into the default environment: nearest even, denormals kept, nothing trapped. A few ns when it
// is there already.
void default_fp_env();

}  // namespace tenon::kernel
