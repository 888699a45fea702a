#include "backends/gpu_common/cu_like/errors.h"

#include <algorithm>

namespace tenon::gpu::cu_like {

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
  return report(diag, status, id, "%s%s%s", head.c_str(), cut.c_str(), tail.c_str());
}

}  // namespace tenon::gpu::cu_like
