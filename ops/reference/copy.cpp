// ops/reference/copy.cpp - moves bytes between strided operands of equal dims; never interprets them.
#include "ops/reference/prepared.h"

namespace tenon::reference {
namespace {

class Copy final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag*) {
    const tn_type &in = op.type[0], &out = op.type[1];
    int64_t stride[2][TN_MAX_RANK];
    broadcast_strides(out, out.rank, stride[0]);
    broadcast_strides(in, out.rank, stride[1]);
    loop_ = make_loop(out.rank, out.dim, 2, stride, Order::AsFirst);
    bytes_ = dtype_bytes(out.dtype);
    return TN_OK;
  }

  tn_status run(const Arguments& args, tn_diag*) const override {
    const Operand in{static_cast<char*>(args.data[0]), loop_.stride[1], bytes_};
    const Operand out{static_cast<char*>(args.data[1]), loop_.stride[0], bytes_};
    constexpr int64_t kPiece = kBlock * 64;
    parallel(args.host, (loop_.size + kPiece - 1) / kPiece, 8, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) piece(in, out, p * kPiece, loop_.size - p * kPiece < kPiece ? loop_.size - p * kPiece : kPiece);
    });
    return TN_OK;
  }

 private:
  void piece(const Operand& in, const Operand& out, int64_t first, int64_t n) const {
    const void* from = dense_block(loop_, in, first, n);
    void* to = dense_block(loop_, out, first, n);
    if (from != nullptr && to != nullptr) {
      std::memmove(to, from, static_cast<size_t>(n) * bytes_);
      return;
    }
    alignas(64) char scratch[kBlock * 16];
    for (int64_t at = first; at < first + n; at += kBlock) {
      const int64_t m = first + n - at < kBlock ? first + n - at : kBlock;
      store_block(loop_, out, at, m, load_block(loop_, in, at, m, scratch));
    }
  }

  Loop loop_;  // operands: out, in
  uint32_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Prepared> prepare_copy(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Copy>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
