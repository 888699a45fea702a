// ops/reference/scatter.cpp - out = data, then updates are set, added, multiplied, min'd or max'd at indexed places.
//
// Updates are applied one after the other in row-major order, so results never depend on threads. Adding and multiplying
// into narrow floats happens in an f32 copy that is rounded once at the end: 4096 ones in f16 sum to 4096.
#include <new>

#include "ops/reference/indexing.h"

namespace tenon::reference {
namespace {

template <class T> T combine(int64_t mode, T old, T update) {
  if (mode == TN_SCATTER_MIN) return least(old, update);
  if (mode == TN_SCATTER_MAX) return greatest(old, update);
  if constexpr (std::is_integral_v<T>) {
    using W = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    if (mode == TN_SCATTER_ADD) return static_cast<T>(static_cast<W>(old) + static_cast<W>(update));
    if (mode == TN_SCATTER_MUL) return static_cast<T>(static_cast<W>(old) * static_cast<W>(update));
  } else {
    if (mode == TN_SCATTER_ADD) return old + update;
    if (mode == TN_SCATTER_MUL) return old * update;
  }
  return update;
}

using CombineFn = void (*)(int64_t mode, void* old, const void* update);
template <class T> void combine_at(int64_t mode, void* old, const void* update) {
  T a, b;
  std::memcpy(&a, old, sizeof a);
  std::memcpy(&b, update, sizeof b);
  a = combine(mode, a, b);
  std::memcpy(old, &a, sizeof a);
}
void combine_bool(int64_t mode, void* old, const void* update) {
  auto *a = static_cast<uint8_t*>(old);
  const bool x = *a != 0, y = *static_cast<const uint8_t*>(update) != 0;
  const bool both = mode == TN_SCATTER_MUL || mode == TN_SCATTER_MIN;
  *a = mode == TN_SCATTER_SET ? y : both ? (x && y) : (x || y);
}

CombineFn combine_fn(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: return combine_bool;
    case TN_U8: return combine_at<uint8_t>;
    case TN_I8: return combine_at<int8_t>;
    case TN_U16: return combine_at<uint16_t>;
    case TN_I16: return combine_at<int16_t>;
    case TN_U32: return combine_at<uint32_t>;
    case TN_I32: return combine_at<int32_t>;
    case TN_U64: return combine_at<uint64_t>;
    case TN_I64: return combine_at<int64_t>;
    case TN_F32: return combine_at<float>;
    case TN_F64: return combine_at<double>;
    default: return nullptr;
  }
}

// f32 memory for the time of one run: from the host, which counts it, or from the heap.
class Scratch {
 public:
  Scratch(const tn_host* host, uint64_t bytes) : host_(host) {
    p_ = host != nullptr ? host->alloc(host->ctx, bytes, 64) : ::operator new(bytes, std::nothrow);
  }
  ~Scratch() {
    if (p_ == nullptr) return;
    if (host_ != nullptr) host_->free(host_->ctx, p_);
    else ::operator delete(p_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  char* get() const { return static_cast<char*>(p_); }
 private:
  const tn_host* host_;
  void* p_;
};

class Scatter final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag* diag) {
    const tn_type &data = op.type[0], &updates = op.type[2], &out = op.type[3];
    index_type_ = op.type[1];
    axis_ = static_cast<int>(attr_int(op, TN_KEY_AXIS, 0));
    mode_ = attr_int(op, TN_KEY_MODE, TN_SCATTER_SET);
    limit_ = out.dim[axis_], dtype_ = out.dtype, bytes_ = dtype_bytes(dtype_);
    narrow_ = is_narrow_float(dtype_) && mode_ != TN_SCATTER_SET;
    combine_ = combine_fn(narrow_ ? uint32_t{TN_F32} : dtype_);
    if (combine_ == nullptr && mode_ != TN_SCATTER_SET)
      return fail(diag, TN_E_UNSUPPORTED, kErrNotRunnable, "scatter: %s can only be set\nwhy: mode %lld combines values\ntry: cast to f32 first",
                  dtype_name(dtype_), static_cast<long long>(mode_));
    int64_t whole[2][TN_MAX_RANK], stride[3][TN_MAX_RANK], dense[TN_MAX_RANK];
    broadcast_strides(out, out.rank, whole[0]);
    broadcast_strides(data, out.rank, whole[1]);
    copy_ = make_loop(out.rank, out.dim, 2, whole, Order::RowMajor);
    int64_t below = 1;
    for (int d = out.rank - 1; d >= 0; --d) dense[d] = below, below *= out.dim[d];
    // The target is the output, or its dense row-major f32 copy.
    const int64_t* target = narrow_ ? dense : out.stride;
    for (int d = 0; d < out.rank; ++d) stride[0][d] = d == axis_ ? 0 : target[d];
    axis_stride_ = target[axis_];
    broadcast_strides(updates, out.rank, stride[1]);
    broadcast_strides(index_type_, out.rank, stride[2]);
    loop_ = make_loop(updates.rank, updates.dim, 3, stride, Order::RowMajor);
    return TN_OK;
  }

