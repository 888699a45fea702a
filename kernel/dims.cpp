// kernel/dims.cpp - arithmetic of shape rules on numbers, and what both kinds share.
#include "kernel/dims.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "kernel/dims_text.h"

namespace tenon::kernel {
namespace {

std::optional<int64_t> floor_div(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

std::optional<int64_t> calc_numbers(uint32_t dim_op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (dim_op) {
    case TN_DIM_ADD: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case TN_DIM_SUB: return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case TN_DIM_MUL: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case TN_DIM_FLOORDIV: return floor_div(a, b);
    case TN_DIM_MOD: {
      const auto q = floor_div(a, b);
      return q ? std::optional(a - *q * b) : std::nullopt;
    }
    case TN_DIM_MIN: return std::min(a, b);
    case TN_DIM_MAX: return std::max(a, b);
    default: return std::nullopt;
  }
}

bool holds(uint32_t relation, int64_t a, int64_t b) {
  switch (relation) {
    case TN_DIM_EQ: return a == b;
    case TN_DIM_LE: return a <= b;
    case TN_DIM_LT: return a < b;
    case TN_DIM_DIVIDES: return a == 0 ? b == 0 : a == -1 || b % a == 0;
    default: return false;
  }
}

tn_status report_overflow(tn_diag* diag, uint32_t dim_op, int64_t a, int64_t b) {
  static constexpr const char* kNames[] = {"+", "-", "*", "/", "mod", "min", "max"};
  if (!diag) return TN_E_SHAPE;
  *diag = {};
  diag->size = sizeof *diag;
  diag->status = TN_E_SHAPE;
  diag->id = 2u << 16 | 4;
  const bool symbol = TN_IS_SYM(a) || TN_IS_SYM(b);
  const int n = std::snprintf(diag->msg, sizeof diag->msg,
                              "a size cannot be computed in 64 bits\nwhy: %s %s %s %s\ntry: %s", dim_text(a).text,
                              dim_op <= TN_DIM_MAX ? kNames[dim_op] : "?", dim_text(b).text,
                              symbol ? "is a number only once the symbol is" : "overflows or divides by zero",
                              symbol ? "put a number in place of the symbol" : "use smaller dims");
  diag->len = static_cast<uint32_t>(std::clamp<int>(n, 0, sizeof diag->msg - 1));
  return TN_E_SHAPE;
}

tn_status report_relation(tn_diag* diag, uint32_t relation, int64_t a, int64_t b) {
  static constexpr const char* kNames[] = {"must equal", "must be at most", "must be less than", "must divide"};
  if (!diag) return TN_E_SHAPE;
  *diag = {};
  diag->size = sizeof *diag;
  diag->status = TN_E_SHAPE;
  diag->id = 2u << 16 | 3;
  const int n = std::snprintf(diag->msg, sizeof diag->msg,
                              "sizes do not fit\nwhy: %s %s %s\ntry: change one of the two sizes", dim_text(a).text,
                              relation <= TN_DIM_DIVIDES ? kNames[relation] : "?", dim_text(b).text);
  diag->len = static_cast<uint32_t>(std::clamp<int>(n, 0, sizeof diag->msg - 1));
  return TN_E_SHAPE;
}

tn_dims ConcreteDims::table() { return {sizeof(tn_dims), 0, this, calc, require, fresh}; }

tn_status ConcreteDims::status(tn_diag* diag) const { return failed_ ? report_overflow(diag, op_, a_, b_) : TN_OK; }

int64_t ConcreteDims::calc(void* self, uint32_t dim_op, int64_t a, int64_t b) {
  auto& d = *static_cast<ConcreteDims*>(self);
  const auto r = TN_IS_SYM(a) || TN_IS_SYM(b) ? std::nullopt : calc_numbers(dim_op, a, b);
  if (r && !TN_IS_SYM(*r)) return *r;
  if (!d.failed_) d.op_ = dim_op, d.a_ = a, d.b_ = b;
  d.failed_ = true;
  return 0;
}

tn_status ConcreteDims::require(void*, uint32_t relation, int64_t a, int64_t b, tn_diag* diag) {
  return holds(relation, a, b) ? TN_OK : report_relation(diag, relation, a, b);
}

int64_t ConcreteDims::fresh(void* self, int64_t, int64_t) {
  return TN_SYM(static_cast<ConcreteDims*>(self)->n_fresh_++);
}

}  // namespace tenon::kernel
