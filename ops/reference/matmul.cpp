// ops/reference/matmul.cpp - matrix products of any strides, with a post-program over the result.
//
// The output is cut into tiles of 64 x 128. For each, panels of A and B (128 deep) are packed densely in the accumulator's
// type, which takes care of strides and narrow types at once; a 4 x 8 micro-kernel multiplies them. Depth is summed in
// panels of 128, so rounding errors grow with k / 128. Accumulators: f32 for f32 and narrower floats, f64, and unsigned
// 32 or 64 bits for integers (two's complement wraps the same way).
#include <algorithm>

#include "ops/reference/prepared.h"

namespace tenon::reference {
namespace {

constexpr int kTileM = 64, kTileN = 128, kDepth = 128, kMicroM = 4, kMicroN = 8;

template <class T> struct Lanes {
  typedef T type __attribute__((vector_size(16)));
  static constexpr int count = 16 / sizeof(T);
};

// c[4][8] += a[depth][4] * b[depth][8], c with a row pitch of kTileN.
template <class T> void micro_kernel(int64_t depth, const T* a, const T* b, T* c) {
  using V = typename Lanes<T>::type;
  constexpr int kWide = Lanes<T>::count, kVectors = kMicroN / kWide;
  V sum[kMicroM][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k, a += kMicroM, b += kMicroN) {
    V row[kVectors];
    std::memcpy(row, b, sizeof row);
    for (int i = 0; i < kMicroM; ++i)
      for (int v = 0; v < kVectors; ++v) sum[i][v] += row[v] * a[i];
  }
  for (int i = 0; i < kMicroM; ++i)
    for (int j = 0; j < kMicroN; ++j) c[i * kTileN + j] += sum[i][j / kWide][j % kWide];
}

// Panel of `count` lines (rows of A or columns of B) by `depth`, grouped by `Group` lines, padded with zeros.
template <class T, int Group> void pack(const char* src, uint32_t bytes, CastFn widen, int64_t line_stride, int64_t depth_stride,
                                        int64_t count, int64_t depth, T* out) {
  const int64_t step = depth_stride * bytes, line_step = line_stride * bytes;
  for (int64_t base = 0; base < count; base += Group, out += Group * depth) {
    const int64_t lines = std::min<int64_t>(Group, count - base);
    if (lines < Group) std::fill(out, out + Group * depth, T(0));
    if (line_stride == 1 && lines == Group) {
      for (int64_t k = 0; k < depth; ++k) widen(Group, out + k * Group, src + base * line_step + k * step);
      continue;
    }
    for (int64_t l = 0; l < lines; ++l) {
      const char* p = src + (base + l) * line_step;
      T line[kDepth];
      if (depth_stride == 1) widen(depth, line, p);
      else for (int64_t k = 0; k < depth; ++k) widen(1, line + k, p + k * step);
      for (int64_t k = 0; k < depth; ++k) out[k * Group + l] = line[k];
    }
  }
}

struct Side { const char* data; uint32_t bytes; CastFn widen; int64_t line_stride, depth_stride; };

// One tile of at most 64 x 128 accumulators.
template <class T> void tile_product(const Side& a, const Side& b, int64_t m, int64_t n, int64_t k, T* c) {
  alignas(64) T panel_a[kTileM * kDepth], panel_b[kTileN * kDepth];
  std::fill(c, c + kTileM * kTileN, T(0));
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min<int64_t>(kDepth, k - k0);
    pack<T, kMicroM>(a.data + k0 * a.depth_stride * a.bytes, a.bytes, a.widen, a.line_stride, a.depth_stride, m, depth, panel_a);
    pack<T, kMicroN>(b.data + k0 * b.depth_stride * b.bytes, b.bytes, b.widen, b.line_stride, b.depth_stride, n, depth, panel_b);
    for (int64_t j = 0; j < n; j += kMicroN)
      for (int64_t i = 0; i < m; i += kMicroM)
        micro_kernel<T>(depth, panel_a + i * depth, panel_b + j * depth, c + i * kTileN + j);
  }
}

class Matmul final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag* diag) {
    const tn_type &a = op.type[0], &b = op.type[1], &out = op.type[op.n_in];
    if (a.rank < 2 || b.rank < 2 || out.rank < 2 || a.dim[a.rank - 1] != b.dim[b.rank - 2])
      return fail(diag, TN_E_SHAPE, kErrNotRunnable, "matmul: inner dimensions differ\nwhy: ranks %d and %d, a[-1] is %lld, b[-2] is %lld\ntry: transpose or reshape one side",
                  a.rank, b.rank, static_cast<long long>(a.rank > 0 ? a.dim[a.rank - 1] : 0), static_cast<long long>(b.rank > 1 ? b.dim[b.rank - 2] : 0));
    n_in_ = op.n_in, rank_ = out.rank;
    m_ = out.dim[rank_ - 2], n_ = out.dim[rank_ - 1], k_ = a.dim[a.rank - 1];
    for (int d = 0; d < rank_; ++d) dim_[d] = out.dim[d];
    for (int d = 0; d < rank_ - 2; ++d) batches_ *= dim_[d];
    for (int k = 0; k < 2; ++k) set_matrix(k, op.type[k]);
    for (int k = 2; k < n_in_; ++k) broadcast_strides(op.type[k], rank_, stride_[k]), bytes_[k] = dtype_bytes(op.type[k].dtype);
    broadcast_strides(out, rank_, stride_[n_in_]);
    bytes_[n_in_] = dtype_bytes(out.dtype), out_dtype_ = out.dtype;
    return types(op, diag);
  }

  tn_status run(const Arguments& args, tn_diag*) const override {
    switch (accumulator_) {
      case TN_F32: return run_as<float>(args);
      case TN_F64: return run_as<double>(args);
      case TN_U64: return run_as<uint64_t>(args);
      default: return run_as<uint32_t>(args);
    }
  }

 private:
  void set_matrix(int k, const tn_type& t) {
    // Batch axes broadcast; the two matrix axes are never broadcast.
    broadcast_strides(t, rank_, stride_[k]);
    for (int d = 1; d <= 2; ++d) stride_[k][rank_ - d] = t.stride[t.rank - d];
    bytes_[k] = dtype_bytes(t.dtype);
  }

  tn_status types(const tn_op& op, tn_diag* diag) {
    const uint32_t a = op.type[0].dtype, wide = compute_dtype(a);
    const bool is_int = (kIntMask >> a & 1) != 0;
    accumulator_ = !is_int ? wide : dtype_bytes(a) == 8 || dtype_bytes(out_dtype_) == 8 ? uint32_t{TN_U64} : uint32_t{TN_U32};
    // What the accumulated bits mean: i32 (or i64, u32, u64 of the operands' own kind).
    value_dtype_ = !is_int ? wide : accumulator_ == TN_U64 ? uint32_t(a == TN_U64 ? TN_U64 : TN_I64) : uint32_t(a == TN_U32 ? TN_U32 : TN_I32);
    for (int k = 0; k < 2; ++k) widen_[k] = cast_fn(op.type[k].dtype, accumulator_);
    if (const tn_program* post = attr_program(op, TN_KEY_POST)) {
      if (tn_status s = post_.resolve(*post, diag); s != TN_OK) return s;
      has_post_ = true;
    }
    if (widen_[0] == nullptr || widen_[1] == nullptr || wide == TN_BOOL)
      return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable, "matmul: %s x %s cannot be multiplied\nwhy: floats and integers can\ntry: cast the inputs",
                  dtype_name(a), dtype_name(op.type[1].dtype));
    return TN_OK;
  }

  template <class T> tn_status run_as(const Arguments& args) const {
    const int64_t tiles_m = (m_ + kTileM - 1) / kTileM, tiles_n = (n_ + kTileN - 1) / kTileN;
    const int64_t tile_work = std::min<int64_t>(m_, kTileM) * std::min<int64_t>(n_, kTileN) * std::max<int64_t>(k_, 1);
    const int64_t grain = 1 + 65536 / std::max<int64_t>(tile_work, 1);
    parallel(args.host, batches_ * tiles_m * tiles_n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t batch = t / (tiles_m * tiles_n), tm = t / tiles_n % tiles_m, tn = t % tiles_n;
        run_tile<T>(args, batch, tm * kTileM, tn * kTileN);
      }
    });
    return TN_OK;
  }

  template <class T> void run_tile(const Arguments& args, int64_t batch, int64_t row, int64_t col) const {
    const int64_t m = std::min<int64_t>(kTileM, m_ - row), n = std::min<int64_t>(kTileN, n_ - col);
    int64_t at[TN_MAX_RANK] = {}, rest = batch;
    for (int d = rank_ - 3; d >= 0; --d) at[d] = rest % dim_[d], rest /= dim_[d];
    Side side[2];
    for (int k = 0; k < 2; ++k) {
      const int64_t line = stride_[k][rank_ - 2 + k], depth = stride_[k][rank_ - 1 - k];
      const int64_t offset = batch_offset(k, at) + (k == 0 ? row : col) * line;
      const auto* base = static_cast<const char*>(args.data[k]);  // NULL where the depth is 0
      side[k] = {base ? base + offset * bytes_[k] : base, bytes_[k], widen_[k], line, depth};
    }
    alignas(64) T c[kTileM * kTileN];
    tile_product<T>(side[0], side[1], m, n, k_, c);
    at[rank_ - 1] = col;
    finish(args, at, row, m, n, reinterpret_cast<const char*>(c), sizeof(T));
  }

  int64_t batch_offset(int k, const int64_t* at) const {
    int64_t offset = 0;
    for (int d = 0; d < rank_ - 2; ++d) offset += at[d] * stride_[k][d];
    return offset;
  }

  // Post-program or cast, then store, one row of the tile at a time (at most 128 elements: within one block).
  void finish(const Arguments& args, int64_t* at, int64_t row, int64_t m, int64_t n, const char* c, size_t size) const {
    const int64_t col = at[rank_ - 1];
    const Loop line = row_loop(n);
    if (!has_post_) {
      alignas(64) char narrow[kTileN * 8];
      const CastFn cast = cast_fn(value_dtype_, out_dtype_);
      for (int64_t i = 0; i < m; ++i) {
        const void* values = c + static_cast<size_t>(i * kTileN) * size;
        if (out_dtype_ != value_dtype_) cast(n, narrow, values), values = narrow;
        store_block(line, element(args, n_in_, at, row + i, col), 0, n, values);
      }
      return;
    }
    Session post(post_, args.push);
    post.index_space(rank_, dim_);
    alignas(64) char scratch[TN_PROGRAM_MAX_IN][kTileN * 8], wide[kTileN * 8], narrow[kTileN * 8];
    const uint32_t want = post_.in_dtype(0), have = post_.out_dtype(0);
    for (int64_t i = 0; i < m; ++i) {
      const void* inputs[TN_PROGRAM_MAX_IN];
      inputs[0] = c + static_cast<size_t>(i * kTileN) * size;
      if (want != 0 && want != value_dtype_) cast_fn(value_dtype_, want)(n, wide, inputs[0]), inputs[0] = wide;
      for (int k = 2; k < n_in_; ++k) inputs[k - 1] = load_block(line, element(args, k, at, row + i, col), 0, n, scratch[k - 1]);
      post.run(n, flat_index(at, row + i, col), inputs, nullptr);
      const Step& last = post_.step[post_.out[0]];
      const void* values = last.op == TN_OP_INPUT ? inputs[last.a] : post.value(post_.out[0]);
      if (have != out_dtype_) cast_fn(have, out_dtype_)(n, narrow, values), values = narrow;
      store_block(line, element(args, n_in_, at, row + i, col), 0, n, values);
    }
  }

  Loop row_loop(int64_t n) const {
    Loop line;
    line.size = line.dim[0] = n;
    line.n_operands = 1;
    line.stride[0][0] = stride_[n_in_][rank_ - 1];
    return line;
  }
  Operand element(const Arguments& args, int k, const int64_t* at, int64_t row, int64_t col) const {
    const int64_t offset = batch_offset(k, at) + row * stride_[k][rank_ - 2] + col * stride_[k][rank_ - 1];
    auto* base = static_cast<char*>(args.data[k]);  // NULL where the operand is empty
    return {base ? base + offset * bytes_[k] : base, &stride_[k][rank_ - 1], bytes_[k]};
  }
  int64_t flat_index(const int64_t* at, int64_t row, int64_t col) const {
    int64_t flat = 0;
    for (int d = 0; d < rank_ - 2; ++d) flat = flat * dim_[d] + at[d];
    return (flat * m_ + row) * n_ + col;
  }

  Program post_;
  bool has_post_ = false;
  int n_in_ = 2, rank_ = 2;
  int64_t m_ = 0, n_ = 0, k_ = 0, batches_ = 1, dim_[TN_MAX_RANK] = {};
  int64_t stride_[kMaxOperands][TN_MAX_RANK] = {};  // inputs, then the output
  uint32_t bytes_[kMaxOperands] = {}, out_dtype_ = 0, accumulator_ = 0, value_dtype_ = 0;
  CastFn widen_[2] = {};
};

}  // namespace

std::unique_ptr<Prepared> prepare_matmul(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Matmul>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
