// `tenon explain ID`: the page of an error id.
#include <algorithm>
#include <cctype>
#include <memory>
#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"

namespace tenon::cli {
namespace {

constexpr const char* kPages[] = {
#include "error_pages.inc"
};

struct Section {
  std::string id, title, body;
};

// "## TN-XXX-001 title" up to the next such line.
std::vector<Section> sections() {
  std::vector<Section> all;
  for (const std::string page : kPages) {
    for (size_t at = page.find("\n## TN-"); at != std::string::npos;) {
      const size_t next = page.find("\n## ", at + 1), head_end = page.find('\n', at + 1);
      const std::string head = page.substr(at + 4, head_end - at - 4);
      const size_t space = std::min(head.find(' '), head.size());
      std::string body = head_end == std::string::npos ? "" : page.substr(head_end + 1, next == std::string::npos ? next : next - head_end - 1);
      while (!body.empty() && body.back() == '\n') body.pop_back();
      all.push_back({head.substr(0, space), space < head.size() ? head.substr(space + 1) : "", body});
      at = next;
    }
  }
  std::sort(all.begin(), all.end(), [](const Section& a, const Section& b) { return a.id < b.id; });
  return all;
}

// "tn-shape-50", "shape-050" and "TN-SHAPE-050" are one.
std::string normal_id(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (text.rfind("TN-", 0) != 0) text = "TN-" + text;
  const size_t dash = text.rfind('-');
  const size_t digits = text.size() - dash - 1;
  if (digits > 0 && digits < 3 && std::all_of(text.begin() + static_cast<long>(dash) + 1, text.end(), [](unsigned char c) { return std::isdigit(c); }))
    text.insert(dash + 1, 3 - digits, '0');
  return text;
}

// Of the same family by number if there is one, else by spelling.
std::string nearest_id(const std::string& id, const std::vector<Section>& all) {
  const std::string family = id.substr(0, id.rfind('-') + 1);
  const int number = std::atoi(id.c_str() + family.size());
  std::string best;
  int distance = 0;
  for (const Section& s : all) {
    if (s.id.rfind(family, 0) != 0) continue;
    const int d = std::abs(std::atoi(s.id.c_str() + family.size()) - number);
    if (best.empty() || d < distance) best = s.id, distance = d;
  }
  if (!best.empty()) return best;
  std::vector<std::string> ids;
  for (const Section& s : all) ids.push_back(s.id);
  return nearest_name(id, ids.data(), ids.size());
}

void print(const Context& context, const Section& s) {
  if (context.json) return context.line(JsonRow().add("id", s.id).add("title", s.title).add("text", s.body).text());
  context.line(context.bold(s.id) + "  " + s.title + "\n");
  context.line(s.body);
}

int run(const Context& context, const std::string& word) {
  const std::vector<Section> all = sections();
  if (word.empty()) {
    std::vector<std::vector<std::string>> table{{"ID", "WHAT"}};
    for (const Section& s : all) {
      if (context.json) context.line(JsonRow().add("id", s.id).add("title", s.title).text());
      table.push_back({s.id, s.title});
    }
    if (!context.json) print_table(context, table);
    return kDone;
  }
  const std::string id = normal_id(word);
  for (const Section& s : all)
    if (s.id == id) return print(context, s), kDone;
  const std::string near = nearest_id(id, all);
  throw Failure(kUsage, "TN-CLI-008", "no page explains " + id, "", std::to_string(all.size()) + " ids have a page",
                near.empty() ? "`tenon explain` lists them" : "tenon explain " + near);
}

Run setup(Args& args) {
  auto id = std::make_shared<std::string>();
  args.positional("ID", id.get(), "an error id, like TN-SHAPE-050; all ids when left out", false);
  return [id](Context& context) { return run(context, *id); };
}

}  // namespace

extern const Command command_explain{"explain", "Show the page of an error id.", "tenon explain TN-SHAPE-050\ntenon explain load-7\ntenon explain", kUsesNothing, setup};

}  // namespace tenon::cli
