// ops/registry.cpp - the list of all core ops, made from ops.def. An op without its file fails to link.
#include <algorithm>

#include "ops/op.h"

namespace tenon::ops {

#define DECLARE_(NAME, name, id, n_in, n_out, family) extern const OpDecl op_##name;
TN_OPS(DECLARE_)
#undef DECLARE_

namespace {

constexpr size_t kCount = 0
#define COUNT_(NAME, name, id, n_in, n_out, family) +1
    TN_OPS(COUNT_)
#undef COUNT_
    ;

const OpDecl* const kOps[kCount] = {
#define ADDRESS_(NAME, name, id, n_in, n_out, family) &op_##name,
    TN_OPS(ADDRESS_)
#undef ADDRESS_
};

}  // namespace

std::span<const OpDecl* const> all_ops() { return kOps; }

const OpDecl* find_op(uint64_t op_id) {
  const auto found = std::find_if(std::begin(kOps), std::end(kOps), [&](const OpDecl* d) { return d->def.op_id == op_id; });
  return found == std::end(kOps) ? nullptr : *found;
}

}  // namespace tenon::ops
