// tests/gpu_prims/case.cpp
#include "tests/gpu_prims/case.h"

#include <cmath>
#include <cstring>

#include "ops/gpu/text.h"

namespace tenon::test {
namespace ref = tenon::reference;

Operand make_operand(uint32_t dtype, const Dims& dims, Layout layout, int64_t element_offset) {
  Operand o;
  o.type.dtype = static_cast<uint8_t>(dtype), o.type.rank = static_cast<uint8_t>(dims.size());
  const int64_t rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> order(dims.size());
  for (int64_t d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
  if (layout == Layout::Transposed && rank >= 2) std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  int64_t below = layout == Layout::Spread ? 2 : 1, low = 0, high = 0;
  for (int64_t i = rank - 1; i >= 0; --i) {
    const int64_t d = order[static_cast<size_t>(i)], n = dims[static_cast<size_t>(d)];
    o.type.dim[d] = n;
    o.type.stride[d] = layout == Layout::Reversed ? -below : below;
    if (n > 0) (layout == Layout::Reversed ? low : high) += (n - 1) * o.type.stride[d];
    below *= std::max<int64_t>(n, 1);
    if (layout == Layout::Spread) below += 1;
  }
  const int64_t bytes = ref::dtype_bytes(dtype);
  o.offset = (element_offset - low) * bytes;
  o.bytes.assign(static_cast<size_t>((element_offset + high - low + 1) * bytes), 0);
  return o;
}

void for_each_index(const Operand& o, const std::function<void(const Dims&)>& f) {
  Dims at(o.type.rank, 0);
  for (uint32_t d = 0; d < o.type.rank; ++d)
    if (o.type.dim[d] == 0) return;
  for (;;) {
    f(at);
    int d = o.type.rank - 1;
    for (; d >= 0; --d) {
      if (++at[static_cast<size_t>(d)] < o.type.dim[d]) break;
      at[static_cast<size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

namespace {
int64_t place(const Operand& o, const Dims& at) {
  int64_t e = 0;
  for (size_t d = 0; d < at.size(); ++d) e += at[d] * o.type.stride[d];
  return o.offset + e * ref::dtype_bytes(o.type.dtype);
}
}  // namespace

double get(const Operand& o, const Dims& at) { return ref::load_f64(o.bytes.data() + place(o, at), o.type.dtype); }
void set(Operand* o, const Dims& at, double v) { ref::store_f64(o->bytes.data() + place(*o, at), o->type.dtype, v); }

void fill_random(Operand* o, std::mt19937& g, double low, double high) {
  std::uniform_real_distribution<double> d(low, high);
  for_each_index(*o, [&](const Dims& at) {
    double v = d(g);
    if (o->type.dtype == TN_BOOL) v = v > (low + high) / 2;
    else if (gpu::is_int(o->type.dtype)) v = std::floor(v);
    set(o, at, v);
  });
}

void Case::attr_int(uint32_t key, int64_t value) {
  tn_attr a{};
  a.key = key, a.type = TN_ATTR_I64, a.v.i = value, a.len = 1;
  attrs_.push_back(a);
}
void Case::attr_ints(uint32_t key, Dims values) {
  lists_.push_back(std::make_unique<Dims>(std::move(values)));
  tn_attr a{};
  a.key = key, a.type = TN_ATTR_I64S, a.v.p = lists_.back()->data(), a.len = lists_.back()->size();
  attrs_.push_back(a);
}
void Case::attr_program(uint32_t key, std::vector<tn_inst> inst, uint8_t n_in, std::vector<uint16_t> out, uint8_t slots) {
  insts_.push_back(std::make_unique<std::vector<tn_inst>>(std::move(inst)));
  auto p = std::make_unique<tn_program>();
  *p = tn_program{};
  p->size = sizeof *p, p->n_inst = static_cast<uint8_t>(insts_.back()->size()), p->n_in = n_in, p->n_out = static_cast<uint8_t>(out.size()), p->n_slots = slots;
  for (size_t k = 0; k < out.size(); ++k) p->out[k] = out[k];
  for (const tn_inst& i : *insts_.back()) p->opcodes |= uint64_t{1} << i.op;
  p->inst = insts_.back()->data();
  programs_.push_back(std::move(p));
  tn_attr a{};
  a.key = key, a.type = TN_ATTR_PROGRAM, a.v.p = programs_.back().get(), a.len = 1;
  attrs_.push_back(a);
}

tn_op Case::op() {
  std::sort(attrs_.begin(), attrs_.end(), [](const tn_attr& a, const tn_attr& b) { return a.key < b.key; });
  types_.clear();
  for (const Operand& o : operand) types_.push_back(o.type);
  tn_op op{};
  op.size = sizeof op, op.op_id = op_id_, op.op_version = 1;
  op.n_in = static_cast<uint16_t>(n_in_), op.n_out = static_cast<uint16_t>(operand.size() - n_in_), op.n_attr = static_cast<uint16_t>(attrs_.size());
  op.type = types_.data(), op.attr = attrs_.data(), op.push_bytes = static_cast<uint32_t>(push.size() * 8);
  return op;
}

std::vector<Operand> Case::reference(tn_status* status) {
  std::vector<Operand> copy = operand;
  std::vector<void*> data;
  for (Operand& o : copy) data.push_back(o.first());
  tn_diag diag{};
  const tn_status s = ref::run(op(), data.data(), push.data(), nullptr, &diag);
  if (status != nullptr) *status = s;
  else EXPECT_EQ(s, TN_OK) << diag.msg;
  return copy;
}

uint32_t row_named(const char* name) {
  for (uint32_t r = 0; r < gpu::row_count(); ++r)
    if (std::string(gpu::row_info(r).name) == name) return r;
  ADD_FAILURE() << "no row " << name;
  return 0;
}

std::optional<uint32_t> Case::run(const char* row, const gpu::Caps& caps, std::vector<Operand>* out) {
  gpu::Recipe recipe;
  tn_diag diag{};
  const tn_op o = op();
  const tn_status s = gpu::make_recipe(caps, row_named(row), o, &recipe, &diag);
  if (s != TN_OK) {
    refusal = diag.msg;
    return std::nullopt;
  }
  steps = recipe.steps.size();
  *out = operand;
  std::vector<HostView> views;
  for (Operand& v : *out) views.push_back({&v.bytes, v.offset});
  return ClMachine::get()->run(caps, recipe, views, push.data());
}

void expect_same(const Case&, const std::vector<Operand>& want, const std::vector<Operand>& got, uint32_t n_in, double ulps, double scale) {
  for (size_t k = 0; k < want.size(); ++k) {
    if (k < n_in || ulps == 0) {
      EXPECT_TRUE(want[k].bytes == got[k].bytes) << "operand " << k;
      continue;
    }
    Operand rest = want[k];
    int shown = 0;
    for_each_index(want[k], [&](const Dims& at) {
      const double w = get(want[k], at), g = get(got[k], at);
      double unit = 1.2e-7;
      if (want[k].type.dtype == TN_F64) unit = 2.3e-16;
      if (ref::is_narrow_float(want[k].type.dtype)) unit = 0;
      const double allowed = ulps * unit * std::max(std::fabs(w), scale) + (ref::is_narrow_float(want[k].type.dtype) ? std::fabs(w) * 0.01 + ulps * 1.2e-7 * scale : 0);
      const bool same = (std::isnan(w) && std::isnan(g)) || w == g || std::fabs(w - g) <= allowed;
      if (!same && shown++ < 3) ADD_FAILURE() << "operand " << k << " at " << testing::PrintToString(at) << ": want " << w << ", got " << g << ", allowed " << allowed;
      std::memcpy(rest.bytes.data() + place(rest, at), got[k].bytes.data() + place(rest, at), ref::dtype_bytes(rest.type.dtype));
    });
    EXPECT_TRUE(rest.bytes == got[k].bytes) << "something beside the elements of operand " << k << " was written";
  }
}

}  // namespace tenon::test
