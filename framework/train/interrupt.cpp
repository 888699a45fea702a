// Signals as a flag.
#include <tenon/train/interrupt.hpp>

namespace tenon::train {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);  // what a signal handler may touch

// The second time nobody is patient any more: the default action takes over.
void on_signal(int number) {
  if (received.exchange(number) == 0) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

const std::atomic<int>* Interrupt::flag() const { return &received; }

}  // namespace tenon::train
