// ops/gpu/library/matmul.cpp - matrix products: which rows there are, and how a product is cut.
//
// block: processors, f32 sums. tiled: GPUs, where both matrix sides fill a tile. direct: everything else. All cut the product so
// that every operand can be bound; where the depth is cut (for binding, or to keep a GPU busy) accumulators go to the workspace
// and a last step adds them up in order.
#include <algorithm>
#include <cstdlib>

#include "ops/gpu/library/matmul_text.h"
#include "ops/gpu/program.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

constexpr uint64_t bit(uint32_t d) { return uint64_t{1} << d; }
constexpr uint64_t kFloats = bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);
constexpr uint64_t kInts = bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) | bit(TN_I64);
constexpr uint64_t kAny = kFloats | kInts | bit(TN_BOOL);
constexpr uint64_t kBlockTypes = kFloats & ~bit(TN_F64);  // vectors hold f32

uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }
int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
int64_t product(const int64_t* dim, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= dim[d];
  return n;
}

void set_types(const tn_op& op, MatmulShape* s) {
  const uint32_t a = op.type[0].dtype, out = op.type[op.n_in].dtype;
  if (!is_int(a)) {
    s->held = s->value = static_cast<uint8_t>(compute_type(a));
    return;
  }
  const bool wide = element_bytes(a) == 8 || element_bytes(out) == 8;
  s->held = wide ? TN_U64 : TN_U32;
  s->value = static_cast<uint8_t>(wide ? (a == TN_U64 ? TN_U64 : TN_I64) : (a == TN_U32 ? TN_U32 : TN_I32));
}

// Batch axes join each other, and m where b is the same for all of a batch axis.
void merge_batches(MatmulShape* s) {
  Space& sp = s->space;
  s->batches = merge_axes(&sp, 0, s->batches);
  const int last = s->batches - 1, m = last + 1;
  bool one = s->batches == 1 && sp.access[1].stride[last] == 0 && sp.dim[last] > 1;
  for (size_t k = 0; k < sp.access.size(); ++k)
    one = one && (k == 1 || sp.dim[m] == 1 || sp.access[k].stride[last] == sp.access[k].stride[m] * sp.dim[m]);
  if (!one) return;
  for (Access& x : sp.access) {
    if (sp.dim[m] == 1) x.stride[m] = x.stride[last];
    x.stride[last] = 0;
  }
  sp.access[1].stride[m] = 0;
  sp.dim[m] *= sp.dim[last], sp.dim[last] = 1;
}

MatmulShape shape_of(const tn_op& op) {
  MatmulShape s;
  const tn_type &a = op.type[0], &out = op.type[op.n_in];
  const int rank = out.rank;
  s.batches = rank - 2;
  for (int d = 0; d < rank; ++d) s.space.add_axis(out.dim[d]);
  s.space.add_axis(a.dim[a.rank - 1]);
  if (s.batches == 0) {  // bodies always have a batch
    for (int d = 2; d >= 0; --d) s.space.dim[d + 1] = s.space.dim[d];
    s.space.dim[0] = 1, s.space.rank = 4, s.batches = 1;
  }
  const int shift = s.batches - (rank - 2);
  const std::pair<const char*, uint32_t> fixed[] = {{"a", 0}, {"b", 1}, {"y", op.n_in}};
  auto add = [&](std::string name, uint32_t operand) {
    const tn_type& t = op.type[operand];
    Access x;
    x.name = std::move(name), x.view = operand, x.dtype = t.dtype, x.writable = operand == op.n_in;
    int64_t stride[TN_MAX_RANK];
    broadcast_into(t, rank, stride);
    for (int d = 0; d < rank; ++d) x.stride[d + shift] = stride[d];
    // The two matrix axes of a and b are never broadcast.
    if (operand == 0) x.stride[s.m_axis()] = t.stride[t.rank - 2], x.stride[s.n_axis()] = 0, x.stride[s.k_axis()] = t.stride[t.rank - 1];
    if (operand == 1) x.stride[s.m_axis()] = 0, x.stride[s.n_axis()] = t.stride[t.rank - 1], x.stride[s.k_axis()] = t.stride[t.rank - 2];
    s.space.access.push_back(x);
  };
  for (auto [name, operand] : fixed) add(name, operand);
  for (uint32_t k = 2; k < op.n_in; ++k) add("z" + std::to_string(k), k);
  s.post = program_attr(op, TN_KEY_POST);
  set_types(op, &s);
  merge_batches(&s);
  return s;
}

