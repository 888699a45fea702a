// ops/emit.h - writing rules (expand, vjp) in C++ over the C builder.
//
//   tn_status expand(void*, tn_builder* b, const tn_rule* r, tn_diag* d) {
//     Emit e(b, r, d);
//     Value x = e.in(0);
//     Value top = e.op(TN_OPID_MAX, {x}, {Attr::ints(TN_KEY_AXES, {-1}), Attr::i64(TN_KEY_KEEPDIMS, 1)});
//     e.result(0, e.op(TN_OPID_SUB, {x, top}));
//     return e.status();
//   }
//
// The first failure sticks: later calls do nothing and status() returns it. Values are numbers; nothing is owned.
// Attribute lists passed as initializer lists live until the end of the full expression, which is all emit needs.
#pragma once
#include <tenon/ops.h>
#include <tenon/runtime.h>

#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::ops {

struct Value {
  uint32_t id = TN_NONE;
  explicit operator bool() const { return id != TN_NONE; }
};

// One attribute; keeps lists by value. Programs and strings are borrowed.
struct Attr {
  uint32_t key = 0, type = 0;
  int64_t i = 0;
  double f = 0;
  std::vector<int64_t> list;
  const void* p = nullptr;
  static Attr i64(uint32_t key, int64_t v) { Attr a; a.key = key; a.type = TN_ATTR_I64; a.i = v; return a; }
  static Attr f64(uint32_t key, double v) { Attr a; a.key = key; a.type = TN_ATTR_F64; a.f = v; return a; }
  static Attr ints(uint32_t key, std::vector<int64_t> v) { Attr a; a.key = key; a.type = TN_ATTR_I64S; a.list = std::move(v); return a; }
  static Attr program(uint32_t key, const tn_program* v) { Attr a; a.key = key; a.type = TN_ATTR_PROGRAM; a.p = v; return a; }
};

// A push slot of an emitted node: a literal of the given compute type, or slot `k` of the op being expanded.
tn_push literal(double value, uint32_t compute_dtype);
tn_push literal_bits(uint64_t bits);
tn_push slot(uint32_t k);

class Emit {
 public:
  Emit(tn_builder* b, const tn_rule* rule, tn_diag* diag) : b_(b), rule_(rule), diag_(diag), api_(tn_builder_table()) {}

  // Operands of the op being expanded or differentiated.
  const tn_op& self() const { return *rule_->op; }
  Value in(uint32_t i) const { return {rule_->in[i]}; }
  bool has(uint32_t i) const { return i < self().n_in && self().type[i].dtype != 0; }
  Value out(uint32_t i) const { return {rule_->out[i]}; }
  Value seed(uint32_t i) const { return {rule_->seed[i]}; }
  bool needs(uint32_t result) const { return (rule_->need >> (result < 63 ? result : 63) & 1) != 0; }
  void result(uint32_t i, Value v) { rule_->result[i] = v.id; }

  // Add a node with one output, or several.
  Value op(uint64_t op_id, std::initializer_list<Value> in, std::initializer_list<Attr> attrs = {},
           std::initializer_list<tn_push> push = {});
  std::vector<Value> ops(uint64_t op_id, std::span<const Value> in, std::span<const Attr> attrs, std::span<const tn_push> push,
                         uint32_t n_out);
  tn_type type(Value v);  // zeros after a failure
  std::vector<int64_t> dims(Value v);
  const tn_dims* arithmetic() const;  // for dims that may be symbols

  // Fails the rule with TN_E_* and a message "what; where; why; try" (printf style).
  tn_status fail(tn_status status, uint32_t id, const char* format, ...) __attribute__((format(printf, 4, 5)));
  tn_status status() const { return status_; }
  bool ok() const { return status_ == TN_OK; }

  // Pass all attributes of the op being expanded to a node of the same attributes.
  Value same_attrs(uint64_t op_id, std::initializer_list<Value> in, std::initializer_list<Attr> replace = {});

 private:
  std::vector<Value> emit_node(uint64_t op_id, std::span<const Value> in, std::vector<tn_attr> attrs,
                               std::span<const tn_push> push, uint32_t n_out);
  tn_builder* b_;
  const tn_rule* rule_;
  tn_diag* diag_;
  const tn_builder_api* api_;
  tn_status status_ = TN_OK;
};

