#include "tools/tenon/op/op_table.h"

#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {

std::span<const OpPage> op_pages() {
  static const std::vector<OpPage> pages = {
#include "ops.inc"
  };
  return pages;
}

const OpPage* find_op_page(const std::string& name) {
  for (const OpPage& page : op_pages())
    if (name == page.name) return &page;
  return nullptr;
}

const OpPage& need_op_page(const std::string& name) {
  if (const OpPage* page = find_op_page(name)) return *page;
  std::vector<std::string> names;
  for (const OpPage& page : op_pages()) names.push_back(page.name);
  const std::string near = nearest_name(name, names.data(), names.size());
  throw Failure(kUsage, "TN-CLI-003", "no op is called \"" + name + "\"", "", std::to_string(names.size()) + " ops are known",
                near.empty() ? "`tenon ops` lists them" : "use " + near);
}

}  // namespace tenon::cli
