// tests/gpu_prims/case.h - one op with operands in memory, run by the reference and through recipes.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "ops/reference/dtype.h"
#include "ops/reference/reference.h"
#include "tests/gpu_prims/cl_machine.h"

namespace tenon::test {

using Dims = std::vector<int64_t>;

// A tensor with strides of any sign, surrounded by bytes that must stay as they are.
struct Operand {
  tn_type type{};
  std::vector<unsigned char> bytes;
  int64_t offset = 0;  // bytes to element [0,...,0]
  void* first() { return bytes.data() + offset; }
};

enum class Layout { Dense, Transposed /* last two axes swapped in memory */, Reversed /* negative strides */, Spread /* gaps */ };
Operand make_operand(uint32_t dtype, const Dims& dims, Layout, int64_t element_offset = 0);
void fill_random(Operand*, std::mt19937&, double low, double high);
double get(const Operand&, const Dims& at);
void set(Operand*, const Dims& at, double value);
void for_each_index(const Operand&, const std::function<void(const Dims&)>&);

class Case {
 public:
  Case(uint64_t op_id, uint32_t n_in) : op_id_(op_id), n_in_(n_in) {}
  std::vector<Operand> operand;  // inputs, then outputs
  void attr_int(uint32_t key, int64_t value);
  void attr_ints(uint32_t key, Dims values);
  void attr_program(uint32_t key, std::vector<tn_inst> inst, uint8_t n_in, std::vector<uint16_t> out, uint8_t slots = 0);
  std::vector<uint64_t> push;
  tn_op op();

  // The reference's outputs, as a copy of the operands.
  std::vector<Operand> reference(tn_status* status = nullptr);
  // The row's outputs. Returns the error word; nullopt when the row says no.
  std::optional<uint32_t> run(const char* row, const gpu::Caps&, std::vector<Operand>* out);
  size_t steps = 0;     // of the last run
  std::string refusal;  // the last no

 private:
  uint64_t op_id_;
  uint32_t n_in_;
  std::vector<tn_attr> attrs_;
  std::vector<std::unique_ptr<Dims>> lists_;
  std::vector<std::unique_ptr<std::vector<tn_inst>>> insts_;
  std::vector<std::unique_ptr<tn_program>> programs_;
  std::vector<tn_type> types_;
};

uint32_t row_named(const char* name);
// Every output equal: exactly, or within `ulps` of `scale(at)` (the sum of magnitudes) in f32 for floats. Also that nothing beside
// the elements was written.
void expect_same(const Case&, const std::vector<Operand>& want, const std::vector<Operand>& got, uint32_t n_in, double ulps, double scale);

}  // namespace tenon::test
