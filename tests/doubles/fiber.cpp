#include "tests/doubles/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the doubles switch stacks on x86-64 and AArch64 only"
#endif

namespace tenon_double {

// The registers that a function must keep; the return address is the place to go on.
#if defined(__x86_64__)
asm(R"(
.text
.globl tenon_double_switch
.hidden tenon_double_switch
.type tenon_double_switch,@function
tenon_double_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_double_switch,.-tenon_double_switch
)");

StackPointer prepare(char* top, void (*entry)()) {
  auto** at = reinterpret_cast<void**>(top);
  *--at = nullptr;  // the address that entry() would return to: keeps the stack aligned as a call leaves it
  *--at = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--at = nullptr;
  return at;
}
#else
asm(R"(
.text
.globl tenon_double_switch
.hidden tenon_double_switch
.type tenon_double_switch,%function
tenon_double_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tenon_double_switch,.-tenon_double_switch
)");

StackPointer prepare(char* top, void (*entry)()) {
  auto** at = reinterpret_cast<void**>(top - 160);
  for (int saved = 0; saved < 20; ++saved) at[saved] = nullptr;
  at[11] = reinterpret_cast<void*>(entry);  // x30
  return at;
}
#endif

char* Stacks::take() {
  if (free_.empty()) {
    constexpr size_t kPage = 4096, kCount = 64;
    void* block = mmap(nullptr, kCount * (kBytes + kPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) std::abort();
    for (size_t i = 0; i < kCount; ++i) {
      char* low = static_cast<char*>(block) + i * (kBytes + kPage);
      mprotect(low, kPage, PROT_NONE);
      free_.push_back(low + kPage + kBytes);
    }
  }
  char* top = free_.back();
  free_.pop_back();
  return top;
}

}  // namespace tenon_double