enum class Kind { Block, Tiled, Direct };

// Best first. All have their part of the space of tiles between 32 threads with 8 KiB and 256 threads with 34 KiB.
constexpr Tile kTiles[] = {{128, 128, 16, 8, 8}, {64, 64, 16, 4, 4}, {64, 64, 8, 8, 8}, {32, 64, 16, 4, 8}, {32, 32, 16, 4, 8}, {16, 32, 16, 4, 4}, {16, 16, 8, 2, 4}};

bool tile_fits(const Caps& caps, const Tile& t, uint8_t held) {
  return t.threads() <= caps.max_threads && t.bn / t.tn <= caps.max_group[0] && t.bm / t.tm <= caps.max_group[1] && tile_local_bytes(t, held) <= caps.local_bytes;
}
// The largest tile that still gives the device enough groups; else the one that gives the most.
const Tile* pick_tile(const Caps& caps, const MatmulShape& s) {
  const Tile* last = nullptr;
  for (const Tile& t : kTiles) {
    if (!tile_fits(caps, t, s.held)) continue;
    last = &t;
    const int64_t groups = ceil_div(s.space.dim[s.m_axis()], t.bm) * ceil_div(s.space.dim[s.n_axis()], t.bn) * product(s.space.dim, 0, s.batches);
    if (groups >= int64_t{caps.compute_units} * 2) return &t;
  }
  return last;
}

class Builder {
 public:
  Builder(const Caps& caps, const tn_op& op, Kind kind, Recipe* out, tn_diag* diag) : caps_(caps), kind_(kind), out_(out), diag_(diag), s_(shape_of(op)) {}

  tn_status run() {
    cost();
    if (s_.space.dim[s_.k_axis()] == 0) return zeros();
    plan();
    const Limits limits = limits_of(caps_);
    int64_t block[kMaxAxes];
    if (!cut(s_.space, limits, block, [&](const int64_t* b) { return too_much(b, 0); })) return too_far();
    const int64_t depth_pieces = ceil_div(s_.space.dim[s_.k_axis()], block[s_.k_axis()]);
    parts_ = depth_pieces * s_.slices;
    if (parts_ > 1) {
      // Cut further for the parts; the depth stays as it is.
      const int64_t depth = block[s_.k_axis()];
      auto demand = [&](const int64_t* b) {
        int64_t cut_depth[kMaxAxes];
        std::copy_n(b, kMaxAxes, cut_depth);
        cut_depth[s_.k_axis()] = depth;
        return too_much(cut_depth, static_cast<uint64_t>(parts_));
      };
      if (!cut(s_.space, limits, block, demand)) return too_far();
      block[s_.k_axis()] = depth;
    }
    return pieces(block);
  }

 private:
  void cost() {
    const double m = static_cast<double>(product(s_.space.dim, 0, s_.batches + 1)), n = static_cast<double>(s_.space.dim[s_.n_axis()]), k = static_cast<double>(s_.space.dim[s_.k_axis()]);
    out_->flops = 2 * m * n * k;
    out_->bytes = (m * k + k * n) * element_bytes(s_.space.access[0].dtype) + m * n * element_bytes(s_.space.access[2].dtype);
  }
  tn_status too_far() const {
    return refuse(diag_, TN_E_UNSUPPORTED, "matmul: an operand cannot be bound\nwhy: a binding reaches %llu bytes\ntry: use another device", static_cast<unsigned long long>(caps_.binding_bytes));
  }

  // k = 0: no element of a or b could be bound. The finishing step adds up no parts.
  tn_status zeros() {
    s_.space.dim[s_.k_axis()] = 1;
    const MatmulShape whole = s_;
    s_.space.access[0] = s_.space.access[1] = s_.space.access[2];  // only what is bound counts
    int64_t block[kMaxAxes];
    if (!cut(s_.space, limits_of(caps_), block, [&](const int64_t* b) { return too_much(b, 1); })) return too_far();
    s_ = whole;
    return each_piece(block, [&](const Piece& p) { return add_finish(p, 0); });
  }

