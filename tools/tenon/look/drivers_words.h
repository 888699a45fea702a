// tools/tenon/look/drivers_words.h - small texts that the explanations share.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tenon::cli {

inline bool holds(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }
inline bool starts(const std::string& text, const std::string& word) { return text.rfind(word, 0) == 0; }

inline std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : between) + w;
  return text;
}

inline std::string hex4(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%04x", number);
  return text;
}

inline std::string mode_text(mode_t mode) {  // "0660"
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode));
  return text;
}

}  // namespace tenon::cli
