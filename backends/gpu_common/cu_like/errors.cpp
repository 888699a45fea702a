#include "backends/gpu_common/cu_like/errors.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tenon::gpu::cu_like {

tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) {
  if (diag == nullptr) return status;
  *diag = tn_diag{};
  diag->size = sizeof *diag;
  diag->status = status;
  diag->id = id;
  va_list args;
  va_start(args, format);
  const int n = std::vsnprintf(diag->msg, sizeof diag->msg, format, args);
  va_end(args);
  const int last = static_cast<int>(sizeof diag->msg) - 1;
  diag->len = static_cast<uint32_t>(n < 0 ? 0 : n > last ? last : n);
  return status;
}

bool is_sticky(int code) {
  switch (code) {
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 220:  // uncorrectable link error
    case 226:  // contained error
    case 700:  // illegal address
    case 702:  // time-out of a kernel
    case 709:  // context destroyed
    case 710:  // device-side assertion
      return true;
    default: return code >= 714 && code <= 719;  // stack, instruction, alignment, address space, pc, launch failed
  }
}

tn_status fail_why(tn_diag* diag, tn_status status, uint32_t id, const std::string& what, const std::string& why, const char* advice) {
  const std::string tail = std::string("\ntry: ") + advice, head = what + "\nwhy: ";
  const size_t all = sizeof(tn_diag::msg) - 2, rest = head.size() + tail.size();
  std::string cut = why.substr(0, all - std::min(all, rest));
  // Not in the middle of a character of several bytes.
  if (cut.size() < why.size())
    while (!cut.empty() && (static_cast<unsigned char>(why[cut.size()]) & 0xC0) == 0x80) cut.pop_back();
  std::replace(cut.begin(), cut.end(), '\n', ' ');
  while (!cut.empty() && cut.back() == ' ') cut.pop_back();
  return fail(diag, status, id, "%s%s%s", head.c_str(), cut.c_str(), tail.c_str());
}

}  // namespace tenon::gpu::cu_like
