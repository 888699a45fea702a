// `tenon ops [NAME]`: all ops, or the page of one.
#include <memory>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"
#include "tools/tenon/op/op_table.h"

namespace tenon::cli {
namespace {

std::string count_text(int n) { return n < 0 ? "any" : std::to_string(n); }

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void print_json(const Context& context, const OpPage& op) {
  std::vector<JsonRow> attrs;
  for (const AttrPage& a : op.attrs) attrs.push_back(JsonRow().add("name", a.name).add("type", a.type).add("required", a.required).add("default", a.fallback));
  JsonRow row;
  row.add("name", op.name).add("id", op.id).add("family", op.family).add("inputs", op.n_in).add("outputs", op.n_out);
  row.add("operands", op.operands).add("summary", op.summary).add("formula", op.formula).add("semantics", op.semantics);
  row.add("attributes", attrs).add("dtypes", words(op.dtypes)).add("rules", words(op.rules)).add("ulp_f32", op.ulp_f32);
  context.line(row.add("example", std::string("tenon why ") + op.example).text());
}

void print_list(const Context& context) {
  std::vector<std::vector<std::string>> table{{"OP", "FAMILY", "IN", "OUT", "WHAT IT COMPUTES"}};
  for (const OpPage& op : op_pages()) table.push_back({op.name, op.family, count_text(op.n_in), count_text(op.n_out), op.summary});
  print_table(context, table);
}

void print_page(const Context& context, const OpPage& op) {
  context.line(context.bold(op.name) + "  " + op.summary);
  auto item = [&](const char* head, const std::string& text) {
    if (!text.empty()) context.line("  " + std::string(head) + std::string(13 - std::string(head).size(), ' ') + text);
  };
  item("formula", op.formula);
  item("operands", count_text(op.n_in) + " in, " + count_text(op.n_out) + " out" + (*op.operands ? std::string(": ") + op.operands : ""));
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrPage& a = op.attrs[i];
    item(i ? "" : "attributes", std::string(a.name) + " (" + a.type + (a.required ? ", required)" : *a.fallback ? std::string(", default ") + a.fallback + ")" : ", optional)"));
  }
  item("corner cases", op.semantics);
  item("types", op.dtypes);
  item("rules", op.rules);
  char bound[32];
  std::snprintf(bound, sizeof bound, "%g ULP in f32", op.ulp_f32);
  item("error bound", bound);
  item("try", std::string("tenon why ") + op.example);
}

int run(const Context& context, const std::string& name) {
  if (!name.empty()) {
    const OpPage& op = need_op_page(name);
    context.json ? print_json(context, op) : print_page(context, op);
  } else if (context.json) {
    for (const OpPage& op : op_pages()) print_json(context, op);
  } else {
    print_list(context);
  }
  return kDone;
}

Run setup(Args& args) {
  auto name = std::make_shared<std::string>();
  args.positional("NAME", name.get(), "an op; all of them when left out", false);
  return [name](Context& context) { return run(context, *name); };
}

}  // namespace

extern const Command command_ops{"ops", "List the ops, or show the page of one.", "tenon ops\ntenon ops softmax\ntenon ops --json", kUsesNothing, setup};

}  // namespace tenon::cli
