#include "tools/tenon/op/rows.h"

#include <cmath>

namespace tenon::cli {
namespace {

constexpr const char* kWhy[] = {"won", "slower", "tier", "name", "constraint", "refused", "prepare-failed", "policy", "pinned-other", "device"};
constexpr const char* kSource[] = {"", "measured", "driver", "table", "guess"};
constexpr const char* kPhrase[] = {"", "measured rates", "the driver's rates", "the kernel's own table", "guessed rates"};

// 12300 -> "12,300"
std::string grouped(double value) {
  std::string digits = std::to_string(std::llround(std::min(value, 9e15)));
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace

bool is_winner(const tn_candidate& row) { return row.why == TN_WHY_WON && row.est_ns >= 0; }

std::string why_word(const tn_candidate& row) { return row.why < std::size(kWhy) ? kWhy[row.why] : "why " + std::to_string(row.why); }

std::string source_word(const tn_candidate& row) { return row.source < std::size(kSource) ? kSource[row.source] : ""; }

std::string source_phrase(const tn_candidate& row) {
  if (row.kind == TN_ROW_EXPAND && row.source) return "its parts";
  return row.source < std::size(kPhrase) ? kPhrase[row.source] : "";
}

std::string plugin_of(const tn_candidate& row, const std::vector<tn_plugin_entry>& plugins) {
  if (row.kind == TN_ROW_EXPAND) return "(parts)";
  for (const tn_plugin_entry& p : plugins)
    if (p.index == row.plugin) return p.id;
  return "-";
}

std::string reason_text(const tn_candidate& row) {
  if (is_winner(row) && row.kind == TN_ROW_MOVE) return std::string(row.reason) + "; est " + grouped(row.est_ns) + " ns from " + source_phrase(row);
  if (is_winner(row)) return "chosen" + (row.source ? ", est " + grouped(row.est_ns) + " ns from " + source_phrase(row) : std::string());
  std::string text = row.reason;
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return why_word(row) + (text.empty() ? "" : ": " + text);
}

void add_row(JsonRow* out, const tn_candidate& row, const std::string& plugin) {
  out->add("kernel", row.kernel).add("plugin", plugin);
  out->add("kind", row.kind == TN_ROW_EXPAND ? "expand" : row.kind == TN_ROW_MOVE ? "move" : "kernel");
  out->add("why", why_word(row)).add("reason", row.reason);
  row.est_ns >= 0 ? out->add("est_ns", row.est_ns) : out->raw("est_ns", "null");
  out->add("move_ns", row.move_ns).add("source", source_word(row)).add("tier", row.tier);
}

}  // namespace tenon::cli
