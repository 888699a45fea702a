#include "ops/conv/conv_shapes.h"

#include <algorithm>

namespace tenon::ops {

tn_status conv_output(tn_diag* d, const char* name, const tn_type& x, const tn_type& w, Sliding* s, const Calc& calc, Dims* out) {
  if (tn_status st = need_rank(d, name, "x", x, 4, 4); st != TN_OK) return st;
  if (tn_status st = need_rank(d, name, "w", w, 4, 4); st != TN_OK) return st;
  const bool outputs_split = s->groups == 1 || calc.dims->require(calc.dims->ctx, TN_DIM_DIVIDES, s->groups, w.dim[0], nullptr) == TN_OK;
  if (!calc.equal(calc.mul(w.dim[1], s->groups), x.dim[1]) || !outputs_split)
    return fail(d, TN_E_SHAPE, error_id(kShape, 60), "%s: channels do not fit\nwhy: x is %s, w is %s, groups %lld; x's C must be w[1] * groups, w[0] a multiple of groups\ntry: change groups or w",
                name, type_text(x).c_str(), type_text(w).c_str(), static_cast<long long>(s->groups));
  s->kernel = {w.dim[2], w.dim[3]};
  Dims places;
  if (tn_status st = window_places(d, name, *s, x.dim[2], x.dim[3], calc, &places); st != TN_OK) return st;
  *out = {x.dim[0], w.dim[0], places[0], places[1]};
  return TN_OK;
}

Value grouped_windows(Emit& e, Value x, const Sliding& s, const Calc& calc) {
  x = pad_image(e, x, s.lo, s.hi, {0, 0}, 0, calc);
  const Dims dims = e.dims(x);
  if (!e.ok()) return x;
  return windows(e, reshape(e, x, {dims[0], s.groups, dims[1] / s.groups, dims[2], dims[3]}), s);
}

Dims ConvCase::y() const {
  const Dims places = window_places_of(window);
  return {window.x[0], outputs, places[0], places[1]};
}

std::vector<ConvCase> conv_cases() {
  const Dims one{1, 1}, none{0, 0}, two{2, 2}, three{3, 3};
  return {{{{1, 1, 1, 1}, {one, one, none, none, one}}, 1},          {{{2, 3, 5, 5}, {three, one, none, none, one}}, 4},
          {{{2, 3, 5, 5}, {three, one, one, one, one}}, 4},          {{{2, 3, 5, 7}, {three, two, one, one, one}}, 2},
          {{{1, 2, 8, 7}, {three, {2, 3}, {1, 0}, {0, 2}, one}}, 3}, {{{1, 2, 7, 7}, {three, one, none, none, two}}, 2},
          {{{1, 2, 7, 7}, {two, two, one, one, {2, 3}}}, 2},         {{{2, 4, 5, 5}, {three, one, one, one, one, 2}}, 6},
          {{{2, 4, 5, 5}, {three, two, one, one, one, 4}}, 4},       {{{1, 4, 4, 4}, {two, one, none, none, one, 4}}, 8},
          {{{0, 3, 4, 4}, {two, one, none, none, one}}, 2},          {{{2, 0, 4, 4}, {two, one, none, none, one}}, 2},
          {{{2, 3, 4, 4}, {two, one, none, none, one}}, 0},          {{{2, 3, 4, 4}, {one, one, none, none, one}}, 5},
          {{{2, 3, 5, 5}, {one, two, none, none, one}}, 5},          {{{1, 2, 4, 4}, {{4, 4}, one, none, none, one}}, 3},
          {{{1, 2, 3, 9}, {{1, 5}, {1, 2}, {0, 2}, {0, 2}, one}}, 3}, {{{1, 2, 9, 3}, {{5, 1}, {2, 1}, {2, 0}, {1, 0}, one}}, 3},
          {{{1, 1, 4, 4}, {two, one, three, three, one}}, 2},        {{{1, 17, 3, 3}, {two, one, none, none, one}}, 9},
          {{{1, 2, 6, 6}, {two, three, none, none, one}}, 2},        {{{1, 6, 5, 4}, {{3, 2}, {2, 1}, {1, 1}, {0, 1}, {1, 2}, 3}}, 3}};
}

double conv_flops(const tn_type& y, const tn_type& w) {
  return 2 * elements(y) * static_cast<double>(w.dim[1]) * static_cast<double>(w.dim[2]) * static_cast<double>(w.dim[3]);
}

}  // namespace tenon::ops
