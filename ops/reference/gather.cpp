// ops/reference/gather.cpp - out[i] = data[i with i[axis] := index[i]].
#include "ops/reference/indexing.h"

namespace tenon::reference {

tn_status check_indices(const char* op, const tn_type& index, const void* data, int axis, int64_t limit, tn_diag* diag) {
  const bool wide = index.dtype == TN_I64;
  const int64_t bytes = wide ? 8 : 4;
  const Loop loop = make_loop(index.rank, index.dim, 1, &index.stride, Order::RowMajor);
  const int64_t step = loop.stride[0][loop.rank - 1];
  int64_t at = 0, bad = -1, value = 0;
  for_runs(loop, loop.stride[0], 0, loop.size, [&](int64_t offset, int64_t run) {
    const char* p = static_cast<const char*>(data) + offset * bytes;
    for (int64_t i = 0; i < run && bad < 0; ++i) {
      value = read_index(p + i * step * bytes, wide);
      if (resolve_index(value, limit) < 0) bad = at + i;
    }
    at += run;
  });
  if (bad < 0) return TN_OK;
  return fail(diag, TN_E_FAILED, kErrIndexOutside, "%s: index out of range\nwhy: index[%lld] (row-major) is %lld; axis %d has %lld elements, allowed are %lld..%lld\ntry: clamp or mask the indices",
              op, static_cast<long long>(bad), static_cast<long long>(value), axis, static_cast<long long>(limit),
              static_cast<long long>(-limit), static_cast<long long>(limit - 1));
}

namespace {

class Gather final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag*) {
    const tn_type &data = op.type[0], &out = op.type[2];
    index_type_ = op.type[1];
    axis_ = static_cast<int>(attr_int(op, TN_KEY_AXIS, 0));
    limit_ = data.dim[axis_], axis_stride_ = data.stride[axis_], bytes_ = dtype_bytes(out.dtype);
    int64_t stride[3][TN_MAX_RANK];
    broadcast_strides(out, out.rank, stride[0]);
    for (int d = 0; d < out.rank; ++d) stride[1][d] = d == axis_ ? 0 : data.stride[d];  // the index adds the rest
    broadcast_strides(index_type_, out.rank, stride[2]);
    loop_ = make_loop(out.rank, out.dim, 3, stride, Order::RowMajor);
    return TN_OK;
  }

  tn_status run(const Arguments& args, tn_diag* diag) const override {
    if (loop_.size == 0) return TN_OK;
    if (tn_status s = check_indices("gather", index_type_, args.data[1], axis_, limit_, diag); s != TN_OK) return s;
    // Rows of the innermost axis are the unit of work.
    const int64_t inner = loop_.dim[loop_.rank - 1];
    parallel(args.host, loop_.size / inner, 1 + 32768 / inner, [&](int64_t begin, int64_t end) { rows(args, begin, end, inner); });
    return TN_OK;
  }

 private:
  void rows(const Arguments& args, int64_t begin, int64_t end, int64_t inner) const {
    const int last = loop_.rank - 1;
    const int64_t so = loop_.stride[0][last], sd = loop_.stride[1][last], si = loop_.stride[2][last];
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset[3];
      for (int k = 0; k < 3; ++k)
        for_runs(loop_, loop_.stride[k], row * inner, 1, [&](int64_t at, int64_t) { offset[k] = at; });
      char* out = static_cast<char*>(args.data[2]) + offset[0] * bytes_;
      const char* data = static_cast<const char*>(args.data[0]) + offset[1] * bytes_;
      if (si == 0 && so == 1 && sd == 1) {
        std::memmove(out, data + position(args, offset[2]) * axis_stride_ * bytes_, static_cast<size_t>(inner) * bytes_);
        continue;
      }
      for (int64_t i = 0; i < inner; ++i)
        std::memcpy(out + i * so * bytes_, data + (i * sd + position(args, offset[2] + i * si) * axis_stride_) * bytes_, static_cast<size_t>(bytes_));
    }
  }
  int64_t position(const Arguments& args, int64_t offset) const {
    const bool wide = index_type_.dtype == TN_I64;
    return resolve_index(read_index(static_cast<const char*>(args.data[1]) + offset * (wide ? 8 : 4), wide), limit_);
  }

  Loop loop_;  // operands: out, data without the axis, index
  tn_type index_type_{};
  int axis_ = 0;
  int64_t limit_ = 0, axis_stride_ = 0, bytes_ = 0;
};

}  // namespace

std::unique_ptr<Prepared> prepare_gather(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Gather>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
