// tools/conformance/machine.h - a runtime with chosen plugins, spoken to through the C functions alone, and calls on arrays.
//
//   Machine m({"lib/tenon/plugins/libtenon_backend_cpu.so"});
//   Call add{"add", {}, {array(TN_F32, {2}, {1, 2}), array(TN_F32, {2}, {3, 4})}};
//   for (const Candidate& c : m.candidates(add, "cpu:0"))
//     EXPECT_TRUE(m.run(add, "cpu:0", c).ok());
#pragma once
#include <tenon/runtime.h>

#include <map>
#include <string>
#include <vector>

#include "tools/conformance/array.h"

namespace tenon::conformance {

struct Call {
  std::string op;
  std::vector<ops::CaseAttr> attrs;
  std::vector<Array> in;
  std::vector<uint64_t> push = {};
  uint32_t program_dtype = TN_F32;  // of programs among the attributes
};

// How a call is made to run: a kernel by name, or "expand", with a pin on one primitive that the expansion may use.
struct Candidate {
  std::string kernel;
  std::string part, part_kernel;  // empty: parts choose for themselves
  std::string text() const { return part.empty() ? kernel : kernel + " with " + part_kernel; }
};

struct Outcome {
  tn_status status = TN_OK;
  std::string message;
  std::vector<Array> out;     // dtype 0: zero whatever the values are
  bool ok() const { return status == TN_OK; }
};

class Machine {
 public:
  // Plugin files, in this order; the linked reference plugin is always there. Throws std::runtime_error.
  explicit Machine(const std::vector<std::string>& files, uint32_t threads = 2);
  enum class Take { Over };
  Machine(tn_runtime* runtime, Take) : runtime_(runtime) {}  // one that was made elsewhere; the machine ends it
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint32_t device(const std::string& name);  // 0 when it is not there
  uint32_t op(const std::string& name);

  // Everything that can run the call on the device: rows of tn_why that are fit. `parts`: an expansion once more for every
  // kernel of the primitives it is made of.
  std::vector<Candidate> candidates(const Call& call, const std::string& device, bool parts = false);
  // All rows of tn_why, best first.
  std::vector<tn_candidate> why(const Call& call, const std::string& device);
  // The same of a plan that was really prepared, for each of its decisions. Empty where none could be.
  std::vector<tn_candidate> planned(const Call& call, const std::string& device);

  Outcome run(const Call& call, const std::string& device, const Candidate& candidate);
  Outcome run(const Call& call, const std::string& device);                         // the scheduler chooses
  Outcome run_op(uint32_t op, const Call& call, const std::string& device);         // a derived op: call.op names its base
  // Output types; rank and dims of `out`, no values.
  Outcome infer(const Call& call);
  // Of types that may hold symbols.
  tn_status infer_types(const Call& call, const std::vector<tn_type>& in, std::vector<tn_type>* out, std::string* message);
  // Attributes as kernels get them: defaults filled in, programs interned. They live as long as the machine.
  tn_status attributes(const Call& call, const tn_attr** out, uint32_t* out_n, std::string* message);
  uint32_t derive(uint32_t op, uint64_t seeds, uint64_t need);                      // vjp
  tn_runtime* runtime() { return runtime_; }

 private:
  struct Spec;
  uint32_t intern_attrs(uint32_t op, const Call& call, tn_status* status, std::string* message);
  tn_tensor* make(const Array& a, tn_queue* queue, std::string* message);
  std::vector<std::string> rows_of(const std::string& op, const std::string& device);
  tn_runtime* runtime_ = nullptr;
  std::map<std::string, uint32_t> ops_, devices_;
  std::map<std::string, std::vector<std::string>> rows_;
};

// The linked reference plugin alone: the oracle. Made when first asked for.
Machine& reference_machine();

}  // namespace tenon::conformance
