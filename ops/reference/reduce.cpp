// ops/reference/reduce.cpp - pre-program, monoid over some axes, post-program.
//
// Two ways through memory. Along: for each output, blocks of the reduced space are folded (rows of a row-major matrix).
// Across: for 256 neighbouring outputs at a time, one reduced index after the other is added (columns). Both add in a
// fixed order that does not depend on threads. Sums and products of f32 and narrower run in f64; f64 sums are pairwise
// over blocks (along) or in two levels (across).
#include <algorithm>
#include <cstdlib>

#include "ops/reference/prepared.h"

namespace tenon::reference {
namespace {

// The accumulator: f64 for floating sums and products, else the compute type itself.
template <class T, int Monoid>
using Accumulator = std::conditional_t<std::is_same_v<T, float> && (Monoid == TN_MONOID_SUM || Monoid == TN_MONOID_PROD), double, T>;

template <class T, int Monoid> T identity() {
  using L = std::numeric_limits<T>;
  if constexpr (Monoid == TN_MONOID_PROD) return T(1);
  if constexpr (Monoid == TN_MONOID_AND) return std::is_integral_v<T> ? static_cast<T>(~T(0)) : T(1);
  if constexpr (Monoid == TN_MONOID_MAX) return L::has_infinity ? -L::infinity() : L::lowest();
  if constexpr (Monoid == TN_MONOID_MIN) return L::has_infinity ? L::infinity() : L::max();
  return T(0);
}

template <int Monoid, class T> T join(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using W = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    if constexpr (Monoid == TN_MONOID_SUM) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
    if constexpr (Monoid == TN_MONOID_PROD) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    if constexpr (Monoid == TN_MONOID_AND) return static_cast<T>(a & b);
    if constexpr (Monoid == TN_MONOID_OR) return static_cast<T>(a | b);
  }
  if constexpr (Monoid == TN_MONOID_SUM) return a + b;
  if constexpr (Monoid == TN_MONOID_PROD) return a * b;
  if constexpr (Monoid == TN_MONOID_MAX) return greatest(a, b);
  if constexpr (Monoid == TN_MONOID_MIN) return least(a, b);
  return a;
}

// Folds one block with 16 running values, so that the loop vectorises and rounding errors stay short.
template <int Monoid, class T> Accumulator<T, Monoid> fold(const T* x, int64_t n) {
  using A = Accumulator<T, Monoid>;
  constexpr int kLanes = 16;
  A lane[kLanes];
  for (int l = 0; l < kLanes; ++l) lane[l] = identity<A, Monoid>();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] = join<Monoid>(lane[l], static_cast<A>(x[i + l]));
  for (int l = 0; i < n; ++i, ++l) lane[l] = join<Monoid>(lane[l], static_cast<A>(x[i]));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = join<Monoid>(lane[l], lane[l + half]);
  return lane[0];
}

// Joins block results like a binary counter: pairwise summation without recursion.
template <int Monoid, class A> class Pairwise {
 public:
  void push(A x) {
    int level = 0;
    for (uint64_t c = count_++; (c & 1) != 0; c >>= 1) x = join<Monoid>(level_[level++], x);
    level_[level] = x;
  }
  A total() const {
    A sum = identity<A, Monoid>();
    for (int l = 0; l < 64; ++l)
      if ((count_ >> l & 1) != 0) sum = join<Monoid>(level_[l], sum);
    return sum;
  }
 private:
  uint64_t count_ = 0;
  A level_[64];
};

struct Spec {
  Loop kept, reduced;     // operands: inputs (kept also: outputs after them)
  int n_in = 1, n_out = 1;
  uint32_t in_bytes[TN_PROGRAM_MAX_IN] = {}, out_bytes[TN_PROGRAM_MAX_OUT] = {};
  uint32_t in_dtype = 0, value_dtype = 0;     // value: what is accumulated, before the post-program
  uint32_t result_dtype = 0;                  // of the accumulated value as the post-program or the output sees it
  CastFn widen = nullptr;                     // from the pre-program's (or input's) dtype to value_dtype, or NULL
  bool has_pre = false, has_post = false, across = false, constant[TN_PROGRAM_MAX_IN] = {};
  Program pre, post;
};

