// tests/errors/stage.h - a runtime with a few words to make calls that fail: op names, types as text, attributes.
//
//   Stage s;  s.infer("add", "f32[2,3] f32[2]");   s.call("softmax", "f32[2]", {integer(TN_KEY_AXIS, 5)});
#pragma once
#include <tenon/ops.h>
#include <tenon/plugin.h>
#include <tenon/runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/errors/said.h"

namespace tenon::errors {

// A scalar program written down: Program({{TN_OP_INPUT, TN_F32, 0, 0, 0}, ...}, inputs, slots, {outputs})
struct Program {
  Program(std::vector<tn_inst> code, uint8_t n_in, uint8_t n_slots, std::vector<uint16_t> outputs);
  tn_program get() const;
  std::vector<tn_inst> inst;
  uint8_t n_in, n_slots;
  std::vector<uint16_t> out;
};

struct Attr {
  uint32_t key, type;
  int64_t i = 0;
  std::vector<int64_t> list;
  std::shared_ptr<Program> program;
};
Attr integer(uint32_t key, int64_t value);
Attr list(uint32_t key, std::vector<int64_t> values);
Attr program(uint32_t key, Program p);

tn_type type_of(const std::string& text);  // "f32[2,3]", "f32[2,3]{1,2}" with strides, "f32[?,3]" with a symbol, "-" none

class Stage {
 public:
  enum Plugins { kReference, kWithSim };
  explicit Stage(Plugins plugins = kReference, uint32_t flags = 0, uint32_t policy = TN_POLICY_PREFER);
  ~Stage();
  Stage(const Stage&) = delete;

  uint32_t op(const char* name);
  uint32_t type(const std::string& text);
  uint32_t attrs(uint32_t op, const std::vector<Attr>& list);
  tn_tensor* tensor(const std::string& type, tn_queue* on = nullptr);  // of zeros; the stage's
  tn_tensor* keep(tn_tensor* t);                                       // takes it over
  tn_tensor* i64(std::vector<int64_t> values);

  Said infer(const char* name, const std::string& operands, const std::vector<Attr>& list = {}, uint32_t slots = 0);
  Said call(const char* name, const std::string& operands, const std::vector<Attr>& list = {}, uint32_t slots = 0, uint32_t n_out = 1);
  Said call(uint32_t op, std::vector<tn_tensor*> in, const std::vector<Attr>& list = {}, uint32_t slots = 0, uint32_t n_out = 1);
  uint32_t derive(uint32_t op, uint64_t need, uint64_t seeds = 1);

  tn_runtime* rt = nullptr;
  uint32_t cpu = 0, sim = 0;
  tn_queue *queue = nullptr, *sim_queue = nullptr;

 private:
  std::vector<tn_tensor*> tensors_;
};

// What tn_rates_keep says of one figure, in a runtime that keeps things in `cache` (nullptr: nowhere).
Said keep_rates(const char* cache, double value);

// Plugin folder of the build, and one plugin's file in it.
std::string plugin_file(const char* name);

// A plugin used directly through its table, as a host would; loaded once, without a runtime.
class Direct {
 public:
  explicit Direct(const char* name, const char* key = "", const char* value = "");
  ~Direct();
  Direct(const Direct&) = delete;
  const tn_kernel_info* kernel(const std::string& name) const;
  const tn_plugin* table = nullptr;
  tn_instance* instance = nullptr;
  tn_host host{};
  tn_device_ref ref{};
  std::string key, value;
  tn_status opened = TN_OK;
  tn_diag open_diag{};
};

}  // namespace tenon::errors