  void plan() {
    if (kind_ == Kind::Tiled) tile_ = pick_tile(caps_, s_);
    const int64_t m = s_.space.dim[s_.m_axis()], n = s_.space.dim[s_.n_axis()], k = s_.space.dim[s_.k_axis()], batch = product(s_.space.dim, 0, s_.batches);
    int64_t want = 1, least = 1;
    if (kind_ == Kind::Tiled) want = int64_t{caps_.compute_units} * 2 / std::max<int64_t>(1, ceil_div(m, tile_->bm) * ceil_div(n, tile_->bn) * batch), least = 256;
    else if (kind_ == Kind::Direct && caps_.device_class == DeviceClass::Gpu) want = int64_t{caps_.compute_units} * 512 / std::max<int64_t>(1, m * n * batch), least = 256;
    s_.slices = static_cast<uint32_t>(std::clamp<int64_t>(std::min(want, k / least), 1, 64));
    if (kind_ == Kind::Block) plan_packing();
  }

  // b is packed unless its rows are contiguous f32; rows that lie a multiple of 2 KiB apart share few cache sets.
  void plan_packing() {
    const Access &a = s_.space.access[0], &b = s_.space.access[1];
    const int64_t n = s_.space.dim[s_.n_axis()], m = s_.space.dim[s_.m_axis()], row = std::llabs(b.stride[s_.k_axis()]) * 4;
    pack_a_ = a.dtype != TN_F32;
    pack_b_ = b.dtype != TN_F32 || b.stride[s_.n_axis()] != 1 || n < block_columns(caps_) || (m >= 64 && row >= 4096 && row % 1024 == 0);
  }
  uint64_t packed_bytes(bool left, const int64_t* size) const {
    const Access& x = s_.space.access[left ? 0 : 1];
    const int64_t width = left ? 1 : block_columns(caps_), lines = size[left ? s_.m_axis() : s_.n_axis()];
    return static_cast<uint64_t>((batched(x) ? product(size, 0, s_.batches) : 1) * ceil_div(lines, width) * width * size[s_.k_axis()]) * 4;
  }
  bool batched(const Access& x) const {
    for (int d = 0; d < s_.batches; ++d)
      if (x.stride[d] != 0 && s_.space.dim[d] > 1) return true;
    return false;
  }

  // The axis to halve because of counts, parts (0: not yet known) or packed operands; -1 when all is well.
  int too_much(const int64_t* b, uint64_t parts) const {
    const int m = s_.m_axis(), n = s_.n_axis(), k = s_.k_axis();
    const uint64_t limit = limits_of(caps_).bytes, batch = static_cast<uint64_t>(product(b, 0, s_.batches)), slices = s_.slices;
    auto widest = [&](int begin, int end) { return static_cast<int>(std::max_element(b + begin, b + end) - b); };
    if (kind_ != Kind::Direct && batch * slices > caps_.max_groups[2]) return widest(0, s_.batches);
    if (kind_ == Kind::Tiled && static_cast<uint64_t>(ceil_div(b[m], tile_->bm)) > caps_.max_groups[1]) return m;
    if (kind_ == Kind::Tiled && static_cast<uint64_t>(ceil_div(b[n], tile_->bn)) > caps_.max_groups[0]) return n;
    if (kind_ == Kind::Block && static_cast<uint64_t>(ceil_div(b[m], kBlockRows)) > caps_.max_groups[1]) return m;
    if (kind_ == Kind::Block && static_cast<uint64_t>(ceil_div(b[n], block_columns(caps_))) > caps_.max_groups[0]) return n;
    if (kind_ == Kind::Block && pack_a_ && packed_bytes(true, b) > limit) return parts == 0 ? std::max({m, k}, [&](int x, int y) { return b[x] < b[y]; }) : m;
    if (kind_ == Kind::Block && pack_b_ && packed_bytes(false, b) > limit) return parts == 0 ? std::max({n, k}, [&](int x, int y) { return b[x] < b[y]; }) : n;
    const uint64_t results = static_cast<uint64_t>(product(b, 0, k));
    const int largest = widest(0, k);
    if (results * slices > uint64_t{1} << 30) return largest;
    if (parts > 1 && results * parts * element_bytes(s_.held) > limit) return largest;
    return -1;
  }

