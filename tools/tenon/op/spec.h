// tools/tenon/op/spec.h - operands and attributes as they are typed on the command line.
//
//   f32[512,512]      row-major           f32[512,512]{1,512}   with strides, in elements
//   i64[]             rank 0              -                     an optional operand that is absent
//
//   --attr axes=1   --attr strides=2,2   --attr dtype=bf16   --attr monoid=max   --attr program=add   --attr post=exp
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <tenon/runtime.h>
#include <vector>

namespace tenon::cli {

// dtype 0 for "-". Throws TN-CLI-004.
tn_type parse_spec(const std::string& text);
std::string spec_text(const tn_type& type);  // reads back as the same type

// Attributes in the order of their keys, with the memory behind them.
class AttrSet {
 public:
  // One "key=value", converted to the type that `defs` gives to the key. `operands`: what programs compute on.
  // Throws TN-CLI-005 for a key that the op does not know, or a value of another type.
  void add(const std::string& text, const tn_op_entry& op, const std::vector<tn_type>& operands);
  const std::vector<tn_attr>& attrs() const { return attrs_; }

 private:
  std::vector<tn_attr> attrs_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::string> texts_;
  std::deque<std::vector<tn_inst>> code_;
  std::deque<tn_program> programs_;
};

// The program that applies one scalar opcode ("add", "exp", or "identity") to operands of `dtype`. accumulated: its first
// input is an accumulator, in the compute type. False when the name is unknown.
bool scalar_program(const std::string& name, uint32_t dtype, bool accumulated, std::vector<tn_inst>* code, tn_program* out);

}  // namespace tenon::cli
