// ops/gpu/library/scatter.cpp - out = data, then updates are set, added, multiplied, min'd or max'd at indexed places.
//
// Two updates can only meet on one line along the axis, so a thread that owns a whole line, or one element of it, applies them in
// row-major order: results never depend on threads. Two forms:
//   walk   data is copied to the output, then a thread for each line goes through that line's updates. Time grows with the number
//          of updates along the axis; all the lines run side by side.
//   scan   a thread for each output element goes through all its line's indices and takes what is meant for it: one pass, no
//          reading back, but (axis size) times the work. For few updates, and where there are too few lines to fill a GPU.
// Narrow floats are combined in f32 and rounded once: in registers (scan), or in an f32 copy in the workspace (walk).
#include <algorithm>

#include "ops/gpu/library/index_text.h"
#include "ops/gpu/library/reduce_text.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

int64_t monoid_of(int64_t mode) {
  switch (mode) {
    case TN_SCATTER_ADD: return TN_MONOID_SUM;
    case TN_SCATTER_MUL: return TN_MONOID_PROD;
    case TN_SCATTER_MIN: return TN_MONOID_MIN;
    default: return TN_MONOID_MAX;
  }
}

class Builder {
 public:
  Builder(const Caps& caps, const tn_op& op, Recipe* r, tn_diag* diag) : caps_(caps), op_(op), r_(r), diag_(diag) {
    axis_ = static_cast<int>(int_attr(op, TN_KEY_AXIS, 0));
    mode_ = int_attr(op, TN_KEY_MODE, TN_SCATTER_SET);
    dtype_ = op.type[3].dtype;
    set_ = mode_ == TN_SCATTER_SET;
    narrow_ = !set_ && is_narrow_float(dtype_);
    if (set_) moved_ = plain_dtype(dtype_, &words_);
    else moved_ = dtype_, fold_ = plain_fold(monoid_of(mode_), narrow_ ? uint32_t{TN_F32} : dtype_);
  }

  tn_status run() {
    const tn_type& out = op_.type[3];
    const int64_t updates = op_.type[2].dim[axis_], size = out.dim[axis_];
    int64_t lines = 1;
    for (int d = 0; d < out.rank; ++d)
      if (d != axis_) lines *= out.dim[d];
    r_->bytes = static_cast<double>(lines) * (2.0 * static_cast<double>(size) + static_cast<double>(updates)) * element_bytes(dtype_);
    if (updates == 0) return copy(access_of("x", 0), access_of("y", 3));
    if (prefers_scan(lines, size, updates) && try_scan() == TN_OK) return status_;
    return walk();
  }

 private:
  // An operand in the space of lines (out's axes but the indexed one), updates, positions.
  Access access_of(const char* name, uint32_t operand) const {
    const tn_type& t = op_.type[operand];
    Access a;
    a.name = name, a.view = operand, a.writable = operand == 3;
    a.dtype = operand == 1 ? t.dtype : moved_;
    const int64_t w = operand == 1 ? 1 : words_;
    a.tail = w - 1;
    int64_t stride[TN_MAX_RANK];
    broadcast_into(t, op_.type[3].rank, stride);
    int line = 0;
    for (int d = 0; d < op_.type[3].rank; ++d)
      if (d != axis_) a.stride[line++] = stride[d] * w;
    a.stride[line + (operand == 1 || operand == 2 ? 0 : 1)] = stride[axis_] * w;
    return a;
  }
  Space space_of(std::vector<Access> access, int* lines) const {
    Space s;
    const tn_type& out = op_.type[3];
    for (int d = 0; d < out.rank; ++d)
      if (d != axis_) s.add_axis(out.dim[d]);
    *lines = s.rank;
    s.add_axis(std::max<int64_t>(op_.type[2].dim[axis_], 1));
    s.add_axis(out.dim[axis_]);
    s.access = std::move(access);
    if (*lines == 0) {  // there is always a line
      for (int d = 2; d > 0; --d) s.dim[d] = s.dim[d - 1];
      s.dim[0] = 1, s.rank = 3, *lines = 1;
      for (Access& a : s.access) {
        for (int d = 2; d > 0; --d) a.stride[d] = a.stride[d - 1];
        a.stride[0] = 0;
      }
    }
    *lines = merge_axes(&s, 0, *lines);
    return s;
  }