  tn_status each_piece(const int64_t* block, const std::function<tn_status(const Piece&)>& f) {
    tn_status status = TN_OK;
    for_pieces(s_.space, block, [&](const Piece& p) {
      if (status == TN_OK) status = f(p);
    });
    return status;
  }

  tn_status pieces(const int64_t* block) {
    uint64_t workspace = 0;
    if (parts_ > 1) workspace = round_up(static_cast<uint64_t>(product(block, 0, s_.k_axis()) * parts_) * element_bytes(s_.held), 256);
    if (pack_a_) a_at_ = static_cast<int64_t>(workspace), workspace += round_up(packed_bytes(true, block), 256);
    if (pack_b_) b_at_ = static_cast<int64_t>(workspace), workspace += round_up(packed_bytes(false, block), 256);
    out_->workspace_bytes = workspace;
    // Depth is the last axis, so the parts of a piece of results are complete before the next piece begins and reuses their place.
    const int64_t depth_pieces = ceil_div(s_.space.dim[s_.k_axis()], block[s_.k_axis()]);
    int64_t number = 0;
    return each_piece(block, [&](const Piece& p) {
      if (tn_status status = add_product(p, number * s_.slices); status != TN_OK) return status;
      if (++number < depth_pieces) return tn_status{TN_OK};
      number = 0;
      return parts_ > 1 ? add_finish(p, parts_) : tn_status{TN_OK};
    });
  }

  Reach part_reach(const Piece& p, int64_t parts) const {
    return {out_->n_views, 0, static_cast<uint64_t>(product(p.size, 0, s_.k_axis()) * parts) * element_bytes(s_.held)};
  }

  tn_status add_finish(const Piece& p, int64_t parts) {
    Step step;
    const tn_status status = matmul_finish_step(caps_, s_, p, part_reach(p, parts), static_cast<uint32_t>(parts), &step, diag_);
    if (status == TN_OK) out_->steps.push_back(std::move(step));
    return status;
  }

  // The shape of one piece: where results go to, and operands that were packed.
  MatmulShape piece_shape(const Piece& p, int64_t first_part, bool packed) const {
    MatmulShape s = s_;
    auto dense = [&](Access* x, std::initializer_list<int> inner, bool over_batches) {
      int64_t below = 1;
      for (int d : inner) x->stride[d] = below, below *= p.size[d];
      for (int d = s.batches - 1; d >= 0; --d) x->stride[d] = over_batches ? below : 0, below *= over_batches ? p.size[d] : 1;
    };
    if (parts_ > 1) {
      Access part;
      part.name = "y", part.view = out_->n_views, part.dtype = s.held, part.writable = true;
      part.tail = (s.slices - 1) * product(p.size, 0, s.k_axis());
      dense(&part, {s.n_axis(), s.m_axis()}, true);
      part.base = first_part * product(p.size, 0, s.k_axis()) * element_bytes(s.held);
      s.space.access.resize(2);
      s.space.access.push_back(part);
      s.to_parts = true;
    }
    if (packed && pack_a_) {
      Access& a = s.space.access[0];
      const bool over = batched(a);
      a.view = out_->n_views, a.dtype = TN_F32, a.base = a_at_, a.stride[s.m_axis()] = 0, a.stride[s.k_axis()] = 0;
      dense(&a, {s.k_axis(), s.m_axis()}, over);
    }
    if (packed && pack_b_) {
      // Panels: within one, depth goes up by its width; the body adds the panel's start.
      Access& b = s.space.access[1];
      const bool over = batched(b);
      const int64_t width = block_columns(caps_), panels = ceil_div(p.size[s.n_axis()], width);
      b.view = out_->n_views, b.dtype = TN_F32, b.base = b_at_;
      b.stride[s.n_axis()] = 1, b.stride[s.k_axis()] = width;
      int64_t below = panels * width * p.size[s.k_axis()];
      b.tail = below;  // at least what the panels hold
      for (int d = s.batches - 1; d >= 0; --d) b.stride[d] = over ? below : 0, below *= over ? p.size[d] : 1;
      b.tail = panels * width * p.size[s.k_axis()] - (p.size[s.n_axis()] - 1) - (p.size[s.k_axis()] - 1) * width - 1;
    }
    return s;
  }