// Gives blocks of values after the pre-program, for a loop and a base offset per input.
class Source {
 public:
  Source(const Spec& spec, const Arguments& args, const Loop& loop) : spec_(spec), loop_(loop), session_(spec.pre, args.push) {
    for (int k = 0; k < spec.n_in; ++k)
      operand_[k] = base_[k] = {static_cast<char*>(args.data[k]), loop.stride[k], spec.in_bytes[k]};
  }
  void move_to(const int64_t* offset) {  // elements, per input
    for (int k = 0; k < spec_.n_in; ++k)
      if (base_[k].base) operand_[k].base = base_[k].base + offset[k] * spec_.in_bytes[k];  // an empty operand has no address
  }
  // n values of value_dtype
  const void* block(int64_t first, int64_t n) {
    const void* inputs[TN_PROGRAM_MAX_IN];
    for (int k = 0; k < spec_.n_in; ++k) inputs[k] = load_block(loop_, operand_[k], first, n, scratch_[k]);
    const void* x = inputs[0];
    if (spec_.has_pre) {
      session_.run(n, first, inputs, nullptr);
      const Step& step = spec_.pre.step[spec_.pre.out[0]];
      x = step.op == TN_OP_INPUT ? inputs[step.a] : session_.value(spec_.pre.out[0]);
    }
    if (spec_.widen == nullptr) return x;
    spec_.widen(n, wide_, x);
    return wide_;
  }
 private:
  const Spec& spec_;
  const Loop& loop_;
  Operand base_[TN_PROGRAM_MAX_IN], operand_[TN_PROGRAM_MAX_IN];
  Session session_;
  alignas(64) char scratch_[TN_PROGRAM_MAX_IN][kBlock * 8 + 64];
  alignas(64) char wide_[kBlock * 8];
};

void offsets_at(const Loop& loop, int n, int64_t flat, int64_t* offset) {
  for (int k = 0; k < n; ++k) offset[k] = 0;
  for (int d = loop.rank - 1; d >= 0; --d) {
    const int64_t size = loop.dim[d];  // read once: gcc 12's -fsanitize=bounds breaks `x /= a[d] > 0 ? a[d] : 1`
    const int64_t at = d > 0 ? flat % size : flat;
    flat /= size > 0 ? size : 1;
    for (int k = 0; k < n; ++k) offset[k] += at * loop.stride[k][d];
  }
}

// Accumulates outputs [first, first + n) of the kept space into result (value type T, dense).
template <class T, int Monoid> void tile_along(const Spec& s, Source& source, int64_t first, int64_t n, T* result) {
  using A = Accumulator<T, Monoid>;
  int64_t offset[TN_PROGRAM_MAX_IN];
  for (int64_t i = 0; i < n; ++i) {
    offsets_at(s.kept, s.n_in, first + i, offset);
    source.move_to(offset);
    Pairwise<Monoid, A> sum;
    for (int64_t r = 0; r < s.reduced.size; r += kBlock) {
      const int64_t m = std::min(kBlock, s.reduced.size - r);
      sum.push(fold<Monoid>(static_cast<const T*>(source.block(r, m)), m));
    }
    result[i] = static_cast<T>(sum.total());
  }
}

template <class T, int Monoid> void tile_across(const Spec& s, Source& source, int64_t first, int64_t n, T* result) {
  using A = Accumulator<T, Monoid>;
  constexpr int64_t kRows = 64;  // added up on their own before they join the total
  A total[kBlock], part[kBlock];
  for (int64_t i = 0; i < n; ++i) total[i] = identity<A, Monoid>();
  int64_t offset[TN_PROGRAM_MAX_IN];
  for (int64_t row = 0; row < s.reduced.size; row += kRows) {
    for (int64_t i = 0; i < n; ++i) part[i] = identity<A, Monoid>();
    const int64_t end = std::min(row + kRows, s.reduced.size);
    for (int64_t r = row; r < end; ++r) {
      offsets_at(s.reduced, s.n_in, r, offset);
      source.move_to(offset);
      const T* x = static_cast<const T*>(source.block(first, n));
      for (int64_t i = 0; i < n; ++i) part[i] = join<Monoid>(part[i], static_cast<A>(x[i]));
    }
    for (int64_t i = 0; i < n; ++i) total[i] = join<Monoid>(total[i], part[i]);
  }
  for (int64_t i = 0; i < n; ++i) result[i] = static_cast<T>(total[i]);
}