// Reading attributes of a tn_op; `fallback` when absent.
const tn_attr* find_attr(const tn_op& op, uint32_t key);
int64_t attr_i64(const tn_op& op, uint32_t key, int64_t fallback);
double attr_f64(const tn_op& op, uint32_t key, double fallback);
std::vector<int64_t> attr_ints(const tn_op& op, uint32_t key, std::vector<int64_t> fallback = {});
const tn_program* attr_program(const tn_op& op, uint32_t key);  // nullptr when absent
std::vector<tn_attr> copy_attrs(const tn_op& op);

// Shape helpers shared by infer rules. All leave `out` dense row-major unless they say otherwise.
void set_dense(tn_type* t, const tn_dims* dims);                                    // strides from dims, last axis fastest
void set_dense_like(tn_type* t, const tn_type& model, const tn_dims* dims);         // model's axis order if it is dense
tn_status broadcast(const tn_op* op, const tn_dims* dims, tn_type* out, tn_diag*);  // NumPy rule over all present inputs
int64_t normalise_axis(int64_t axis, int64_t rank);                                 // -1 when outside
tn_status fail(tn_diag* diag, tn_status status, uint32_t id, const char* format, ...) __attribute__((format(printf, 4, 5)));
const char* dtype_name(uint32_t dtype);                 // "f32"
uint32_t dtype_bits(uint32_t dtype);
std::string type_text(const tn_type& t);                // "f32[2,3]"; symbols as s0, s1
std::string dim_text(int64_t dim);

// Error ids: family << 16 | number, printed as TN-SHAPE-002. One list for the whole project: docs/errors/index.tsv.
enum Family : uint32_t { kArg = 1, kShape, kDtype, kState, kMem, kOp, kDevice, kLoad, kPolicy, kData, kFile, kConf, kGrad, kTrain, kAbi };
constexpr uint32_t error_id(Family family, uint32_t number) { return family << 16 | number; }

// Building scalar programs. Values are instruction numbers. Constants are push slots numbered in order of use unless given.
//   ProgramBuilder p(TN_F32); auto x = p.input(0); p.output(p.op(TN_OP_MUL, x, x)); const tn_program* prog = p.finish();
// Storage types: input() and output() add the casts to and from the compute type.
class ProgramBuilder {
 public:
  using Id = uint16_t;
  explicit ProgramBuilder(uint32_t storage_dtype) : storage_(storage_dtype), compute_(compute_type_of(storage_dtype)) {}
  Id input(uint32_t number) { return input(number, storage_); }
  Id input(uint32_t number, uint32_t dtype);                      // cast to its compute type
  Id slot(uint32_t number) { return slot(number, compute_); }     // push slot as a constant
  Id slot(uint32_t number, uint32_t dtype);
  Id constant(double value) { return constant(value, compute_); } // a literal: takes the next free slot, see literals()
  Id constant(double value, uint32_t dtype);
  Id index(uint32_t axis, uint32_t dtype);
  Id op(uint32_t opcode, Id a);                                   // ISNAN gives bool
  Id op(uint32_t opcode, Id a, Id b);                             // comparisons give bool
  Id op(uint32_t opcode, Id a, Id b, Id c);
  Id cast(Id a, uint32_t dtype);
  Id philox(Id counter, Id key, uint32_t word);
  void output(Id value) { output(value, storage_); }
  void output(Id value, uint32_t dtype);                          // cast to dtype first
  uint32_t type_of(Id v) const { return inst_[v].type; }
  uint32_t compute() const { return compute_; }
  // Slots 0..n-1 belong to the caller. Say so before the first constant(), which takes the next slot above.
  void reserve_slots(uint32_t n) { if (n > n_slots_) n_slots_ = n; }
  // The program, owned by this builder. literals(): push entries for all slots; caller's slots are passed through by number.
  const tn_program* finish();
  std::vector<tn_push> literals() const;
  size_t size() const { return inst_.size(); }

 private:
  static uint32_t compute_type_of(uint32_t dtype);
  Id emit(uint32_t opcode, uint32_t type, uint16_t a, uint16_t b, uint16_t c);
  uint32_t storage_, compute_, n_slots_ = 0;
  std::vector<tn_inst> inst_;
  std::vector<uint16_t> out_;
  std::vector<std::pair<uint32_t, uint64_t>> literal_;  // slot, bits
  uint32_t n_in_ = 0;
  tn_program program_{};
};

}  // namespace tenon::ops