  bool prefers_scan(int64_t lines, int64_t size, int64_t updates) const {
    if (updates <= 8) return true;
    if (caps_.device_class == DeviceClass::Processor) return false;
    if (updates <= 64) return true;
    return updates <= 65536 && lines < int64_t{caps_.compute_units} * 64 &&
           static_cast<double>(lines) * static_cast<double>(size) * static_cast<double>(updates) < 4e9;
  }

  tn_status pieces(const Space& s, const int64_t* block, const std::function<tn_status(const Piece&, Step*)>& make) {
    tn_status status = TN_OK;
    for_pieces(s, block, [&](const Piece& p) {
      if (status != TN_OK) return;
      Step step;
      status = make(p, &step);
      if (status == TN_OK) r_->steps.push_back(std::move(step));
    });
    return status;
  }

  // Element operand[index] as held, and a statement that stores a held value.
  std::string held(const Access& a, const std::string& index) const {
    const std::string x = load_text(a.dtype, a.name, index);
    return is_narrow_float(a.dtype) ? widen_text(a.dtype, x) : cast_text(a.dtype, fold_.held, x);
  }
  std::string put(const Access& a, const std::string& index, const std::string& value) const {
    return store_text(a.dtype, a.name, index, is_narrow_float(a.dtype) ? narrow_text(a.dtype, value) : cast_text(fold_.held, a.dtype, value));
  }
  std::string move(const std::string& to, const std::string& at, const std::string& from, const std::string& from_at) const {
    std::string out;
    for (uint32_t w = 0; w < words_; ++w) out += to + "[" + at + " + " + std::to_string(w) + "u] = " + from + "[" + from_at + " + " + std::to_string(w) + "u]; ";
    return out;
  }
  void common(StepBuilder* step) const {
    step->spec.can_fail = true;
    if (set_) return;
    step->spec.helpers += join_function(fold_);
    step->spec.needs |= needs_of(fold_.held);
  }

  tn_status try_scan() {
    int lines = 0;
    const Space s = space_of({access_of("data", 0), access_of("index_", 1), access_of("upd", 2), access_of("y", 3)}, &lines);
    // Positions take the place of the last thread axis: threads count lines, then positions.
    int64_t block[kMaxAxes];
    const int k = lines, d = lines + 1;
    if (!cut(s, limits_of(caps_), block, [&](const int64_t* b) { return b[d] * count(b, lines) > int64_t{1} << 30 ? d : -1; }) || block[k] != s.dim[k]) return TN_E_UNSUPPORTED;
    status_ = pieces(s, block, [&](const Piece& p, Step* out) { return scan_step(s, p, lines, out); });
    return TN_OK;
  }
  static int64_t count(const int64_t* size, int end) {
    int64_t n = 1;
    for (int d = 0; d < end; ++d) n *= size[d];
    return n;
  }