// First of equals; a NaN wins, the first NaN.
template <class T, int Monoid> void tile_arg(const Spec& s, Source& source, int64_t first, int64_t n, int64_t* result) {
  int64_t offset[TN_PROGRAM_MAX_IN];
  for (int64_t i = 0; i < n; ++i) {
    offsets_at(s.kept, s.n_in, first + i, offset);
    source.move_to(offset);
    T best{};
    int64_t where = -1;
    for (int64_t r = 0; r < s.reduced.size; r += kBlock) {
      const int64_t m = std::min(kBlock, s.reduced.size - r);
      const T* x = static_cast<const T*>(source.block(r, m));
      for (int64_t j = 0; j < m; ++j) {
        const bool better = Monoid == TN_MONOID_ARGMAX ? x[j] > best : x[j] < best;
        if (where < 0 || (best == best && (better || x[j] != x[j]))) best = x[j], where = r + j;
      }
    }
    result[i] = where;
  }
}

using TileFn = void (*)(const Spec&, Source&, int64_t first, int64_t n, void* result);

template <class T, int Monoid> void tile(const Spec& s, Source& source, int64_t first, int64_t n, void* result) {
  if constexpr (Monoid == TN_MONOID_ARGMAX || Monoid == TN_MONOID_ARGMIN)
    tile_arg<T, Monoid>(s, source, first, n, static_cast<int64_t*>(result));
  else if (s.across) tile_across<T, Monoid>(s, source, first, n, static_cast<T*>(result));
  else tile_along<T, Monoid>(s, source, first, n, static_cast<T*>(result));
}

template <class T> TileFn tile_for(int64_t monoid) {
  switch (monoid) {
    case TN_MONOID_SUM: return tile<T, TN_MONOID_SUM>;
    case TN_MONOID_PROD: return tile<T, TN_MONOID_PROD>;
    case TN_MONOID_MAX: return tile<T, TN_MONOID_MAX>;
    case TN_MONOID_MIN: return tile<T, TN_MONOID_MIN>;
    case TN_MONOID_AND: if constexpr (std::is_integral_v<T>) return tile<T, TN_MONOID_AND>; else return nullptr;
    case TN_MONOID_OR: if constexpr (std::is_integral_v<T>) return tile<T, TN_MONOID_OR>; else return nullptr;
    case TN_MONOID_ARGMAX: return tile<T, TN_MONOID_ARGMAX>;
    case TN_MONOID_ARGMIN: return tile<T, TN_MONOID_ARGMIN>;
    default: return nullptr;
  }
}

// bool is reduced as 0/1 bytes; "any" and "all" of it are the integers' max and min, whose empty results are 0 and 1.
int64_t bool_monoid(int64_t monoid) {
  if (monoid == TN_MONOID_SUM || monoid == TN_MONOID_OR) return TN_MONOID_MAX;
  if (monoid == TN_MONOID_PROD || monoid == TN_MONOID_AND) return TN_MONOID_MIN;
  return monoid;
}

TileFn tile_fn(uint32_t dtype, int64_t monoid) {
  switch (dtype) {
    case TN_BOOL: return tile_for<uint8_t>(bool_monoid(monoid));
    case TN_U8: return tile_for<uint8_t>(monoid);
    case TN_I8: return tile_for<int8_t>(monoid);
    case TN_U16: return tile_for<uint16_t>(monoid);
    case TN_I16: return tile_for<int16_t>(monoid);
    case TN_U32: return tile_for<uint32_t>(monoid);
    case TN_I32: return tile_for<int32_t>(monoid);
    case TN_U64: return tile_for<uint64_t>(monoid);
    case TN_I64: return tile_for<int64_t>(monoid);
    case TN_F32: return tile_for<float>(monoid);
    case TN_F64: return tile_for<double>(monoid);
    default: return nullptr;
  }
}

