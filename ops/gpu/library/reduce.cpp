// ops/gpu/library/reduce.cpp - a monoid over some axes: how the work is cut, and which form each part takes.
//
// One pass where that keeps the device busy and every operand can be bound. Otherwise the reduced space is cut (into pieces
// that can be bound, and into chunks for parallelism); each leaves a part for each output in the workspace, and a second pass
// folds the parts in their order. Nothing depends on which thread is first, so results are the same every time.
#include <algorithm>
#include <bit>

#include "ops/gpu/library/reduce_text.h"
#include "ops/gpu/program.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

constexpr uint64_t bit(uint32_t d) { return uint64_t{1} << d; }
constexpr uint64_t kTypes = bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) |
                            bit(TN_I64) | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);
constexpr int64_t kShort = 64;  // folded by one thread without thinking further

bool uses_index(const tn_program* p) {
  for (uint32_t i = 0; p != nullptr && i < p->n_inst; ++i)
    if (p->inst[i].op == TN_OP_INDEX) return true;
  return false;
}
uint32_t value_dtype(const tn_op& op) {
  const tn_program* pre = program_attr(op, TN_KEY_PRE);
  return compute_type(pre != nullptr ? pre->inst[pre->out[0]].type : op.type[0].dtype);
}
int64_t product(const int64_t* dim, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= dim[d];
  return n;
}
uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

// The op's space: kept axes, then reduced ones; inputs, then outputs.
tn_status op_space(const tn_op& op, ReduceStep* r, tn_diag* diag) {
  int rank = 0;
  for (int k = 0; k < op.n_in; ++k) rank = std::max<int>(rank, op.type[k].rank);
  bool gone[TN_MAX_RANK] = {};
  const tn_attr* axes = nullptr;
  for (int i = 0; i < op.n_attr; ++i)
    if (op.attr[i].key == TN_KEY_AXES) axes = &op.attr[i];
  for (int d = 0; d < rank && axes == nullptr; ++d) gone[d] = true;
  for (uint64_t i = 0; axes != nullptr && i < axes->len; ++i) {
    const int64_t axis = static_cast<const int64_t*>(axes->v.p)[i];
    if (axis < 0 || axis >= rank)
      return refuse(diag, TN_E_SHAPE, "reduce: axis %lld does not exist\nwhy: the input has rank %d\ntry: name an axis below its rank", static_cast<long long>(axis), rank);
    gone[axis] = true;
  }
  const bool keep = int_attr(op, TN_KEY_KEEPDIMS, 0) != 0;
  int64_t stride[TN_PROGRAM_MAX_IN][TN_MAX_RANK];
  Space& s = r->space;
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) {
    const bool input = k < op.n_in;
    Access a;
    a.name = (input ? "x_" : "y_") + std::to_string(input ? k : k - op.n_in);
    a.view = k, a.dtype = op.type[k].dtype, a.writable = !input;
    if (input) broadcast_into(op.type[k], rank, stride[k]);
    s.access.push_back(a);
  }
  for (int reduced = 0; reduced < 2; ++reduced) {
    int n_kept = 0;
    for (int d = 0; d < rank; ++d) {
      if (gone[d] != (reduced != 0)) continue;
      int64_t size = 1;
      for (int k = 0; k < op.n_in; ++k)
        if (const int own = d - (rank - op.type[k].rank); own >= 0 && op.type[k].dim[own] != 1) size = op.type[k].dim[own];
      const int axis = s.add_axis(size);
      for (int k = 0; k < op.n_in; ++k) s.access[static_cast<size_t>(k)].stride[axis] = stride[k][d];
      if (reduced != 0) continue;
      for (int k = 0; k < op.n_out; ++k) s.access[static_cast<size_t>(op.n_in + k)].stride[axis] = op.type[op.n_in + k].stride[keep ? d : n_kept];
      ++n_kept;
    }
    const int begin = reduced != 0 ? r->kept : 0;
    if (s.rank == begin) s.add_axis(1);
    (reduced != 0 ? r->gone : r->kept) = merge_axes(&s, begin, s.rank);
  }
  r->inputs = op.n_in;
  return TN_OK;
}

uint32_t few_threads(const Caps& caps) { return std::bit_floor(std::clamp<uint32_t>(std::min(caps.max_threads, caps.max_group[0]), 1, 64)); }

