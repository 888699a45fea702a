// tests/doubles/fiber.h - a stack that can be left and entered again: one for each thread of a block.
#pragma once
#include <cstddef>
#include <vector>

namespace tenon_double {

using StackPointer = void*;
// Leaves the running stack, whose place is stored in *from, and goes on where `to` was left.
extern "C" void tenon_double_switch(StackPointer* from, StackPointer to);
// A stack that begins by calling entry(), which never returns.
StackPointer prepare(char* top, void (*entry)());

// Stacks of kStackBytes with a page below each that faults. Threads: one at a time.
class Stacks {
 public:
  static constexpr size_t kBytes = 128 * 1024;
  char* take();  // the top of a free stack
  void give(char* top) { free_.push_back(top); }

 private:
  std::vector<char*> free_;
};

}  // namespace tenon_double
