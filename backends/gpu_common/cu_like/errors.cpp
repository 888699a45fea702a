#include "backends/gpu_common/cu_like/errors.h"

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

std::string first_lines(const std::string& text, size_t most) {
  std::string cut = text.substr(0, most);
  if (text.size() > most)
    if (const size_t end = cut.rfind('\n'); end != std::string::npos) cut.resize(end);
  while (!cut.empty() && (cut.back() == '\n' || cut.back() == ' ')) cut.pop_back();
  for (char& c : cut)
    if (c == '\n') c = ' ';
  return cut;
}

}  // namespace tenon::gpu::cu_like