// How a pass runs on this device: form, threads, lanes and chunks, from its sizes and strides.
void choose(const Caps& caps, int64_t kept, int64_t gone, ReduceStep* r, bool may_chunk) {
  const Access& x = r->space.access[0];
  const int64_t along = std::llabs(x.stride[r->kept + r->gone - 1]), across = std::llabs(x.stride[r->kept - 1]);
  const bool side_by_side = kept > 1 && across != 0 && across < along;  // neighbours in memory are neighbouring outputs
  const bool processor = caps.device_class == DeviceClass::Processor;
  r->threads = few_threads(caps);
  const int64_t busy = processor ? int64_t{caps.compute_units} * 4 : int64_t{caps.compute_units} * 1024;
  int64_t chunks = 1;
  if (processor) {
    r->lanes = r->fold.arg || side_by_side ? 1 : 16;
    r->threads = side_by_side ? std::min<uint32_t>(r->threads, 16) : 1;
    if (kept < busy && gone > 32768) chunks = std::min(busy / std::max<int64_t>(kept, 1), gone / 16384);
  } else if (side_by_side || gone <= kShort) {
    if (kept < busy && gone > 4 * kShort) chunks = std::min(busy / std::max<int64_t>(kept, 1), gone / kShort);
  } else {
    const uint32_t widest = std::bit_floor(std::min({caps.max_threads, caps.max_group[0], 256u}));
    const uint64_t room = caps.local_bytes / (r->fold.arg ? 12 : 8);
    const uint32_t useful = static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(gone, 1024) + 3) / 4));
    r->grouped = room >= 2 && widest >= 2;
    if (r->grouped) r->threads = std::max(2u, std::min({widest, useful, static_cast<uint32_t>(std::bit_floor(std::min<uint64_t>(room, 256)))}));
    const int64_t groups = int64_t{caps.compute_units} * 4, least = int64_t{r->threads} * 16;
    if (kept < groups && gone > 2 * least) chunks = std::min(groups / std::max<int64_t>(kept, 1), gone / least);
  }
  r->chunks = may_chunk ? static_cast<uint32_t>(std::clamp<int64_t>(chunks, 1, 1024)) : 1;
}

// Blocks in which all operands fit and neither count leaves 31 bits.
bool cut_pass(const Caps& caps, const ReduceStep& r, int64_t* block, bool keep_gone) {
  return cut(r.space, limits_of(caps), block, [&](const int64_t* b) {
    auto widest = [&](int begin, int end) { return static_cast<int>(std::max_element(b + begin, b + end) - b); };
    const int all = r.kept + r.gone;
    if (product(b, 0, r.kept) * r.chunks > int64_t{1} << 30) return widest(0, r.kept);
    if (!keep_gone && product(b, r.kept, all) > int64_t{1} << 30) return widest(r.kept, all);
    return -1;
  });
}

class Builder {
 public:
  Builder(const Caps& caps, const tn_op& op, Recipe* out, tn_diag* diag) : caps_(caps), op_(op), out_(out), diag_(diag) {}

  tn_status run() {
    if (tn_status s = op_space(op_, &first_, diag_); s != TN_OK) return s;
    first_.fold = fold_of(int_attr(op_, TN_KEY_MONOID, TN_MONOID_SUM), value_dtype(op_), caps_);
    first_.pre = program_attr(op_, TN_KEY_PRE), first_.post = program_attr(op_, TN_KEY_POST);
    kept_ = product(first_.space.dim, 0, first_.kept), gone_ = product(first_.space.dim, first_.kept, first_.space.rank);
    cost();
    if (gone_ == 0) return identities();
    choose(caps_, kept_, gone_, &first_, true);
    int64_t block[kMaxAxes];
    if (!cut_pass(caps_, first_, block, false)) return too_far();
    if (first_.chunks == 1 && product(block, first_.kept, first_.space.rank) == gone_) return pass(first_, block, {});
    return two_passes(block);
  }

 private:
  void cost() {
    for (int k = 0; k < op_.n_in; ++k) {
      double n = element_bytes(op_.type[k].dtype);
      for (int d = 0; d < op_.type[k].rank; ++d) n *= static_cast<double>(op_.type[k].dim[d]);
      out_->bytes += n;
    }
    out_->flops = static_cast<double>(kept_) * static_cast<double>(gone_) * (first_.pre != nullptr ? 1 + first_.pre->n_inst : 1);
  }
  tn_status too_far() const {
    return refuse(diag_, TN_E_UNSUPPORTED, "reduce: an operand cannot be bound\nwhy: a binding reaches %llu bytes\ntry: use another device",
                  static_cast<unsigned long long>(caps_.binding_bytes));
  }

