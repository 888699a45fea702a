// ops/reference/pointwise.cpp - any scalar program over strided operands.
#include "ops/reference/prepared.h"

namespace tenon::reference {
namespace {

class Pointwise final : public Prepared {
 public:
  tn_status init(const tn_op& op, tn_diag* diag) {
    const tn_program* source = attr_program(op, TN_KEY_PROGRAM);
    if (source == nullptr)
      return fail(diag, TN_E_ARG, kErrNotRunnable, "pointwise: no scalar program\nwhy: attribute program is absent\ntry: set attribute program");
    if (tn_status s = program_.resolve(*source, diag); s != TN_OK) return s;
    n_in_ = op.n_in, n_out_ = op.n_out;
    const tn_type& out = op.type[op.n_in];
    rank_ = out.rank;
    for (int d = 0; d < rank_; ++d) dim_[d] = out.dim[d];
    int64_t stride[kMaxOperands][TN_MAX_RANK];
    for (int k = 0; k < n_out_; ++k) set_operand(k, op.type[n_in_ + k], stride);
    for (int k = 0; k < n_in_; ++k) set_operand(n_out_ + k, op.type[k], stride);
    // Merging in row-major order keeps the flat index; without any INDEX the order in memory is the faster one.
    loop_ = make_loop(rank_, dim_, n_in_ + n_out_, stride, program_.has_index ? Order::RowMajor : Order::AsFirst);
    for (int k = 0; k < n_in_; ++k) constant_[k] = is_constant(loop_, loop_.stride[n_out_ + k]);
    return TN_OK;
  }

  tn_status run(const Arguments& args, tn_diag*) const override {
    const int64_t blocks = (loop_.size + kBlock - 1) / kBlock;
    const int64_t grain = 1 + 256 / (1 + program_.n_inst);  // about 64 Ki instructions' worth of elements
    parallel(args.host, blocks, grain, [&](int64_t begin, int64_t end) { run_blocks(args, begin, end); });
    return TN_OK;
  }

 private:
  void set_operand(int k, const tn_type& type, int64_t (*stride)[TN_MAX_RANK]) {
    broadcast_strides(type, rank_, stride[k]);
    bytes_[k] = dtype_bytes(type.dtype);
  }

  void run_blocks(const Arguments& args, int64_t begin, int64_t end) const {
    Session session(program_, args.push);
    session.index_space(rank_, dim_);
    alignas(64) char scratch[TN_PROGRAM_MAX_IN][kBlock * 8 + 64];
    const void* inputs[TN_PROGRAM_MAX_IN];
    for (int k = 0; k < n_in_; ++k)
      if (constant_[k]) inputs[k] = load_block(loop_, input(args, k), 0, loop_.size < kBlock ? loop_.size : kBlock, scratch[k]);
    const int64_t full = loop_.size;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, n = full - first < kBlock ? full - first : kBlock;
      for (int k = 0; k < n_in_; ++k)
        if (!constant_[k]) inputs[k] = load_block(loop_, input(args, k), first, n, scratch[k]);
      void* direct = n_out_ == 1 ? dense_block(loop_, output(args, 0), first, n) : nullptr;
      session.run(n, first, inputs, direct);
      if (n_out_ > 1) keep_passed_through(inputs, scratch, n);
      for (int k = 0; k < n_out_; ++k) {
        const Step& step = program_.step[program_.out[k]];
        const void* value = step.op == TN_OP_INPUT ? inputs[step.a] : session.value(program_.out[k]);
        if (value != direct) store_block(loop_, output(args, k), first, n, value);
      }
    }
  }

  // An input that is also an output may lie in memory that another output is about to overwrite.
  void keep_passed_through(const void** inputs, char (*scratch)[kBlock * 8 + 64], int64_t n) const {
    for (int k = 0; k < n_out_; ++k) {
      const Step& step = program_.step[program_.out[k]];
      if (step.op != TN_OP_INPUT || inputs[step.a] == scratch[step.a]) continue;
      std::memcpy(scratch[step.a], inputs[step.a], static_cast<size_t>(n) * dtype_bytes(step.type));
      if (!constant_[step.a]) inputs[step.a] = scratch[step.a];
    }
  }

  Operand output(const Arguments& a, int k) const { return {static_cast<char*>(a.data[n_in_ + k]), loop_.stride[k], bytes_[k]}; }
  Operand input(const Arguments& a, int k) const { return {static_cast<char*>(a.data[k]), loop_.stride[n_out_ + k], bytes_[n_out_ + k]}; }

  Program program_;
  Loop loop_;  // operands: outputs, then inputs
  int n_in_ = 0, n_out_ = 0, rank_ = 0;
  int64_t dim_[TN_MAX_RANK] = {};
  uint32_t bytes_[kMaxOperands] = {};
  bool constant_[TN_PROGRAM_MAX_IN] = {};
};

}  // namespace

std::unique_ptr<Prepared> prepare_pointwise(const tn_op& op, tn_status* status, tn_diag* diag) {
  auto p = std::make_unique<Pointwise>();
  *status = p->init(op, diag);
  return *status == TN_OK ? std::unique_ptr<Prepared>(std::move(p)) : nullptr;
}

}  // namespace tenon::reference
