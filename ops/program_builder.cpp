// ops/program_builder.cpp - writing scalar programs.
#include <algorithm>

#include "ops/emit.h"
#include "ops/op.h"

namespace tenon::ops {
namespace {

bool gives_bool(uint32_t opcode) {
  return opcode == TN_OP_ISNAN || opcode == TN_OP_LT || opcode == TN_OP_LE || opcode == TN_OP_EQ || opcode == TN_OP_NE;
}

}  // namespace

uint32_t ProgramBuilder::compute_type_of(uint32_t dtype) { return compute_type(dtype); }

ProgramBuilder::Id ProgramBuilder::emit(uint32_t opcode, uint32_t type, uint16_t a, uint16_t b, uint16_t c) {
  const tn_inst inst{static_cast<uint8_t>(opcode), static_cast<uint8_t>(type), a, b, c};
  const auto same = std::find_if(inst_.begin(), inst_.end(), [&](const tn_inst& i) {
    return i.op == inst.op && i.type == inst.type && i.a == a && i.b == b && i.c == c;
  });
  if (same != inst_.end()) return static_cast<Id>(same - inst_.begin());
  inst_.push_back(inst);
  return static_cast<Id>(inst_.size() - 1);
}

ProgramBuilder::Id ProgramBuilder::input(uint32_t number, uint32_t dtype) {
  n_in_ = std::max(n_in_, number + 1);
  return cast(emit(TN_OP_INPUT, dtype, static_cast<uint16_t>(number), 0, 0), compute_type(dtype));
}

ProgramBuilder::Id ProgramBuilder::slot(uint32_t number, uint32_t dtype) {
  n_slots_ = std::max(n_slots_, number + 1);
  return emit(TN_OP_CONST, dtype, static_cast<uint16_t>(number), 0, 0);
}

ProgramBuilder::Id ProgramBuilder::constant(double value, uint32_t dtype) {
  const uint64_t bits = literal(value, dtype).bits;
  for (const auto& [number, have] : literal_)
    if (have == bits) return slot(number, dtype);
  literal_.emplace_back(n_slots_, bits);
  return slot(n_slots_, dtype);
}

ProgramBuilder::Id ProgramBuilder::index(uint32_t axis, uint32_t dtype) {
  return emit(TN_OP_INDEX, dtype, static_cast<uint16_t>(axis), 0, 0);
}

ProgramBuilder::Id ProgramBuilder::op(uint32_t opcode, Id a) {
  return emit(opcode, gives_bool(opcode) ? uint32_t{TN_BOOL} : type_of(a), a, 0, 0);
}

ProgramBuilder::Id ProgramBuilder::op(uint32_t opcode, Id a, Id b) {
  return emit(opcode, gives_bool(opcode) ? uint32_t{TN_BOOL} : type_of(a), a, b, 0);
}

ProgramBuilder::Id ProgramBuilder::op(uint32_t opcode, Id a, Id b, Id c) {
  return emit(opcode, opcode == TN_OP_SELECT ? type_of(b) : type_of(a), a, b, c);
}

ProgramBuilder::Id ProgramBuilder::cast(Id a, uint32_t dtype) {
  return type_of(a) == dtype ? a : emit(TN_OP_CAST, dtype, a, 0, 0);
}

ProgramBuilder::Id ProgramBuilder::philox(Id counter, Id key, uint32_t word) {
  return emit(TN_OP_PHILOX, TN_U32, counter, key, static_cast<uint16_t>(word));
}

void ProgramBuilder::output(Id value, uint32_t dtype) { out_.push_back(cast(value, dtype)); }

const tn_program* ProgramBuilder::finish() {
  const auto narrow = [](size_t n) { return static_cast<uint8_t>(std::min<size_t>(n, 255)); };  // the core refuses 255
  program_ = {};
  program_.size = sizeof program_;
  program_.n_inst = narrow(inst_.size());
  program_.n_in = narrow(n_in_);
  program_.n_out = narrow(out_.size());
  program_.n_slots = narrow(n_slots_);
  std::copy_n(out_.begin(), std::min<size_t>(out_.size(), TN_PROGRAM_MAX_OUT), program_.out);
  program_.inst = inst_.data();
  return &program_;
}

std::vector<tn_push> ProgramBuilder::literals() const {
  std::vector<tn_push> push;
  for (uint32_t k = 0; k < n_slots_; ++k) push.push_back(tenon::ops::slot(k));
  for (const auto& [number, bits] : literal_) push[number] = literal_bits(bits);
  return push;
}

}  // namespace tenon::ops
