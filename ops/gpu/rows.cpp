// ops/gpu/rows.cpp - the table of rows, and recipes made through it.
#include "ops/gpu/rows.h"

#include <algorithm>
#include <cctype>
#include <new>
#include <string>

#include "ops/gpu/text.h"

namespace tenon::gpu {
namespace {

const std::vector<RowCode>& rows() {
  static const std::vector<RowCode> all = [] {
    std::vector<RowCode> v;
    for (auto part : {
             pointwise_rows(), copy_rows(), reduce_rows(), matmul_rows(), gather_rows(), scatter_rows(),
         })
      v.insert(v.end(), part.begin(), part.end());
    return v;
  }();
  return all;
}

bool empty(const tn_type& t) {
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.dim[d] == 0) return true;
  return false;
}

bool holds(const tn_constraint& c, const tn_type& t) {
  if (t.dtype == 0) return true;  // an absent operand
  const uint32_t value = c.kind == TN_NEED_LAYOUT ? t.layout : t.dtype;
  return (c.kind != TN_NEED_LAYOUT && c.kind != TN_NEED_DTYPE) || (value < 64 && (c.mask >> value & 1) != 0);
}

// "f16 bf16 f32", of the types whose bits are set.
std::string type_names(uint64_t mask) {
  std::string names;
#define TENON_NAME_(name, id, bits) \
  if ((mask >> id & 1) != 0) names += (names.empty() ? "" : " ") + std::string(#name + 3);
  TN_DTYPES(TENON_NAME_)
#undef TENON_NAME_
  std::transform(names.begin(), names.end(), names.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return names;
}

tn_status not_taken(const char* row, const tn_constraint& c, uint32_t operand, const tn_type& type, tn_diag* diag) {
  if (c.kind == TN_NEED_LAYOUT)
    return refuse(diag, TN_E_UNSUPPORTED, "%s: operand %u is packed\nwhy: it has layout %u, the row takes strided operands\ntry: pass the operand as it was before it was packed", row, operand, type.layout);
  return refuse(diag, TN_E_UNSUPPORTED, "%s: operand %u has a type that the row does not take\nwhy: it is %s, the row takes %s\ntry: cast it", row, operand, type_names(uint64_t{1} << type.dtype).c_str(),
                type_names(c.mask).c_str());
}

// The core asks constraints first, but supports() is an answer by itself: it must not accept what the row's data refuse.
tn_status within_constraints(const RowCode& code, const Caps& caps, const tn_op& op, tn_diag* diag) {
  const std::vector<tn_constraint> constraints = code.constraints(caps);
  if (constraints.empty())
    return refuse(diag, TN_E_UNSUPPORTED, "%s: the device cannot run this row\nwhy: it lacks a type or a feature that every call of it needs\ntry: another row or device", code.info.name);
  for (const tn_constraint& c : constraints)
    for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k)
      if ((c.operand == TN_ANY_OPERAND || c.operand == k) && !holds(c, op.type[k])) return not_taken(code.info.name, c, k, op.type[k], diag);
  return TN_OK;
}

}  // namespace

uint32_t row_count() { return static_cast<uint32_t>(rows().size()); }
RowInfo row_info(uint32_t row) { return rows()[row].info; }
std::vector<tn_constraint> row_constraints(uint32_t row, const Caps& caps) { return rows()[row].constraints(caps); }

tn_status row_supports(uint32_t row, const Caps& caps, const tn_op& op, tn_support* est, tn_diag* diag) {
  const RowCode& code = rows()[row];
  if (const tn_status s = within_constraints(code, caps, op, diag); s != TN_OK) return s;
  return code.supports != nullptr ? code.supports(caps, op, est, diag) : TN_OK;
}

tn_status make_recipe(const Caps& caps, uint32_t row, const tn_op& op, Recipe* out, tn_diag* diag) {
  try {
    if (const tn_status s = row_supports(row, caps, op, nullptr, diag); s != TN_OK) return s;
    *out = Recipe{};
    out->n_views = uint32_t{op.n_in} + op.n_out;
    bool nothing = true;
    for (uint32_t k = 0; k < op.n_out; ++k) nothing = nothing && empty(op.type[op.n_in + k]);
    return nothing ? TN_OK : rows()[row].build(caps, op, out, diag);
  } catch (const std::bad_alloc&) {
    return refuse(diag, TN_E_OOM, "%s: no memory for a recipe\nwhy: the heap is exhausted\ntry: free memory", row_info(row).name);
  }
}

std::vector<tn_constraint> basic_constraints(const Caps& caps, uint64_t types) {
  return {{TN_ANY_OPERAND, TN_NEED_LAYOUT, 0, uint64_t{1} << TN_LAYOUT_STRIDED, 0, 0}, {TN_ANY_OPERAND, TN_NEED_DTYPE, 0, types & caps.storage, 0, 0}};
}

void describe_failure(const KernelSpec& spec, const uint32_t word[4], tn_diag* diag) {
  if (word[0] == kFailIndex)
    refuse(diag, TN_E_FAILED, "%s: an index is outside its axis\nwhy: index %d at element %u, axis of size %u\ntry: keep indices within -size..size-1",
           spec.name.c_str(), static_cast<int32_t>(word[1]), word[2], word[3]);
  else
    refuse(diag, TN_E_FAILED, "%s: the kernel reported failure %u\nwhy: words %u %u %u\ntry: report this", spec.name.c_str(), word[0], word[1], word[2], word[3]);
}

}  // namespace tenon::gpu
