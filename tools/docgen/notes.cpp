// Comments of ops.def, which are the only place where operands are named.
#include <regex>

#include "tools/docgen/op_doc.h"

namespace tenon::docgen {
namespace {

std::string one_line(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\s*\\?\n\s*\*?\s*)"), " ");
  text = std::regex_replace(text, std::regex(R"(\s+)"), " ");
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(" .");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// "X(NAME, name, id, in, out, family) /* note */": the note belongs to the line's op. A comment that begins its own line
// is about what follows.
void read_table(const std::string& text, Notes* notes) {
  static const std::regex line(R"(X\((\w+), (\w+), (\d+), (\w+), (\w+), (\w+)\)[ \t]*(?:/\*([^*]*)\*/)?)");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it) {
    notes->family[(*it)[2]] = (*it)[6];
    if ((*it)[7].matched) notes->operands[(*it)[2]] = one_line((*it)[7]);
  }
}

// "(c) *  pointwise  in: ..." up to the next such line.
void read_primitives(const std::string& head, Notes* notes) {
  static const std::regex start(R"(\n \*  (pointwise|reduce|matmul|copy|gather|scatter)  +)");
  std::vector<std::pair<std::string, std::pair<size_t, size_t>>> found;
  for (auto it = std::sregex_iterator(head.begin(), head.end(), start); it != std::sregex_iterator(); ++it)
    found.push_back({(*it)[1], {static_cast<size_t>(it->position()), static_cast<size_t>(it->position() + it->length())}});
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t begin = found[i].second.second, end = i + 1 < found.size() ? found[i + 1].second.first : head.size();
    notes->operands[found[i].first] = one_line(head.substr(begin, end - begin));
  }
}

void read_general(const std::string& head, Notes* notes) {
  const size_t begin = head.find("Rules that hold for all ops"), end = head.find("The six primitives");
  if (begin == std::string::npos || end == std::string::npos) return;
  static const std::regex item(R"(\n \*  - )");
  const std::string part = head.substr(begin, end - begin);
  std::vector<size_t> starts;
  for (auto it = std::sregex_iterator(part.begin(), part.end(), item); it != std::sregex_iterator(); ++it) starts.push_back(static_cast<size_t>(it->position()));
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t stop = i + 1 < starts.size() ? starts[i + 1] : part.find("\n *\n", starts[i]);
    notes->general += "- " + one_line(part.substr(starts[i] + 6, stop - starts[i] - 6)) + ".\n";
  }
}

}  // namespace

Notes read_notes(const std::string& text) {
  Notes notes;
  const std::string head = text.substr(0, text.find("#define"));
  read_primitives(head.substr(0, head.find("*/")), &notes);
  read_general(head, &notes);
  read_table(text, &notes);
  return notes;
}

}  // namespace tenon::docgen
