#include <tenon/io/status.hpp>

#include <cstdio>

namespace tenon::io {
namespace {

const char* family_name(uint32_t family) {
  switch (family) {
    case kDataFamily: return "DATA";
    case kFileFamily: return "FILE";
    case kConfFamily: return "CONF";
    default: return "OTHER";
  }
}

}  // namespace

std::string Status::id_text() const {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "TN-%s-%03u", family_name(id >> 16), id & 0xFFFFu);
  return buffer;
}

std::string Status::text() const {
  if (ok()) return "ok";
  std::string out = "error[" + id_text() + "]: " + what;
  if (!where.empty()) out += "\n  where: " + where;
  if (!why.empty()) out += "\n  why:   " + why;
  if (!fix.empty()) out += "\n  try:   " + fix;
  return out + "\n";
}

std::string quote(const std::string& raw, size_t limit) {
  std::string out = "\"";
  for (size_t i = 0; i < raw.size() && i < limit; ++i) {
    const unsigned char c = static_cast<unsigned char>(raw[i]);
    if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
      out += raw[i];
    } else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", c);
      out += hex;
    }
  }
  return out + (raw.size() > limit ? "\"..." : "\"");
}

}  // namespace tenon::io