  tn_status scan_step(const Space& s, const Piece& p, int lines, Step* out) {
    StepBuilder step("scatter");
    for (const Access& a : s.access) bind_operand(&step, s, a, p), bind_strides(&step, a, "d", 0, lines + 2);
    bind_sizes(&step, p, "d", 0, lines);
    bind_index(&step, {s.dim[lines + 1]}, p, lines + 1);
    step.scalar_u32("n_updates", static_cast<uint32_t>(p.size[lines]));
    common(&step);
    Piece threads = p;  // lines, then positions
    threads.size[lines] = p.size[lines + 1];
    const uint64_t groups = launch_threads(caps_, &step, threads, lines + 1);
    const std::string k_stride = "_d" + std::to_string(lines), d_stride = "_d" + std::to_string(lines + 1);
    std::string& body = step.spec.body;
    body = kThreadNumber;
    body += "  const tn_uint mine = number % piece_size, owner = number / piece_size;\n";
    for (const Access& a : s.access) body += "  tn_uint at_" + a.name + " = " + start_text(a.name) + ";\n";
    body += "  " + walk_text({"data", "index_", "upd", "y"}, "owner", "d", lines);
    body += "  at_data += mine * data" + d_stride + "; at_y += mine * y" + d_stride + ";\n";
    body += set_ ? "  tn_uint from = 0u;\n  bool hit = false;\n" : std::string("  ") + register_type(fold_.held) + " acc = " + held(s.access[0], "at_data") + ";\n";
    body += "  for (tn_uint k = 0u; k < n_updates; k++) {\n" + position_text(s.access[1].dtype, "k");
    body += "  if (inside && position - piece_first == mine) { ";
    body += set_ ? "hit = true; from = at_upd;" : "acc = tn_join(acc, " + held(s.access[2], "at_upd") + ");";
    body += " }\n  at_index_ += index_" + k_stride + "; at_upd += upd" + k_stride + ";\n  }\n";
    body += set_ ? "  if (hit) { " + move("y", "at_y", "upd", "from") + "} else { " + move("y", "at_y", "data", "at_data") + "}\n  }\n" : "  " + put(s.access[3], "at_y", "acc") + "\n  }\n";
    if (!spread_groups(&step, caps_, groups)) return too_many_groups(diag_, "scatter", groups);
    *out = step.finish();
    return TN_OK;
  }

  tn_status walk() {
    const Access data = access_of("x", 0), y = access_of("y", 3);
    if (!narrow_) {
      if (tn_status s = copy(data, y); s != TN_OK) return s;
      return apply(y);
    }
    // The f32 copy: dense, lines first.
    Access wide = y;
    wide.view = r_->n_views, wide.dtype = TN_F32, wide.writable = true;
    int64_t below = 1;
    int line = op_.type[3].rank - 1;
    wide.stride[line + 1] = 1, below = op_.type[3].dim[axis_];
    for (int d = op_.type[3].rank - 1; d >= 0; --d)
      if (d != axis_) wide.stride[--line] = below, below *= op_.type[3].dim[d];
    r_->workspace_bytes = static_cast<uint64_t>(below) * 4;
    Access to = wide, from = wide;
    from.name = "x", from.writable = false;
    if (tn_status s = copy(data, to); s != TN_OK) return s;
    if (tn_status s = apply(wide); s != TN_OK) return s;
    return copy(from, y);
  }

  // to = from over the whole output; between an f16 and an f32 operand with conversion.
  tn_status copy(Access from, Access to) {
    int lines = 0;
    Space s = space_of({from, to}, &lines);
    s.dim[lines] = 1;  // no updates here
    int64_t block[kMaxAxes];
    if (!cut(s, limits_of(caps_), block, [&](const int64_t* b) { return count_demand(b, lines + 2); })) return cannot_bind(caps_, diag_, "scatter");
    return pieces(s, block, [&](const Piece& p, Step* out) {
      StepBuilder step("scatter_copy");
      for (const Access& a : s.access) bind_operand(&step, s, a, p), bind_strides(&step, a, "d", 0, lines + 2);
      bind_sizes(&step, p, "d", 0, lines + 2);
      const uint64_t groups = launch_threads(caps_, &step, p, lines + 2);
      std::string& body = step.spec.body;
      body = kThreadNumber;
      for (const Access& a : s.access) body += "  tn_uint at_" + a.name + " = " + start_text(a.name) + ";\n";
      body += "  " + walk_text({"x", "y"}, "number", "d", lines + 2);
      const Access &a = s.access[0], &b = s.access[1];
      if (a.dtype == b.dtype) body += "  " + move("y", "at_y", "x", "at_x") + "\n  }\n";
      else body += std::string("  const float value = ") + widen_text(a.dtype, load_text(a.dtype, "x", "at_x")) + ";\n  " + store_text(b.dtype, "y", "at_y", narrow_text(b.dtype, "value")) + "\n  }\n";
      if (!spread_groups(&step, caps_, groups)) return too_many_groups(diag_, "scatter", groups);
      *out = step.finish();
      return tn_status{TN_OK};
    });
  }