  // Reaches of a piece count from the piece's own origin where the operand lies in the workspace.
  static void at_own_origin(MatmulShape* s, const Piece& p, uint32_t workspace) {
    for (Access& x : s->space.access) {
      if (x.view != workspace) continue;
      for (int d = 0; d < s->space.rank; ++d) x.base -= p.first[d] * x.stride[d] * element_bytes(x.dtype);
    }
  }

  tn_status add_pack(const Piece& p, bool left) {
    const Access& x = s_.space.access[left ? 0 : 1];
    const PackJob job{&x, {out_->n_views, left ? a_at_ : b_at_, packed_bytes(left, p.size)}, left ? 1 : block_columns(caps_), left ? s_.m_axis() : s_.n_axis(), batched(x)};
    Step step;
    const tn_status status = matmul_pack_step(caps_, s_, p, job, &step, diag_);
    if (status == TN_OK) out_->steps.push_back(std::move(step));
    return status;
  }

  // A block is whole rows, and whole columns where b is not packed: what a cut leaves smaller is multiplied element by element.
  bool holds_a_block(const Piece& p) const { return p.size[s_.m_axis()] >= kBlockRows && (pack_b_ || p.size[s_.n_axis()] >= block_columns(caps_)); }

  tn_status add_product(const Piece& p, int64_t first_part) {
    const bool block = kind_ == Kind::Block && holds_a_block(p);
    for (bool left : {true, false})
      if (block && (left ? pack_a_ : pack_b_))
        if (tn_status status = add_pack(p, left); status != TN_OK) return status;
    MatmulShape s = piece_shape(p, first_part, block);
    at_own_origin(&s, p, out_->n_views);
    Step step;
    tn_status status = TN_OK;
    if (kind_ == Kind::Tiled) step = matmul_tiled_step(s, p, *tile_);
    else if (block) step = matmul_block_step(caps_, s, p, pack_b_);
    else status = matmul_direct_step(caps_, s, p, &step, diag_);
    if (status == TN_OK) out_->steps.push_back(std::move(step));
    return status;
  }

  const Caps& caps_;
  const Kind kind_;
  Recipe* out_;
  tn_diag* diag_;
  MatmulShape s_;
  const Tile* tile_ = nullptr;
  bool pack_a_ = false, pack_b_ = false;
  int64_t parts_ = 1, a_at_ = 0, b_at_ = 0;
};

bool uses_index(const tn_program* p) {
  for (uint32_t i = 0; p != nullptr && i < p->n_inst; ++i)
    if (p->inst[i].op == TN_OP_INDEX) return true;
  return false;
}

tn_status supports_any(const Caps& caps, const tn_op& op, tn_diag* diag) {
  const tn_type &a = op.type[0], &b = op.type[1];
  if (a.rank < 2 || b.rank < 2 || a.dim[a.rank - 1] != b.dim[b.rank - 2])
    return refuse(diag, TN_E_SHAPE, "matmul: inner dimensions differ\nwhy: ranks %d and %d, a[-1] is %lld, b[-2] is %lld\ntry: transpose or reshape one side", a.rank, b.rank,
                  static_cast<long long>(a.rank > 0 ? a.dim[a.rank - 1] : 0), static_cast<long long>(b.rank > 1 ? b.dim[b.rank - 2] : 0));
  MatmulShape s;
  set_types(op, &s);
  const uint64_t wanted = element_bytes(s.held) == 8 ? bit(s.held) : 0;
  if ((wanted & ~caps.arithmetic) != 0)
    return refuse(diag, TN_E_UNSUPPORTED, "matmul: the device does not compute with what is accumulated\nwhy: types 0x%llx are needed, the device has 0x%llx\ntry: cast to f32 or i32",
                  static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(caps.arithmetic));
  if (uint32_t{op.n_in} + 3 > caps.max_bindings)
    return refuse(diag, TN_E_UNSUPPORTED, "matmul: more operands than the device can bind\nwhy: %u operands, parts and parameters, %u bindings\ntry: split the program", uint32_t{op.n_in} + 1, caps.max_bindings);
  const tn_program* post = program_attr(op, TN_KEY_POST);
  if (uses_index(post))
    return refuse(diag, TN_E_UNSUPPORTED, "matmul: INDEX inside its program\nwhy: tiles do not count elements in the output's order\ntry: make the index with iota and pass it as an input");
  return post != nullptr ? program_supported(*post, caps, diag) : tn_status{TN_OK};
}

