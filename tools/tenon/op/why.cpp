// `tenon why OP SPECS...`: which kernel takes a call, and why each other candidate lost.
#include <algorithm>
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/op/call.h"
#include "tools/tenon/op/rows.h"

namespace tenon::cli {
namespace {

class Printer {
 public:
  Printer(Context& context, const std::vector<tn_plugin_entry>& plugins) : context_(context), plugins_(plugins) {}

  // part 0: the call itself; others: the parts of the expansion, in the order in which they run.
  void rows(const std::vector<tn_candidate>& rows, size_t part) {
    if (context_.json) {
      for (size_t rank = 0; rank < rows.size(); ++rank) json(rows[rank], part, rank);
      return;
    }
    std::vector<std::vector<std::string>> table{{"", "KERNEL", "PLUGIN", "COST", "WHY"}};
    for (const tn_candidate& row : rows) {
      const bool won = is_winner(row);
      table.push_back({won ? context_.good("->") : "  ", won ? context_.bold(row.kernel) : row.kernel, plugin_of(row, plugins_), row.est_ns >= 0 ? time_text(row.est_ns) : "-", reason_text(row)});
    }
    print_table(context_, table);
  }

 private:
  void json(const tn_candidate& row, size_t part, size_t rank) const {
    JsonRow out;
    const std::string call = row.call;
    out.add("part", part).add("depth", row.depth).add("op", call.substr(0, call.find(' '))).add("call", call).add("rank", rank).add("winner", is_winner(row));
    add_row(&out, row, plugin_of(row, plugins_));
    context_.line(out.add("workspace_bytes", row.workspace_bytes).text());
  }

  Context& context_;
  const std::vector<tn_plugin_entry>& plugins_;
};

// The parts of the expansion, as they would run: the call is prepared with the expansion pinned, in this process's own runtime.
std::vector<std::vector<tn_candidate>> expansion_parts(Context& context, const Call& call) {
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_pin(context.handle(), call.op.op, call.spec.device, "expand", &diag)) throw_diag(diag, s);
  tn_plan* raw = nullptr;
  if (tn_status s = tn_plan_prepare(context.handle(), &call.spec, &raw, &diag)) throw_diag(diag, s);
  const std::unique_ptr<tn_plan, void (*)(tn_plan*)> plan(raw, tn_plan_release);
  std::vector<std::vector<tn_candidate>> parts;
  for (uint32_t step = 1;; ++step) {
    uint32_t n = 0;
    if (tn_why_plan(plan.get(), step, nullptr, sizeof(tn_candidate), 0, &n, &diag) != TN_OK) break;  // past the last
    parts.push_back(read_list<tn_candidate>([&](auto... a) { return tn_why_plan(plan.get(), step, a...); }));
  }
  if (tn_status s = tn_pin(context.handle(), call.op.op, call.spec.device, nullptr, &diag)) throw_diag(diag, s);
  return parts;
}

bool is_costed(const tn_candidate& row) { return row.kind == TN_ROW_EXPAND && row.est_ns >= 0; }

// Of an expansion that won: every part with all its candidates. Of one that lost: a line a part.
void print_parts(Context& context, const Call& call, bool won, Printer* printer) {
  const auto parts = expansion_parts(context, call);
  if (!won && !context.json && !parts.empty()) context.line("\n" + context.bold("the expansion's parts"));
  std::vector<std::vector<std::string>> lines{{"PART", "CALL", "KERNEL", "COST"}};
  for (size_t part = 1; part <= parts.size(); ++part) {
    const std::vector<tn_candidate>& rows = parts[part - 1];
    if (rows.empty()) continue;
    if (context.json || won) {
      if (!context.json) context.line("\n" + context.bold("part " + std::to_string(part)) + "  " + rows[0].call);
      printer->rows(rows, part);
    } else {
      lines.push_back({std::string(2 * (rows[0].depth - 1), ' ') + std::to_string(part), rows[0].call, rows[0].kernel, rows[0].est_ns >= 0 ? time_text(rows[0].est_ns) : "-"});
    }
  }
  if (!won && !context.json && lines.size() > 1) print_table(context, lines);
}

int run(Context& context, const Question& question) {
  context.open_every_plugin();
  const Call call = read_call(context.handle(), context.device().id(), context.call_flags(), question);
  const auto rows = read_list<tn_candidate>([&](auto... a) { return tn_why(context.handle(), &call.spec, a...); });
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  if (!context.json) {
    const std::string text = call_text(context.handle(), call), op = call.op.name;
    context.line(context.bold(op) + text.substr(op.size()) + "  on " + context.device().name());
  }
  Printer printer(context, plugins);
  printer.rows(rows, 0);
  const bool decided = !rows.empty() && is_winner(rows[0]);
  if (decided && std::any_of(rows.begin(), rows.end(), is_costed)) print_parts(context, call, rows[0].kind == TN_ROW_EXPAND, &printer);
  if (decided) return kDone;
  if (rows.empty() && !context.json) {
    context.line("a view: no kernel runs");
    return kDone;
  }
  if (rows.empty()) return kDone;
  throw Failure(kFailed, "TN-CLI-007", "no candidate takes this call", std::string("op ") + call.op.name + ", device " + context.device().name(),
                std::to_string(rows.size()) + " candidates were asked, each with its reason above", "use --policy prefer, other element types, or another device");
}

Run setup(Args& args) {
  auto question = std::make_shared<Question>();
  args.positionals("CALL", &question->words, "OP, then one spec an operand: f32[512,512], i64[3], - for an absent one");
  declare_options(args, question.get());
  return [question](Context& context) { return run(context, *question); };
}

}  // namespace

extern const Command command_why{"why", "Say which kernel runs a call, and why each other candidate lost.",
                                 "tenon why matmul f32[512,512] f32[512,512]\n"
                                 "tenon why conv2d f32[16,64,56,56] f32[64,64,3,3] - --attr lo=1,1 --attr hi=1,1\n"
                                 "tenon why softmax f32[4096,4096] --policy no-expand\n"
                                 "tenon why add f32[16] f32[16] --device sim:0 --json",
                                 kUsesDevice, setup};

}  // namespace tenon::cli