  // An empty axis: no input has an element that could be bound.
  tn_status identities() {
    first_.space.access.erase(first_.space.access.begin(), first_.space.access.begin() + first_.inputs);
    first_.inputs = 0, first_.pre = nullptr;
    for (int d = first_.kept; d < first_.space.rank; ++d) first_.space.dim[d] = 1;
    int64_t block[kMaxAxes];
    if (!cut_pass(caps_, first_, block, false)) return too_far();
    first_.threads = few_threads(caps_);
    empty_ = true;
    return pass(first_, block, {});
  }

  // Steps of one pass. parts: for each piece of the reduced space, the number of its first part.
  tn_status pass(const ReduceStep& shape, const int64_t* block, const std::function<void(ReduceStep*, const Piece&)>& prepare) {
    tn_status status = TN_OK;
    for_pieces(shape.space, block, [&](const Piece& p) {
      if (status != TN_OK) return;
      ReduceStep r = shape;
      if (prepare) prepare(&r, p);
      Step step;
      status = reduce_step(caps_, r, p, static_cast<uint32_t>(p.first[r.kept]), empty_, &step, diag_);
      if (status == TN_OK) out_->steps.push_back(std::move(step));
    });
    return status;
  }

  // Number of the piece among those of the reduced space.
  static int64_t piece_number(const ReduceStep& r, const int64_t* block, const Piece& p) {
    int64_t n = 0;
    for (int d = r.kept; d < r.space.rank; ++d) n = n * ((r.space.dim[d] + block[d] - 1) / block[d]) + p.first[d] / block[d];
    return n;
  }

  tn_status two_passes(int64_t* block) {
    const int64_t outputs = kept_;
    ReduceStep r = first_;
    r.space.access.resize(static_cast<size_t>(r.inputs));
    r.to_parts = true, r.post = nullptr;
    int64_t pieces = 1;
    for (int d = r.kept; d < r.space.rank; ++d) pieces *= (r.space.dim[d] + block[d] - 1) / block[d];
    r.chunks = static_cast<uint32_t>(std::max<int64_t>(1, r.chunks / pieces));  // pieces are steps of their own already
    const int64_t parts = pieces * r.chunks;
    const uint64_t held = element_bytes(r.fold.held), places_at = round_up(static_cast<uint64_t>(outputs * parts) * held, 256);
    // Part p of output o lies at o * parts + p.
    auto part = [&](const char* name, uint8_t dtype, int64_t base) {
      Access a;
      a.name = name, a.view = out_->n_views, a.dtype = dtype, a.writable = true, a.base = base, a.tail = r.chunks - 1;
      int64_t below = parts;
      for (int d = r.kept - 1; d >= 0; --d) a.stride[d] = below, below *= r.space.dim[d];
      return a;
    };
    r.space.access.push_back(part("part", r.fold.held, 0));
    if (r.fold.arg) r.space.access.push_back(part("part_place", TN_U32, static_cast<int64_t>(places_at)));
    out_->workspace_bytes = places_at + (r.fold.arg ? round_up(static_cast<uint64_t>(outputs * parts) * 4, 256) : 0);
    // Parts depend on kept axes only, so cutting for them as well leaves the pieces of the reduced space as they are.
    int64_t finer[kMaxAxes];
    if (!cut_pass(caps_, r, finer, false)) return too_far();
    for (int d = r.kept; d < r.space.rank; ++d) finer[d] = block[d];
    const tn_status s = pass(r, finer, [&](ReduceStep* step, const Piece& p) {
      const int64_t number = piece_number(*step, finer, p) * step->chunks;
      for (size_t k = static_cast<size_t>(step->inputs); k < step->space.access.size(); ++k) {
        Access& a = step->space.access[k];
        a.base += number * element_bytes(a.dtype);
      }
    });
    return s != TN_OK ? s : last_pass(parts, static_cast<int64_t>(places_at));
  }

