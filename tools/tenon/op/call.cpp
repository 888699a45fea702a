#include "tools/tenon/op/call.h"

#include <algorithm>
#include <tenon/core/runtime.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/op/op_table.h"

namespace tenon::cli {
namespace {

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

}  // namespace

void declare_options(Args& args, Question* question) {
  args.option("--attr", &question->attrs, "an attribute, key=value; lists with commas: strides=2,2");
  args.option("--push", &question->push, "scalars that the call pushes; -1: as many as the op wants", -1, 64);
}

Call read_call(tn_runtime* runtime, uint32_t device, uint32_t flags, const Question& question) {
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
  call.spec = {call.op.op, attr, device, static_cast<uint32_t>(8 * push), static_cast<uint32_t>(call.types.size()), flags, call.types.data()};
  return call;
}

std::string call_text(tn_runtime* runtime, const Call& call) {
  uint32_t ids[64] = {}, n = 0;
  tn_diag diag{};
  diag.size = sizeof diag;
  if (tn_status s = tn_infer(runtime, &call.spec, ids, 64, &n, &diag)) throw_diag(diag, s);
  std::string text = call.op.name;
  for (const tn_type& t : call.operands) text += " " + spec_text(t);
  text += " ->";
  for (uint32_t i = 0; i < std::min(n, 64u); ++i) {
    tn_type t{};
    if (tn_type_get(runtime, ids[i], &t, &diag) == TN_OK) text += " " + spec_text(t);
  }
  return text;
}

}  // namespace tenon::cli
