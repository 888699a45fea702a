// ops/gpu/dialect/library.cpp - picks library functions by name.
#include "ops/gpu/dialect/library.h"

#include <cctype>
#include <string_view>
#include <vector>

#include "ops/gpu/dialect/texts.h"

namespace tenon::gpu {
namespace {

// "//@ name" opens a function; it may call only functions above it.
struct Function { std::string_view name, text; };

std::vector<Function> split() {
  std::vector<Function> all;
  for (std::string_view text : {std::string_view(kText_convert), std::string_view(kText_integer), std::string_view(kText_math_f32),
                                std::string_view(kText_math_f64)}) {
    for (size_t at = text.find("//@ "); at != std::string_view::npos;) {
      const size_t line = text.find('\n', at), next = text.find("//@ ", line);
      all.push_back({text.substr(at + 4, line - at - 4), text.substr(line + 1, next == std::string_view::npos ? next : next - line - 1)});
      at = next;
    }
  }
  return all;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = split();
  return all;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool names(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::string library_for(const std::string& text) {
  const std::vector<Function>& all = functions();
  std::vector<char> used(all.size(), 0);
  for (size_t i = all.size(); i-- > 0;) {
    bool wanted = names(text, all[i].name);
    for (size_t k = i + 1; k < all.size() && !wanted; ++k) wanted = used[k] != 0 && names(all[k].text, all[i].name);
    used[i] = wanted;
  }
  std::string out;
  for (size_t i = 0; i < all.size(); ++i)
    if (used[i] != 0) out += all[i].text;
  return out;
}

std::string whole_library() {
  std::string out;
  for (const Function& f : functions()) out += f.text;
  return out;
}

std::string without_f64_suffix(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool suffix = text[i] == 'l' && i + 1 < text.size() && text[i + 1] == 'f' && i > 0 &&
                        (std::isdigit(static_cast<unsigned char>(text[i - 1])) != 0 || text[i - 1] == '.') &&
                        (i + 2 == text.size() || !is_word(text[i + 2]));
    if (suffix) ++i;
    else out += text[i];
  }
  return out;
}

}  // namespace tenon::gpu
