#include "tests/doubles/block.h"

#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "tests/doubles/fiber.h"
#include "tests/doubles/memory.h"

namespace tenon_double {
namespace {

enum class State : uint8_t { NotStarted, Ready, AtBarrier, AtExchange, Finished };

struct Thread {
  TenonDevice device{};
  StackPointer at = nullptr;
  char* stack = nullptr;
  State state = State::NotStarted;
  unsigned long long shown = 0;
};

// Values of one meeting of a warp. Two sets take turns: a lane that is already at the next meeting does not overwrite what
// others still read.
struct Meeting { unsigned long long values[2][64]; unsigned long long present[2]; unsigned turn = 0; };

// The running launch. Its members are only touched by the thread that holds the mutex.
struct Machine {
  std::mutex mutex;
  const Launch* launch = nullptr;
  Stacks stacks;
  std::vector<Thread> threads;
  std::vector<Meeting> warps;
  StackPointer scheduler = nullptr;
  Thread* running = nullptr;
  int fault = 0;
  int signal = 0;  // that ended a thread of the block, with the address that it accessed
  uint64_t address = 0;
};
Machine& machine() {
  static Machine m;
  return m;
}
thread_local bool in_kernel = false;

void leave(State state) {
  Machine& m = machine();
  m.running->state = state;
  tenon_double_switch(&m.running->at, m.scheduler);
}

void barrier() { leave(State::AtBarrier); }

unsigned long long exchange(unsigned long long mine, const unsigned long long** values) {
  Machine& m = machine();
  Thread& self = *m.running;
  self.shown = mine;
  const size_t index = static_cast<size_t>(&self - m.threads.data());
  leave(State::AtExchange);
  const Meeting& meeting = m.warps[index / m.launch->warp];
  *values = meeting.values[meeting.turn];
  return meeting.present[meeting.turn];
}

void thread_entry() {
  Machine& m = machine();
  m.launch->kernel->call(m.launch->arguments);
  leave(State::Finished);
}

std::string place(const TenonDevice& d) {
  char text[128];
  std::snprintf(text, sizeof text, "block (%u,%u,%u) thread (%u,%u,%u)", d.block.x, d.block.y, d.block.z, d.thread.x, d.thread.y, d.thread.z);
  return text;
}

[[noreturn]] void end_thread() {
  leave(State::Finished);
  __builtin_unreachable();
}

// Where the interrupted thread goes when the handler has returned: into a function, as if called below the stack's used part.
void go_on_at(ucontext_t* context, void (*function)()) {
#if defined(__x86_64__)
  auto& registers = context->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
  registers[REG_RSP] = (registers[REG_RSP] - 256) / 16 * 16 - 8;
#else
  context->uc_mcontext.pc = reinterpret_cast<uintptr_t>(function);
  context->uc_mcontext.sp = (context->uc_mcontext.sp - 256) / 16 * 16;
#endif
}

// A fault in a kernel ends the launch, as on a device, and not the program. Others go where they went before.
struct sigaction before[4];
const int kSignals[4] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void on_fault(int number, siginfo_t* info, void* context) {
  if (in_kernel) {
    Machine& m = machine();
    m.signal = number;
    m.address = reinterpret_cast<uint64_t>(info->si_addr);
    return go_on_at(static_cast<ucontext_t*>(context), end_thread);
  }
  for (int i = 0; i < 4; ++i) {
    if (kSignals[i] != number) continue;
    if ((before[i].sa_flags & SA_SIGINFO) != 0 && before[i].sa_sigaction != nullptr) return before[i].sa_sigaction(number, info, context);
    if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) return before[i].sa_handler(number);
    sigaction(number, &before[i], nullptr);  // the instruction faults again, now without us
  }
}

void watch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &before[i]);
}

void report_fault(const Thread& thread) {
  Machine& m = machine();
  const bool memory = m.signal == SIGSEGV || m.signal == SIGBUS;
  std::fprintf(stderr, "[double] kernel %s, %s: %s\n", m.launch->name.c_str(), place(thread.device).c_str(),
               memory ? ("bad access: " + describe(m.address)).c_str() : m.signal == SIGFPE ? "integer division by zero" : "trap");
  m.fault = memory ? 700 : 715;
  m.signal = 0;
}

void resume(Thread* thread) {
  Machine& m = machine();
  if (thread->state == State::NotStarted) {
    thread->stack = m.stacks.take();
    thread->at = prepare(thread->stack, thread_entry);
  }
  m.running = thread;
  *m.launch->kernel->device = &thread->device;
  in_kernel = true;
  tenon_double_switch(&m.scheduler, thread->at);
  in_kernel = false;
  if (m.signal != 0) report_fault(*thread);
  if (thread->state == State::Finished) m.stacks.give(thread->stack), thread->stack = nullptr;
}

