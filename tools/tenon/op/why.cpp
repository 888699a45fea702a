// `tenon why OP SPECS...`: which kernel takes a call, and why each other candidate lost.
#include <algorithm>
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/op/op_table.h"
#include "tools/tenon/op/spec.h"

namespace tenon::cli {
namespace {

constexpr const char* kWhy[] = {"won", "slower", "tier", "name", "constraint", "refused", "prepare-failed", "policy", "pinned-other", "device"};
constexpr const char* kSource[] = {"", "measured", "driver", "table", "guess"};

struct Question {
  std::vector<std::string> words, attrs;  // OP, SPECS and key=value; --attr
  int64_t push = -1;  // -1: as many as the op's own calls push
};

// Everything that the core's functions want about one call.
struct Call {
  tn_op_entry op{};
  std::vector<tn_type> operands;
  std::vector<uint32_t> types;
  AttrSet attrs;
  tn_spec spec{};
};

tn_op_entry find_entry(tn_runtime* runtime, const std::string& name) {
  for (const tn_op_entry& op : read_list<tn_op_entry>([&](auto... a) { return tn_ops(runtime, a...); }))
    if (name == op.name) return op;
  throw Failure(kFailed, "TN-CLI-003", "no op is called \"" + name + "\" in this runtime", "", "the table of pages knows it, the runtime does not", "rebuild, so that command and library are of one version");
}

void need_operand_count(const OpPage& page, size_t given) {
  if (page.n_in < 0 || static_cast<size_t>(page.n_in) == given) return;
  throw Failure(kUsage, "TN-CLI-006", std::string(page.name) + ": wrong number of operands", "",
                std::to_string(given) + " given, " + std::to_string(page.n_in) + " wanted" + (*page.operands ? std::string(": ") + page.operands : ""),
                std::string("tenon why ") + page.example);
}

Call read_call(Context& context, const Question& question) {
  Call call;
  const OpPage& page = need_op_page(question.words.at(0));
  std::vector<std::string> attrs = question.attrs;
  for (size_t i = 1; i < question.words.size(); ++i) {
    const std::string& word = question.words[i];
    if (word.find('=') != std::string::npos) attrs.push_back(word);
    else call.operands.push_back(parse_spec(word));
  }
  // Optional operands at the end may be left out.
  while (page.n_in > 0 && call.operands.size() < static_cast<size_t>(page.n_in) && std::string(page.operands).find('?') != std::string::npos) call.operands.push_back({});
  need_operand_count(page, call.operands.size());
  tn_runtime* runtime = context.handle();
  call.op = find_entry(runtime, page.name);
  for (const std::string& text : attrs) call.attrs.add(text, call.op, call.operands);
  const bool absent = std::any_of(call.operands.begin(), call.operands.end(), [](const tn_type& t) { return t.dtype == 0; });
  const int64_t push = question.push >= 0 ? question.push : absent ? page.scalars_absent : page.scalars;
  tn_diag diag{};
  diag.size = sizeof diag;
  uint32_t attr = 0;
  if (tn_status s = tn_attr_intern(runtime, call.op.op, call.attrs.attrs().data(), static_cast<uint32_t>(call.attrs.attrs().size()), &attr, &diag)) throw_diag(diag, s);
  for (const tn_type& t : call.operands) {
    uint32_t id = 0;
    if (t.dtype)
      if (tn_status s = tn_type_intern(runtime, &t, &id, &diag)) throw_diag(diag, s);
    call.types.push_back(id);
  }
  call.spec = {call.op.op, attr, context.device().id(), static_cast<uint32_t>(8 * push), static_cast<uint32_t>(call.types.size()), context.call_flags(), call.types.data()};
  return call;
}

std::string result_text(tn_runtime* runtime, const tn_spec& spec) {
  uint32_t ids[64] = {}, n = 0;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_infer(runtime, &spec, ids, 64, &n, &diag)) throw_diag(diag, s);
  std::string text;
  for (uint32_t i = 0; i < std::min(n, 64u); ++i) {
    tn_type t{};
    if (tn_type_get(runtime, ids[i], &t, &diag) == TN_OK) text += (i ? " " : "") + spec_text(t);
  }
  return text;
}

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
      const bool won = row.why == TN_WHY_WON && row.est_ns >= 0;
      table.push_back({won ? context_.good("->") : "  ", won ? context_.bold(row.kernel) : row.kernel, plugin(row), row.est_ns >= 0 ? time_text(row.est_ns) : "-", reason(row, won)});
    }
    print_table(context_, table);
  }

 private:
  std::string plugin(const tn_candidate& row) const {
    if (row.kind == TN_ROW_EXPAND) return "(parts)";
    for (const tn_plugin_entry& p : plugins_)
      if (p.index == row.plugin) return p.id;
    return "-";
  }

  static std::string why(const tn_candidate& row) { return row.why < std::size(kWhy) ? kWhy[row.why] : "why " + std::to_string(row.why); }
  static std::string source(const tn_candidate& row) { return row.source < std::size(kSource) ? kSource[row.source] : ""; }

  std::string reason(const tn_candidate& row, bool won) const {
    if (won) return "chosen" + (row.source ? ", cost from " + source(row) : std::string());
    std::string text = row.reason;
    for (char& c : text) c = c == '\n' ? ' ' : c;
    return why(row) + (text.empty() ? "" : ": " + text);
  }

  void json(const tn_candidate& row, size_t part, size_t rank) const {
    JsonRow out;
    const std::string call = row.call;
    out.add("part", part).add("depth", row.depth).add("op", call.substr(0, call.find(' '))).add("call", call);
    out.add("rank", rank).add("kernel", row.kernel).add("plugin", plugin(row));
    out.add("kind", row.kind == TN_ROW_EXPAND ? "expand" : row.kind == TN_ROW_MOVE ? "move" : "kernel");
    out.add("winner", row.why == TN_WHY_WON && row.est_ns >= 0).add("why", why(row)).add("reason", row.reason);
    row.est_ns >= 0 ? out.add("est_ns", row.est_ns) : out.raw("est_ns", "null");
    out.add("source", source(row)).add("tier", row.tier).add("workspace_bytes", row.workspace_bytes);
    context_.line(out.text());
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
  const Call call = read_call(context, question);
  const auto rows = read_list<tn_candidate>([&](auto... a) { return tn_why(context.handle(), &call.spec, a...); });
  const std::vector<tn_plugin_entry> plugins = plugin_entries(context.handle());
  if (!context.json) {
    std::string text;
    for (const tn_type& t : call.operands) text += " " + spec_text(t);
    context.line(context.bold(call.op.name) + text + " -> " + result_text(context.handle(), call.spec) + "  on " + context.device().name());
  }
  Printer printer(context, plugins);
  printer.rows(rows, 0);
  const bool decided = !rows.empty() && rows[0].why == TN_WHY_WON && rows[0].est_ns >= 0;
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
  args.option("--attr", &question->attrs, "an attribute, key=value; lists with commas: strides=2,2");
  args.option("--push", &question->push, "scalars that the call pushes; -1: as many as the op wants", -1, 64);
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