  tn_status last_pass(int64_t parts, int64_t places_at) {
    ReduceStep r;
    r.fold = first_.fold, r.post = first_.post, r.from_parts = true;
    r.kept = first_.kept, r.gone = 1, r.inputs = r.fold.arg ? 2 : 1;
    for (int d = 0; d < r.kept; ++d) r.space.add_axis(first_.space.dim[d]);
    r.space.add_axis(parts);
    auto part = [&](const char* name, uint8_t dtype, int64_t base) {
      Access a;
      a.name = name, a.view = out_->n_views, a.dtype = dtype, a.base = base;
      int64_t below = 1;
      for (int d = r.kept; d >= 0; --d) a.stride[d] = below, below *= r.space.dim[d];
      return a;
    };
    r.space.access.push_back(part("x_0", r.fold.held, 0));
    if (r.fold.arg) r.space.access.push_back(part("x_1", TN_U32, places_at));
    for (size_t k = static_cast<size_t>(first_.inputs); k < first_.space.access.size(); ++k) {
      Access y = first_.space.access[k];
      for (int d = r.kept; d < kMaxAxes; ++d) y.stride[d] = 0;
      r.space.access.push_back(y);
    }
    r.kept = merge_axes(&r.space, 0, r.kept);
    choose(caps_, kept_, parts, &r, false);
    int64_t block[kMaxAxes];
    if (!cut_pass(caps_, r, block, true) || block[r.kept] != parts)
      return refuse(diag_, TN_E_UNSUPPORTED, "reduce: too many parts\nwhy: %lld parts of one output, a binding reaches %llu bytes\ntry: reduce in two calls",
                    static_cast<long long>(parts), static_cast<unsigned long long>(caps_.binding_bytes));
    return pass(r, block, {});
  }

  const Caps& caps_;
  const tn_op& op_;
  Recipe* out_;
  tn_diag* diag_;
  ReduceStep first_;
  int64_t kept_ = 1, gone_ = 1;
  bool empty_ = false;
};

tn_status build(const Caps& caps, const tn_op& op, Recipe* out, tn_diag* diag) { return Builder(caps, op, out, diag).run(); }

tn_status supports(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) {
  const int64_t monoid = int_attr(op, TN_KEY_MONOID, TN_MONOID_SUM);
  const bool arg = monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN;
  const uint32_t value = value_dtype(op);
  if ((monoid == TN_MONOID_AND || monoid == TN_MONOID_OR) && (value == TN_F32 || value == TN_F64))
    return refuse(diag, TN_E_UNSUPPORTED, "reduce: monoid %lld has no meaning over floats\nwhy: and, or take integers and bool\ntry: use another monoid, or cast", static_cast<long long>(monoid));
  uint64_t wanted = element_bytes(value) == 8 ? bit(value) : 0;
  if (value == TN_F64) wanted |= bit(TN_U64);  // NaNs and infinities are told by their bits
  if (arg) wanted |= bit(TN_I64);
  if ((wanted & ~caps.arithmetic) != 0)
    return refuse(diag, TN_E_UNSUPPORTED, "reduce: the device does not compute with what is accumulated\nwhy: types 0x%llx are needed, the device has 0x%llx\ntry: cast to f32 or i32",
                  static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(caps.arithmetic));
  const uint32_t bindings = uint32_t{op.n_in} + op.n_out + 1;
  if (bindings > caps.max_bindings || uint32_t{op.n_in} + 3 > caps.max_bindings)
    return refuse(diag, TN_E_UNSUPPORTED, "reduce: more operands than the device can bind\nwhy: %u operands and their parameters, %u bindings\ntry: split the program", bindings - 1, caps.max_bindings);
  for (uint32_t key : {uint32_t{TN_KEY_PRE}, uint32_t{TN_KEY_POST}}) {
    const tn_program* p = program_attr(op, key);
    if (uses_index(p))
      return refuse(diag, TN_E_UNSUPPORTED, "reduce: INDEX inside its programs\nwhy: positions count in the output, a reduction has none for each input\ntry: make the index with iota and pass it as an input");
    if (p == nullptr) continue;
    if (tn_status s = program_supported(*p, caps, diag); s != TN_OK) return s;
  }
  if (!arg) return TN_OK;
  ReduceStep r;
  if (tn_status s = op_space(op, &r, diag); s != TN_OK) return s;
  const int64_t size = product(r.space.dim, r.kept, r.space.rank);
  if (size == 0) return refuse(diag, TN_E_SHAPE, "reduce: argmax or argmin over an empty axis\nwhy: the axis has 0 elements, there is no index to give\ntry: skip empty inputs");
  if (size >= (int64_t{1} << 32) - 1)
    return refuse(diag, TN_E_UNSUPPORTED, "reduce: an axis too long for argmax and argmin\nwhy: %lld elements, positions are held in 32 bits\ntry: cut the axis", static_cast<long long>(size));
  return TN_OK;
}

std::vector<tn_constraint> constraints(const Caps& caps) { return basic_constraints(caps, kTypes); }

constexpr RowCode kRows[] = {{{"reduce", TN_OPID_REDUCE, TN_TIER_NATIVE}, constraints, supports, build}};

}  // namespace

std::span<const RowCode> reduce_rows() { return kRows; }

}  // namespace tenon::gpu
