// tenon/train/interrupt.hpp - SIGINT (Ctrl-C) and SIGTERM as a flag that a trainer looks at between steps.
//
//   train::Interrupt interrupt;
//   train::Trainer trainer(parts, {.stop = interrupt.flag()});     // fit() saves and returns, .stopped_by = SIGINT
//
// A second signal ends the process at once, as without this object. At most one lives at a time; its end puts the old
// handlers back.
#pragma once
#include <atomic>
#include <csignal>

namespace tenon::train {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  const std::atomic<int>* flag() const;  // 0, or the number of the signal
  int signal() const { return flag()->load(); }

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace tenon::train
