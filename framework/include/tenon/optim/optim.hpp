// tenon/optim/optim.hpp - optimizers and learning-rate schedules, by PyTorch's formulas.
//
//   optim::AdamW opt(net.parameters(), {.lr = 1e-3});
//   optim::Scheduler schedule(opt, optim::one_cycle(total_steps));
//   loss.backward();  opt.step();  schedule.step();  opt.zero_grad();        // or: opt.step(grad(loss, net.parameters()))
//
// A step is one op call a parameter, in place; rates travel as pushed scalars, so a schedule never makes a new plan.
// state() holds everything a later process needs to go on bit for bit: moments, step counts, rates.
#pragma once
#include <tenon/core/tensor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::optim {

using StateDict = std::map<std::string, Tensor>;

// Parameters that share their rates.
struct Group {
  std::vector<Tensor> parameters;
  double lr = 0, base_lr = 0;  // base_lr: what schedules start from
  double weight_decay = 0;
  double momentum = 0;         // SGD's momentum, Adam's beta1
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  void step(Where where = here());  // with grad() of each parameter; those without one are left alone
  // With the given gradients, one per parameter in order over all groups; undefined = left alone.
  void step(const std::vector<Tensor>& gradients, Where where = here());
  void zero_grad();
  std::vector<Group>& groups() { return groups_; }
  const std::vector<Group>& groups() const { return groups_; }
  Group& add_group(Group g);  // rates of 0 take the defaults of the first group's options
  StateDict state() const;
  void load_state(const StateDict& s, Where where = here());  // TN-TRAIN-008 when it is another optimizer's
  int64_t steps() const { return steps_; }

 protected:
  explicit Optimizer(std::vector<Tensor> parameters, double lr, double weight_decay, double momentum, Where where);
  // What a subclass keeps per parameter, made at the first step: named tensors, zero.
  struct Slot { int64_t steps = 0; Tensor a, b; };
  virtual void update(Tensor& p, const Tensor& g, Slot& slot, const Group& group, Where where) = 0;
  virtual const char* name_a() const = 0;  // names of a and b in the state, "" = not used
  virtual const char* name_b() const = 0;

 private:
  std::vector<Group> groups_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

struct SGDOptions {
  double lr = 1e-2, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, SGDOptions o = {}, Where where = here());

 protected:
  void update(Tensor& p, const Tensor& g, Slot& slot, const Group& group, Where where) override;
  const char* name_a() const override { return "momentum_buffer"; }
  const char* name_b() const override { return ""; }

 private:
  SGDOptions o_;
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
class Adam : public Optimizer {  // weight decay is added to the gradient
 public:
  explicit Adam(std::vector<Tensor> parameters, AdamOptions o = {}, Where where = here()) : Adam(std::move(parameters), o, false, where) {}

 protected:
  Adam(std::vector<Tensor> parameters, AdamOptions o, bool decoupled, Where where);
  void update(Tensor& p, const Tensor& g, Slot& slot, const Group& group, Where where) override;
  const char* name_a() const override { return "exp_avg"; }
  const char* name_b() const override { return "exp_avg_sq"; }

 private:
  AdamOptions o_;
  bool decoupled_;
};
struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};
class AdamW : public Adam {  // weight decay shrinks the parameter itself
 public:
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions o = {}, Where where = here())
      : Adam(std::move(parameters), {o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay}, true, where) {}
};

// Scales gradients so that the norm over all of them is at most max_norm; returns the norm before. A norm that is not
// finite leaves NaN or 0, as the formula says: check the returned value. (blocks)
double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm, Where where = here());

// ---- schedules: pure functions of the step number, counted from 0
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual double lr(int64_t step, double base_lr) const = 0;
  virtual std::optional<double> momentum(int64_t) const { return std::nullopt; }  // none = leave it
};
std::unique_ptr<Schedule> constant();
std::unique_ptr<Schedule> step_decay(int64_t every, double gamma = 0.1);                // base gamma^(step / every)
std::unique_ptr<Schedule> cosine(int64_t period, double lowest_lr = 0);                  // CosineAnnealingLR
struct OneCycleOptions {
  double warm_share = 0.3, start_factor = 25, end_factor = 1e4;  // base_lr is the highest rate
  bool cycle_momentum = true;
  double low_momentum = 0.85, high_momentum = 0.95;
};
std::unique_ptr<Schedule> one_cycle(int64_t total_steps, OneCycleOptions o = {});        // OneCycleLR, cosine
// Rises from start_factor base to the schedule's rate over `steps`, then runs `then` from its step 0.
std::unique_ptr<Schedule> warmup(int64_t steps, std::unique_ptr<Schedule> then, double start_factor = 0);

// Sets the rates of an optimizer's groups; the optimizer must outlive it.
class Scheduler {
 public:
  Scheduler(Optimizer& optimizer, std::unique_ptr<Schedule> schedule);  // sets the rates of step 0
  void step() { seek(position_ + 1); }
  void seek(int64_t position);          // resume: all a scheduler remembers is its position
  int64_t position() const { return position_; }

 private:
  Optimizer& optimizer_;
  std::unique_ptr<Schedule> schedule_;
  int64_t position_ = 0;
};

}  // namespace tenon::optim
