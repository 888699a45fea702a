// "Did you mean": the known key with the fewest typing mistakes between it and what was typed.
#include "schema.h"

#include <algorithm>

namespace tenon::config {
namespace {

// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) { d[i][j] = i + j; continue; }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

std::string nearest_key(const std::string& typed) {
  if (typed.size() > 100) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 4) + 1;
  for (const Field& field : fields()) {
    const std::string path = field.path;
    // The right key in the wrong table, or in none, is meant more often than another key: compare last parts too.
    const size_t there = distance(typed, path), elsewhere = distance(last_part(typed), last_part(path)) + 1;
    const size_t d = std::min(there, elsewhere);
    if (d < best_distance) best_distance = d, best = path;
    const std::string table = path.substr(0, path.find('.'));
    if (distance(typed, table) < best_distance) best_distance = distance(typed, table), best = table;
  }
  return best;
}

}  // namespace tenon::config
