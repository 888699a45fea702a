// kernel/class_plans.h - one decision for a whole class of shapes.
//
// A call whose operands are all dense and of equal dims, and whose plan is one launch of a kernel that takes sizes at run
// time, needs no new decision for every new shape: the plan of an earlier shape of about the same size is copied and gets
// its sizes. The class holds op, attributes, flags, element types and the power of two of the element count, so that a
// choice that depends on size is still made per size. Threads: any.
#pragma once
#include <mutex>
#include <string>
#include <unordered_map>

#include "kernel/plan.h"

namespace tenon::kernel {

class ClassPlans {
 public:
  static constexpr uint32_t kLimit = 4096;
  ~ClassPlans() { clear(); }
  // The class of a request, or an empty string when it has none.
  static std::string key_of(const Request& request);
  // A new plan made from an earlier one of the class, or nullptr. `types`: the inferred results.
  tn_plan* copy_for(const std::string& key, const std::vector<tn_type>& types);
  // Keeps `plan` as the model of its class when it is fit for that.
  void offer(const std::string& key, tn_plan* plan);
  void clear();

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, tn_plan*> models_;  // one reference each
};

}  // namespace tenon::kernel
