// ops/gpu/library/pointwise.cpp - any scalar program over strided operands: one thread takes one index at a time.
#include "ops/gpu/loop.h"
#include "ops/gpu/program.h"
#include "ops/gpu/rows.h"

namespace tenon::gpu {
namespace {

constexpr uint64_t bit(uint32_t d) { return uint64_t{1} << d; }
constexpr uint64_t kTypes = bit(TN_BOOL) | bit(TN_U8) | bit(TN_I8) | bit(TN_U16) | bit(TN_I16) | bit(TN_U32) | bit(TN_I32) | bit(TN_U64) |
                            bit(TN_I64) | bit(TN_F8E4M3) | bit(TN_F8E5M2) | bit(TN_F16) | bit(TN_BF16) | bit(TN_F32) | bit(TN_F64);

std::vector<tn_constraint> constraints(const Caps& caps) { return basic_constraints(caps, kTypes); }

tn_status supports(const Caps& caps, const tn_op& op, tn_support*, tn_diag* diag) {
  const tn_program* p = program_attr(op, TN_KEY_PROGRAM);
  if (p == nullptr) return refuse(diag, TN_E_ARG, "pointwise: no scalar program\nwhy: attribute program is absent\ntry: set attribute program");
  const uint32_t bindings = uint32_t{op.n_in} + op.n_out + 1;
  if (bindings > caps.max_bindings)
    return refuse(diag, TN_E_UNSUPPORTED, "pointwise: more operands than the device can bind\nwhy: %u operands and their parameters, %u bindings\ntry: split the program",
                  bindings - 1, caps.max_bindings);
  return program_supported(*p, caps, diag);
}

bool uses_index_axis(const tn_program& p) {
  for (uint32_t i = 0; i < p.n_inst; ++i)
    if (p.inst[i].op == TN_OP_INDEX && p.inst[i].a != TN_INDEX_FLAT) return true;
  return false;
}

std::vector<LoopOperand> operands_of(const tn_op& op, uint32_t rank) {
  std::vector<LoopOperand> all;
  uint32_t view = 0;
  for (uint32_t k = 0; k < uint32_t{op.n_in} + op.n_out; ++k) {
    if (op.type[k].dtype == 0) continue;
    const bool out = k >= op.n_in;
    all.push_back(loop_operand((out ? "y" : "x") + std::to_string(out ? k - op.n_in : k), view++, op.type[k], rank, out));
  }
  return all;
}

Step build_piece(const Caps& caps, const tn_program& p, const Box& whole, const Box& box, const std::vector<LoopOperand>& operands) {
  StepBuilder step("pointwise");
  LoopText loop(&step, box);
  for (const LoopOperand& o : operands) loop.operand(o);
  ProgramNames names;
  names.index = [&](uint32_t axis, uint32_t dtype) { return loop.index(axis, dtype, whole.dim); };
  std::string loads, stores;
  for (uint32_t k = 0; k < p.n_in; ++k) {
    names.inputs.push_back("in" + std::to_string(k));
    loads += std::string("    ") + register_type(operands[k].dtype) + " in" + std::to_string(k) + " = " + load_text(operands[k].dtype, operands[k].name, loop.at(k)) + ";\n";
  }
  const ProgramText text = program_text(p, names, &step);
  for (uint32_t k = 0; k < p.n_out; ++k) {
    const LoopOperand& o = operands[p.n_in + k];
    stores += "    " + store_text(o.dtype, o.name, loop.at(p.n_in + k), text.out[k]) + "\n";
  }
  // All loads before all stores: an output may be the very view of an input.
  step.spec.body = loop.open() + loads + text.code + stores + LoopText::close();
  loop.launch(caps);
  return step.finish();
}

tn_status build(const Caps& caps, const tn_op& op, Recipe* r, tn_diag*) {
  const tn_program& p = *program_attr(op, TN_KEY_PROGRAM);
  const tn_type& out = op.type[op.n_in];
  Box box;
  box.rank = out.rank;
  for (uint32_t d = 0; d < out.rank; ++d) box.dim[d] = out.dim[d];
  std::vector<LoopOperand> operands = operands_of(op, out.rank);
  // Joining axes in row-major order keeps the flat index.
  if (!uses_index_axis(p)) simplify(&box, &operands);
  for (const Box& piece : split(caps, box, operands)) r->steps.push_back(build_piece(caps, p, box, piece, operands));
  const double n = static_cast<double>(box_size(box));
  for (const LoopOperand& o : operands) r->bytes += n * element_bytes(o.dtype);
  r->flops = n * p.n_inst;
  return TN_OK;
}

constexpr RowCode kRows[] = {{{"pointwise", TN_OPID_POINTWISE, TN_TIER_NATIVE}, constraints, supports, build}};

}  // namespace

std::span<const RowCode> pointwise_rows() { return kRows; }

}  // namespace tenon::gpu
