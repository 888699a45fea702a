// tools/tenon/op/rows.h - words for the rows of a decision record, shared by `tenon why` and `tenon why-not`.
#pragma once
#include <string>
#include <tenon/runtime.h>
#include <vector>

#include "tools/tenon/common/json.h"

namespace tenon::cli {

bool is_winner(const tn_candidate& row);
std::string why_word(const tn_candidate& row);     // "won", "constraint", ...
std::string source_word(const tn_candidate& row);  // "measured", "driver", "table", "guess"; "" = none
std::string source_phrase(const tn_candidate& row);  // "measured rates"
std::string plugin_of(const tn_candidate& row, const std::vector<tn_plugin_entry>& plugins);  // its id; "(parts)" for an expansion
// "chosen, est 12,300 ns from measured rates" or "constraint: operand 0 is ...", on one line.
std::string reason_text(const tn_candidate& row);
// The keys that both commands share: kernel, plugin, kind, why, reason, est_ns, source, tier.
void add_row(JsonRow* out, const tn_candidate& row, const std::string& plugin);

}  // namespace tenon::cli