class Reduce final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag* diag) {
    if (tn_status status = programs(op, diag); status != TN_OK) return status;
    if (tn_status status = spaces(op, diag); status != TN_OK) return status;
    const int64_t monoid = attr_int(op, TN_KEY_MONOID, TN_MONOID_SUM);
    is_arg_ = monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN;
    if (is_arg_) spec_.across = false;  // an index is searched along its axis, whatever lies side by side
    tile_ = tile_fn(spec_.value_dtype, monoid);
    if (tile_ == nullptr)
      return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable, "reduce: monoid %lld has no meaning over %s\nwhy: and, or take integers and bool\ntry: use another monoid, or cast",
                  static_cast<long long>(monoid), dtype_name(spec_.value_dtype));
    if (is_arg_ && spec_.reduced.size == 0)
      return fail(diag, TN_E_SHAPE, kErrNotRunnable, "reduce: argmax or argmin over an empty axis\nwhy: the axis has 0 elements, there is no index to give\ntry: skip empty inputs");
    spec_.result_dtype = is_arg_ ? uint32_t{TN_I64} : spec_.value_dtype;
    return TN_OK;
  }

  tn_status run(const Arguments& args, tn_diag*) const override {
    const int64_t work = spec_.reduced.size < 1 ? 1 : spec_.reduced.size;
    // Outputs per tile: few enough to share out, enough for an inner loop where outputs are what lies side by side.
    const int64_t tile = std::clamp<int64_t>(65536 / work, spec_.across ? 64 : 1, kBlock);
    const int64_t n = spec_.kept.size, tiles = (n + tile - 1) / tile;
    const int64_t grain = std::max<int64_t>(1, 65536 / (work * tile));
    parallel(args.host, tiles, grain, [&](int64_t begin, int64_t end) {
      Source source(spec_, args, spec_.across ? spec_.kept : spec_.reduced);
      for (int64_t t = begin; t < end; ++t) finish(args, source, t * tile, std::min(tile, n - t * tile));
    });
    return TN_OK;
  }

 private:
  tn_status programs(const tn_op& op, tn_diag* diag) {
    Spec& s = spec_;
    s.n_in = op.n_in, s.n_out = op.n_out;
    s.in_dtype = op.type[0].dtype;
    uint32_t value = s.in_dtype;
    if (const tn_program* pre = attr_program(op, TN_KEY_PRE)) {
      if (tn_status status = s.pre.resolve(*pre, diag); status != TN_OK) return status;
      s.has_pre = true, value = s.pre.out_dtype(0);
    }
    if (const tn_program* post = attr_program(op, TN_KEY_POST)) {
      if (tn_status status = s.post.resolve(*post, diag); status != TN_OK) return status;
      s.has_post = true;
    }
    s.value_dtype = compute_dtype(value);
    if (s.pre.has_index || s.post.has_axis_index)
      return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable, "reduce: INDEX inside its programs\nwhy: positions count in the output, a reduction has none per input\ntry: make the index with iota and pass it as an input");
    if (value != s.value_dtype) s.widen = cast_fn(value, s.value_dtype);
    for (int k = 0; k < s.n_in; ++k) s.in_bytes[k] = dtype_bytes(op.type[k].dtype);
    for (int k = 0; k < s.n_out; ++k) s.out_bytes[k] = dtype_bytes(op.type[s.n_in + k].dtype), out_dtype_[k] = op.type[s.n_in + k].dtype;
    return TN_OK;
  }

  // Splits the broadcast input space into kept and reduced axes.
  tn_status spaces(const tn_op& op, tn_diag* diag) {
    Spec& s = spec_;
    int rank = 0;
    int64_t dim[TN_MAX_RANK];
    for (int k = 0; k < s.n_in; ++k) rank = std::max<int>(rank, op.type[k].rank);
    for (int d = 0; d < rank; ++d) {
      dim[d] = 1;
      for (int k = 0; k < s.n_in; ++k) {
        const int own = d - (rank - op.type[k].rank);
        if (own >= 0 && op.type[k].dim[own] != 1) dim[d] = op.type[k].dim[own];
      }
    }
    bool reduced[TN_MAX_RANK] = {};
    const tn_attr* axes = find_attr(op, TN_KEY_AXES);
    for (int d = 0; d < rank && axes == nullptr; ++d) reduced[d] = true;
    for (uint64_t i = 0; axes != nullptr && i < axes->len; ++i) {
      const int64_t axis = static_cast<const int64_t*>(axes->v.p)[i];
      if (axis < 0 || axis >= rank)
        return fail(diag, TN_E_SHAPE, kErrNotRunnable, "reduce: axis %lld does not exist\nwhy: the input has rank %d\ntry: name an axis in 0..%d",
                    static_cast<long long>(axis), rank, rank - 1);
      reduced[axis] = true;
    }
    split(op, rank, dim, reduced);
    return TN_OK;
  }

  void split(const tn_op& op, int rank, const int64_t* dim, const bool* reduced) {
    Spec& s = spec_;
    const bool keepdims = attr_int(op, TN_KEY_KEEPDIMS, 0) != 0;
    int64_t input[TN_PROGRAM_MAX_IN][TN_MAX_RANK], kept[kMaxOperands][TN_MAX_RANK], gone[kMaxOperands][TN_MAX_RANK];
    int64_t kept_dim[TN_MAX_RANK], gone_dim[TN_MAX_RANK];
    for (int k = 0; k < s.n_in; ++k) broadcast_strides(op.type[k], rank, input[k]);
    int n_kept = 0, n_gone = 0;
    for (int d = 0; d < rank; ++d) {
      if (reduced[d]) {
        for (int k = 0; k < s.n_in; ++k) gone[k][n_gone] = input[k][d];
        gone_dim[n_gone++] = dim[d];
        continue;
      }
      for (int k = 0; k < s.n_in; ++k) kept[k][n_kept] = input[k][d];
      for (int k = 0; k < s.n_out; ++k) kept[s.n_in + k][n_kept] = op.type[s.n_in + k].stride[keepdims ? d : n_kept];
      kept_dim[n_kept++] = dim[d];
    }
    s.kept = make_loop(n_kept, kept_dim, s.n_in + s.n_out, kept, Order::RowMajor);
    s.reduced = make_loop(n_gone, gone_dim, s.n_in, gone, Order::RowMajor);
    const int64_t along = std::llabs(s.reduced.stride[0][s.reduced.rank - 1]), across = std::llabs(s.kept.stride[0][s.kept.rank - 1]);
    s.across = s.kept.size >= 16 && (s.reduced.size < 32 || (across != 0 && across < along));
  }

  // Tile of outputs: accumulate, run the post-program, store.
  void finish(const Arguments& args, Source& source, int64_t first, int64_t n) const {
    alignas(64) char value[kBlock * 8], converted[kBlock * 8];
    tile_(spec_, source, first, n, value);
    if (spec_.result_dtype == TN_BOOL)  // the identity of "all" is all ones
      for (int64_t i = 0; i < n; ++i) value[i] = value[i] != 0;
    if (!spec_.has_post) return store(args, 0, first, n, value, spec_.result_dtype, converted);
    const uint32_t want = spec_.post.in_dtype(0);
    const void* input = value;
    if (want != 0 && want != spec_.result_dtype) cast_fn(spec_.result_dtype, want)(n, converted, value), input = converted;
    Session post(spec_.post, args.push);
    post.run(n, first, &input, nullptr);
    alignas(64) char narrowed[kBlock * 8];
    for (int k = 0; k < spec_.n_out; ++k) store(args, k, first, n, post.value(spec_.post.out[k]), spec_.post.out_dtype(k), narrowed);
  }

  void store(const Arguments& args, int k, int64_t first, int64_t n, const void* value, uint32_t dtype, char* scratch) const {
    if (dtype != out_dtype_[k]) {
      cast_fn(dtype, out_dtype_[k])(n, scratch, value);
      value = scratch;
    }
    const Operand out{static_cast<char*>(args.data[spec_.n_in + k]), spec_.kept.stride[spec_.n_in + k], spec_.out_bytes[k]};
    store_block(spec_.kept, out, first, n, value);
  }

  Spec spec_;
  TileFn tile_ = nullptr;
  bool is_arg_ = false;
  uint32_t out_dtype_[TN_PROGRAM_MAX_OUT] = {};
};

}  // namespace

std::unique_ptr<Prepared> prepare_reduce(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Reduce>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