  // Updates into `target`, which holds data already. Pieces along the updates come in order, before those of other positions.
  tn_status apply(const Access& target) {
    int lines = 0;
    Space s = space_of({access_of("index_", 1), access_of("upd", 2), target}, &lines);
    int64_t block[kMaxAxes];
    if (!cut(s, limits_of(caps_), block, [&](const int64_t* b) { return count_demand(b, lines); })) return cannot_bind(caps_, diag_, "scatter");
    return pieces(s, block, [&](const Piece& p, Step* out) {
      StepBuilder step("scatter");
      for (const Access& a : s.access) bind_operand(&step, s, a, p), bind_strides(&step, a, "d", 0, lines + 2);
      bind_sizes(&step, p, "d", 0, lines);
      bind_index(&step, {s.dim[lines + 1]}, p, lines + 1);
      step.scalar_u32("n_updates", static_cast<uint32_t>(p.size[lines]));
      common(&step);
      const uint64_t groups = launch_threads(caps_, &step, p, lines);
      const std::string k_stride = "_d" + std::to_string(lines), d_stride = "_d" + std::to_string(lines + 1);
      const Access &u = s.access[1], &t = s.access[2];
      std::string& body = step.spec.body;
      body = kThreadNumber;
      for (const Access& a : s.access) body += "  tn_uint at_" + a.name + " = " + start_text(a.name) + ";\n";
      body += "  " + walk_text({"index_", "upd", "y"}, "number", "d", lines);
      body += "  for (tn_uint k = 0u; k < n_updates; k++) {\n" + position_text(s.access[0].dtype, "k");
      body += "  if (inside) {\n    const tn_uint to = at_y + (position - piece_first) * y" + d_stride + ";\n    ";
      if (set_) body += move("y", "to", "upd", "at_upd");
      else body += std::string("const ") + register_type(fold_.held) + " joined = tn_join(" + held(t, "to") + ", " + held(u, "at_upd") + "); " + put(t, "to", "joined");
      body += "\n  }\n  at_index_ += index_" + k_stride + "; at_upd += upd" + k_stride + ";\n  }\n  }\n";
      if (!spread_groups(&step, caps_, groups)) return too_many_groups(diag_, "scatter", groups);
      *out = step.finish();
      return tn_status{TN_OK};
    });
  }

  const Caps& caps_;
  const tn_op& op_;
  Recipe* r_;
  tn_diag* diag_;
  int axis_ = 0;
  int64_t mode_ = 0;
  uint8_t dtype_ = 0, moved_ = 0;
  uint32_t words_ = 1;
  bool set_ = false, narrow_ = false;
  Fold fold_;
  tn_status status_ = TN_OK;
};

tn_status build(const Caps& caps, const tn_op& op, Recipe* r, tn_diag* diag) { return Builder(caps, op, r, diag).run(); }

tn_status supports(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) {
  if (tn_status s = index_supports(caps, "scatter", op, 4, diag); s != TN_OK) return s;
  if (int_attr(op, TN_KEY_MODE, TN_SCATTER_SET) == TN_SCATTER_SET) return TN_OK;
  const uint32_t d = op.type[3].dtype;
  if (d == TN_C64 || d == TN_C128)
    return refuse(diag, TN_E_UNSUPPORTED, "scatter: complex elements can only be set\nwhy: mode %lld combines values\ntry: scatter real and imaginary parts", static_cast<long long>(int_attr(op, TN_KEY_MODE, 0)));
  uint64_t wanted = element_bytes(d) == 8 ? uint64_t{1} << d : 0;
  if (d == TN_F64) wanted |= uint64_t{1} << TN_U64;
  if ((wanted & ~caps.arithmetic) != 0)
    return refuse(diag, TN_E_UNSUPPORTED, "scatter: the device does not compute with these elements\nwhy: types 0x%llx are needed, the device has 0x%llx\ntry: cast to f32 or i32",
                  static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(caps.arithmetic));
  return TN_OK;
}
std::vector<tn_constraint> constraints(const Caps& caps) { return index_constraints(caps); }

constexpr RowCode kRows[] = {{{"scatter", TN_OPID_SCATTER, TN_TIER_NATIVE}, constraints, supports, build}};

}  // namespace

std::span<const RowCode> scatter_rows() { return kRows; }

}  // namespace tenon::gpu
