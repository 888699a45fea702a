// tenon/train/trainer.hpp - the main road of training, every part of which can be replaced.
//
//   train::LoaderSource source(loader, device("cpu:0"));
//   train::Trainer trainer({.model = net, .data = source, .optimizer = opt, .schedule = &schedule}, {.epochs = 4});
//   train::ProgressBar bar;
//   trainer.add(bar);
//   train::FitReport report = trainer.fit();
//
// A step: forward, loss over the valid samples, backward, optimizer, schedule. The host waits for the device only when
// losses are read (at most ten times a second, or every `read_every` steps).
// Exactness: the order of samples is a function of (seed, epoch, offset), random numbers of (seed, counter). A checkpoint
// holds both, the model, the optimizer and the schedule, so a resumed run computes the very same losses.
// Threads: one uses a trainer; `stop` may be set from anywhere.
// Errors: TN-TRAIN-015..019, and whatever the parts throw. A step that fails leaves no gradients behind.
#pragma once
#include <tenon/nn/module.hpp>
#include <tenon/optim/optim.hpp>
#include <tenon/train/metrics.hpp>
#include <tenon/train/source.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::train {

// Per-sample losses [n] from outputs and targets; ignored rows give 0.
using Loss = std::function<Tensor(const Tensor& output, const Tensor& target)>;
// How many samples were right: one number.
using Score = std::function<Tensor(const Tensor& output, const Tensor& target)>;
Loss cross_entropy(int64_t ignore_index = -100);
Score correct_answers();  // argmax over the last axis equals the label

// Where a run stands. Times in seconds; what is not known is negative.
struct Progress {
  int64_t step = 0, total_steps = 0, epoch = 0, epochs = 0, step_in_epoch = 0, steps_per_epoch = 0;
  double loss = 0;                 // mean over the samples since the last report
  Ratio epoch_loss, epoch_accuracy;
  double lr = 0, images_per_s = 0, elapsed_s = 0, eta_s = -1;
  double busy_share = -1;          // of the device, 0..1: for CPUs the process's processor time by what its threads could take
  uint64_t memory_bytes = 0, memory_limit_bytes = 0;  // of the device; limit 0: none
};
struct StepLoss { int64_t step = 0; double loss = 0; int64_t valid = 0; };  // step counts from 1
struct EpochReport { int64_t epoch = 0; Ratio loss, accuracy; double seconds = 0; };  // epoch counts from 1
struct FitReport {
  int64_t steps = 0, epochs = 0, images = 0;  // steps: all, with those before a resume; images: of this fit
  Ratio loss, accuracy;       // of the last epoch, complete or not
  double first_loss = 0, seconds = 0, images_per_s = 0;
  int stopped_by = 0;         // value of `stop` that ended the run early, 0: ran to its end
  std::string checkpoint;     // the last one written, "" none
};

class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_begin(const Progress&) {}
  virtual void on_losses(std::span<const StepLoss>) {}  // every step once, in order
  virtual void on_progress(const Progress&) {}
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_checkpoint(int64_t /*step*/, const std::string& /*directory*/) {}
  virtual void on_end(const FitReport&) {}
};

struct CheckpointPlan {
  std::string dir;             // "": none are written
  int64_t every = 0;           // steps; 0: only at the end and when stopped
  int64_t keep = 3;
  std::string config;          // text stored with it, UTF-8
};
struct TrainerOptions {
  int64_t epochs = 1;
  int64_t max_steps = 0;       // 0: all epochs
  int64_t read_every = 0;      // steps between two reads of losses; 0: by time
  double clip_norm = 0;        // largest norm over all gradients; 0: no limit
  Loss loss = cross_entropy();
  Score score = correct_answers();
  CheckpointPlan checkpoint;
  const std::atomic<int>* stop = nullptr;  // not 0: finish this step, save, return
  Generator* generator = nullptr;          // whose state is saved; NULL: default_generator()
};
// The parts; all borrowed and alive as long as the trainer.
struct Parts {
  nn::Module& model;
  BatchSource& data;
  optim::Optimizer& optimizer;
  optim::Scheduler* schedule = nullptr;
};

class Trainer {
 public:
  Trainer(Parts parts, TrainerOptions options);
  void add(Callback& callback) { callbacks_.push_back(&callback); }  // borrowed; called in this order
  // Loads a checkpoint folder (verified first); fit() then goes on behind it. Throws TN-TRAIN-015 or TN-FILE-*.
  void resume(const std::string& directory);
  FitReport fit();
  int64_t step() const { return step_; }
  int64_t total_steps() const;
  std::string save();          // writes a checkpoint now; returns its folder

 private:
  struct Pending { Tensor loss, correct; int64_t valid; };
  void train_step(const Batch& batch);
  void read_losses();
  bool due() const;
  bool run_epoch();            // false: the run ends within it
  bool after_step(const Batch& batch);
  void end_epoch();
  void report();
  Progress progress() const;
  void guard(Batch& batch, const std::function<void()>& body);
  FitReport finish();

  Parts parts_;
  TrainerOptions o_;
  std::vector<Callback*> callbacks_;
  std::vector<Tensor> parameters_;
  std::vector<Pending> pending_;
  std::vector<StepLoss> read_;
  int64_t step_ = 0, epoch_ = 0, step_in_epoch_ = 0, images_ = 0, saved_step_ = -1, first_step_ = 0;
  int64_t steps_per_epoch_ = 0, loss_step_ = 0;  // loss_step_: last step whose loss was read
  Ratio epoch_loss_, epoch_accuracy_, recent_loss_;
  FitReport report_;
  struct Clock;
  std::shared_ptr<Clock> clock_;
  Device device_;
};

}  // namespace tenon::train