  tn_status run(const Arguments& args, tn_diag* diag) const override {
    if (loop_.size > 0)
      if (tn_status s = check_indices("scatter", index_type_, args.data[1], axis_, limit_, diag); s != TN_OK) return s;
    const Operand data{static_cast<char*>(args.data[0]), copy_.stride[1], bytes_}, out{static_cast<char*>(args.data[3]), copy_.stride[0], bytes_};
    if (!narrow_) {
      each_block([&](int64_t first, int64_t n, char* a) { store_block(copy_, out, first, n, load_block(copy_, data, first, n, a)); });
      apply(args, out.base, bytes_);
      return TN_OK;
    }
    const Scratch wide(args.host, static_cast<uint64_t>(copy_.size) * 4 + 4);
    if (wide.get() == nullptr)
      return fail(diag, TN_E_OOM, kErrOutOfMemory, "scatter: no memory for the f32 sums\nwhy: %lld bytes are needed for %lld elements of %s\ntry: free memory or use f32 data",
                  static_cast<long long>(copy_.size) * 4, static_cast<long long>(copy_.size), dtype_name(dtype_));
    const CastFn widen = cast_fn(dtype_, TN_F32), narrow = cast_fn(TN_F32, dtype_);
    each_block([&](int64_t first, int64_t n, char* a) { widen(n, wide.get() + first * 4, load_block(copy_, data, first, n, a)); });
    apply(args, wide.get(), 4);
    each_block([&](int64_t first, int64_t n, char* a) { narrow(n, a, wide.get() + first * 4); store_block(copy_, out, first, n, a); });
    return TN_OK;
  }

 private:
  template <class F> void each_block(F f) const {
    alignas(64) char a[kBlock * 16];
    for (int64_t first = 0; first < copy_.size; first += kBlock) f(first, copy_.size - first < kBlock ? copy_.size - first : kBlock, a);
  }

  void apply(const Arguments& args, char* target, int64_t target_bytes) const {
    const bool wide_index = index_type_.dtype == TN_I64;
    const int last = loop_.rank - 1;
    const char *updates = static_cast<const char*>(args.data[2]), *index = static_cast<const char*>(args.data[1]);
    const CastFn widen = narrow_ ? cast_fn(dtype_, TN_F32) : nullptr;
    const int64_t inner = loop_.dim[last], rows = inner > 0 ? loop_.size / inner : 0;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t at[3];
      for (int k = 0; k < 3; ++k) for_runs(loop_, loop_.stride[k], row * inner, 1, [&](int64_t offset, int64_t) { at[k] = offset; });
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t position = resolve_index(read_index(index + (at[2] + i * loop_.stride[2][last]) * (wide_index ? 8 : 4), wide_index), limit_);
        char* to = target + (at[0] + i * loop_.stride[0][last] + position * axis_stride_) * target_bytes;
        const char* from = updates + (at[1] + i * loop_.stride[1][last]) * bytes_;
        float x;
        if (narrow_) widen(1, &x, from), from = reinterpret_cast<const char*>(&x);
        if (mode_ == TN_SCATTER_SET) std::memcpy(to, from, static_cast<size_t>(target_bytes));
        else combine_(mode_, to, from);
      }
    }
  }

  Loop copy_, loop_;  // out and data; target without the axis, updates, index
  tn_type index_type_{};
  int axis_ = 0;
  int64_t mode_ = 0, limit_ = 0, axis_stride_ = 0;
  uint32_t dtype_ = 0, bytes_ = 0;
  bool narrow_ = false;
  CombineFn combine_ = nullptr;
};

}  // namespace

std::unique_ptr<Prepared> prepare_scatter(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Scatter>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
