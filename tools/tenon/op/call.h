// tools/tenon/op/call.h - a call as it is typed, and as the core's functions want it.
#pragma once
#include <string>
#include <tenon/runtime.h>
#include <vector>

#include "tools/tenon/op/spec.h"

namespace tenon::cli {

class Args;

struct Question {
  std::vector<std::string> words, attrs;  // OP, SPECS and key=value; --attr
  int64_t push = -1;  // -1: as many as the op's own calls push
};
void declare_options(Args& args, Question* question);  // --attr, --push; the words are the command's own

struct Call {
  tn_op_entry op{};
  std::vector<tn_type> operands;
  std::vector<uint32_t> types;
  AttrSet attrs;
  tn_spec spec{};
};
// Throws TN-CLI-003 to 006, and what the core says. flags: TN_CALL_*.
Call read_call(tn_runtime* runtime, uint32_t device, uint32_t flags, const Question& question);
std::string call_text(tn_runtime* runtime, const Call& call);  // "matmul f32[2,3] f32[3,4] -> f32[2,4]"; throws what the core says

}  // namespace tenon::cli