bool can_run(State s) { return s == State::NotStarted || s == State::Ready; }

// Lanes of a warp that all wait for each other go on; true when some warp did.
bool let_warps_meet() {
  Machine& m = machine();
  bool any = false;
  for (size_t w = 0; w < m.warps.size(); ++w) {
    const size_t first = w * m.launch->warp, last = std::min<size_t>(first + m.launch->warp, m.threads.size());
    uint32_t waiting = 0, blocked = 0;
    for (size_t i = first; i < last; ++i) waiting += m.threads[i].state == State::AtExchange, blocked += m.threads[i].state == State::AtBarrier;
    if (waiting == 0) continue;
    if (blocked != 0) {
      std::fprintf(stderr, "[double] kernel %s, %s: %u lanes exchange values while %u wait at a barrier\n", m.launch->name.c_str(), place(m.threads[first].device).c_str(), waiting, blocked);
      m.fault = 719;
      return false;
    }
    Meeting& meeting = m.warps[w];
    meeting.turn ^= 1;
    meeting.present[meeting.turn] = 0;
    for (size_t i = first; i < last; ++i) {
      Thread& t = m.threads[i];
      // What a lane that is gone would show is nobody's business.
      meeting.values[meeting.turn][i - first] = t.state == State::AtExchange ? t.shown : 0xFFFFFFFFFFFFFFFFull;
      if (t.state != State::AtExchange) continue;
      meeting.present[meeting.turn] |= 1ull << (i - first);
      t.state = State::Ready;
    }
    any = true;
  }
  return any;
}

// Until no thread can run: all are finished or at the barrier.
void run_to_barrier() {
  Machine& m = machine();
  const size_t n = m.threads.size();
  do {
    for (size_t q = 0; q < n && m.fault == 0; ++q) {
      Thread& t = m.threads[m.launch->reverse ? n - 1 - q : q];
      if (can_run(t.state)) resume(&t);
    }
  } while (m.fault == 0 && let_warps_meet());
}

bool pass_barrier() {
  Machine& m = machine();
  uint32_t waiting = 0, finished = 0;
  for (const Thread& t : m.threads) waiting += t.state == State::AtBarrier, finished += t.state == State::Finished;
  if (waiting != 0 && finished != 0) {
    std::fprintf(stderr, "[double] kernel %s, block (%u,%u,%u): %u threads wait at a barrier that %u left out\n", m.launch->name.c_str(), m.threads[0].device.block.x,
                 m.threads[0].device.block.y, m.threads[0].device.block.z, waiting, finished);
    m.fault = 719;
  }
  if (waiting == 0 || m.fault != 0) return false;
  for (Thread& t : m.threads) t.state = State::Ready;
  return true;
}

void run_block(TenonIndex block) {
  Machine& m = machine();
  const Launch& l = *m.launch;
  // Local memory holds nothing to rely on when a block begins.
  std::memset(l.kernel->shared_begin, 0xFF, static_cast<size_t>(l.kernel->shared_end - l.kernel->shared_begin));
  for (size_t i = 0; i < m.threads.size(); ++i) {
    const auto linear = static_cast<unsigned>(i);
    Thread& t = m.threads[i];
    t.state = State::NotStarted;
    t.device = {{linear % l.block.x, linear / l.block.x % l.block.y, linear / (l.block.x * l.block.y)}, block, l.block, l.grid, linear % l.warp, l.warp, barrier, exchange};
  }
  do run_to_barrier();
  while (pass_barrier());
  for (Thread& t : m.threads)
    if (t.stack != nullptr) m.stacks.give(t.stack), t.stack = nullptr;  // left in the middle by a fault
}

}  // namespace

int run(const Launch& launch) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  static const bool watching = (watch_faults(), true);
  static_cast<void>(watching);
  m.launch = &launch;
  m.fault = 0;
  const size_t n = size_t{launch.block.x} * launch.block.y * launch.block.z;
  m.threads.resize(n);
  m.warps.assign((n + launch.warp - 1) / launch.warp, Meeting{});
  for (unsigned z = 0; z < launch.grid.z && m.fault == 0; ++z)
    for (unsigned y = 0; y < launch.grid.y && m.fault == 0; ++y)
      for (unsigned x = 0; x < launch.grid.x && m.fault == 0; ++x) run_block({x, y, z});
  std::string where;
  if (m.fault == 0 && !borders_whole(&where)) {
    std::fprintf(stderr, "[double] kernel %s: %s\n", launch.name.c_str(), where.c_str());
    m.fault = 700;
  }
  return m.fault;
}

}  // namespace tenon_double