tn_status supports_direct(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) { return supports_any(caps, op, diag); }

// Sizes of the product as the recipe sees it.
struct Sizes { int64_t m, n, k; };
Sizes sizes(const tn_op& op) {
  const MatmulShape s = shape_of(op);
  return {s.space.dim[s.m_axis()], s.space.dim[s.n_axis()], s.space.dim[s.k_axis()]};
}
tn_status too_small(tn_diag* diag, const char* row, const Sizes& z, int64_t m, int64_t n) {
  return refuse(diag, TN_E_UNSUPPORTED, "%s: the matrices are too small\nwhy: m %lld, n %lld, k %lld; m of %lld, n of %lld and k of 4 are the least\ntry: leave it to matmul.direct", row,
                static_cast<long long>(z.m), static_cast<long long>(z.n), static_cast<long long>(z.k), static_cast<long long>(m), static_cast<long long>(n));
}

tn_status supports_tiled(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) {
  if (tn_status s = supports_any(caps, op, diag); s != TN_OK) return s;
  if (const Sizes z = sizes(op); z.m < 8 || z.n < 8 || z.k < 4) return too_small(diag, "matmul.tiled", z, 8, 8);
  const MatmulShape s = shape_of(op);
  if (pick_tile(caps, s) == nullptr)
    return refuse(diag, TN_E_UNSUPPORTED, "matmul.tiled: no tile fits the device\nwhy: %u threads, %llu bytes of local memory\ntry: leave it to matmul.direct", caps.max_threads,
                  static_cast<unsigned long long>(caps.local_bytes));
  return TN_OK;
}

tn_status supports_block(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) {
  if (tn_status s = supports_any(caps, op, diag); s != TN_OK) return s;
  for (uint32_t k : {0u, 1u})
    if ((bit(op.type[k].dtype) & kBlockTypes) == 0)
      return refuse(diag, TN_E_UNSUPPORTED, "matmul.block: sums are f32 only\nwhy: operand %u has dtype number %u\ntry: leave it to matmul.direct", k, op.type[k].dtype);
  if (const Sizes z = sizes(op); z.m < kBlockRows || z.n < 4 || z.k < 4) return too_small(diag, "matmul.block", z, kBlockRows, 4);
  return TN_OK;
}

std::vector<tn_constraint> with_types(const Caps& caps, uint64_t inputs) {
  std::vector<tn_constraint> c = basic_constraints(caps, kAny);
  for (uint16_t k : {uint16_t{0}, uint16_t{1}}) c.push_back({k, TN_NEED_DTYPE, 0, inputs & caps.storage, 0, 0});
  return c;
}
std::vector<tn_constraint> direct_constraints(const Caps& caps) { return with_types(caps, kFloats | kInts); }
std::vector<tn_constraint> tiled_constraints(const Caps& caps) {
  if (caps.device_class != DeviceClass::Gpu) return {};
  return with_types(caps, kFloats | kInts);
}
std::vector<tn_constraint> block_constraints(const Caps& caps) {
  if (caps.device_class != DeviceClass::Processor) return {};
  return with_types(caps, kBlockTypes);
}

template <Kind kind> tn_status build(const Caps& caps, const tn_op& op, Recipe* out, tn_diag* diag) { return Builder(caps, op, kind, out, diag).run(); }

constexpr RowCode kRows[] = {
    {{"matmul.block", TN_OPID_MATMUL, TN_TIER_NATIVE + 2}, block_constraints, supports_block, build<Kind::Block>},
    {{"matmul.tiled", TN_OPID_MATMUL, TN_TIER_NATIVE + 1}, tiled_constraints, supports_tiled, build<Kind::Tiled>},
    {{"matmul.direct", TN_OPID_MATMUL, TN_TIER_NATIVE}, direct_constraints, supports_direct, build<Kind::Direct>},
};

}  // namespace

std::span<const RowCode> matmul_rows() { return kRows; }

}  // namespace tenon::gpu
