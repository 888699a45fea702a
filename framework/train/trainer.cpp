// The loop: steps, epochs, reading of losses, reports.
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/train/trainer.hpp>

#include "framework/core/state.h"
#include "framework/train/clock.h"
#include "framework/train/memory.h"

#include <algorithm>
#include <cmath>

namespace tenon::train {
using detail::format;
using detail::raise;

Loss cross_entropy(int64_t ignore_index) {
  return [ignore_index](const Tensor& output, const Tensor& target) { return cross_entropy_rows(output, target, ignore_index); };
}

Score correct_answers() {
  return [](const Tensor& output, const Tensor& target) { return sum(cast(equal(argmax(output), target), DType::f32)); };
}

Trainer::Trainer(Parts parts, TrainerOptions options)
    : parts_(parts), o_(std::move(options)), parameters_(parts.model.parameters()), steps_per_epoch_(parts.data.batches_per_epoch()),
      clock_(std::make_shared<Clock>()) {
  device_ = parameters_.empty() ? default_device() : parameters_[0].device();
}

int64_t Trainer::total_steps() const {
  const int64_t all = o_.epochs * steps_per_epoch_;
  return o_.max_steps > 0 ? std::min(o_.max_steps, all) : all;
}

// Sums, not means, are kept: the number of valid samples is known on the host, so no op counts them.
void Trainer::train_step(const Batch& batch) {
  const Tensor output = parts_.model(batch.x);
  const Tensor loss = sum(o_.loss(output, batch.y));
  const Tensor mean = loss * (1.0 / static_cast<double>(std::max<int64_t>(batch.valid, 1)));
  mean.backward();
  if (o_.clip_norm > 0) optim::clip_grad_norm(parameters_, o_.clip_norm);
  parts_.optimizer.step();
  parts_.optimizer.zero_grad();
  if (parts_.schedule != nullptr) parts_.schedule->step();
  NoGrad off;
  pending_.push_back({loss.detach(), o_.score(output.detach(), batch.y), batch.valid});
}

bool Trainer::due() const {
  constexpr size_t kMostPending = 64;  // bounds what is held, and the operands of one concat
  if (pending_.size() >= kMostPending) return true;
  if (o_.read_every > 0) return static_cast<int64_t>(pending_.size()) >= o_.read_every;
  return clock_->since_read() >= 0.1;
}

// The one place where the host waits for the device.
void Trainer::read_losses() {
  if (pending_.empty()) return;
  std::vector<Tensor> parts;
  for (const Pending& p : pending_) parts.push_back(p.loss.reshape({1})), parts.push_back(p.correct.to(p.loss.dtype()).reshape({1}));
  const std::vector<double> v = concat(std::span<const Tensor>(parts)).to_vector<double>();
  read_.clear();
  for (size_t i = 0; i < pending_.size(); ++i) {
    const double valid = static_cast<double>(pending_[i].valid);
    const Ratio loss{v[2 * i], valid};
    recent_loss_ += loss;
    epoch_loss_ += loss;
    epoch_accuracy_ += {v[2 * i + 1], valid};
    read_.push_back({++loss_step_, valid > 0 ? loss.value() : 0, pending_[i].valid});
  }
  pending_.clear();
  clock_->read();
  for (Callback* c : callbacks_) c->on_losses(read_);
  for (const StepLoss& s : read_)
    if (!std::isfinite(s.loss))
      raise(TN_E_FAILED, error::id(error::kTrain, 16), here(), "fit", "the loss is no longer a finite number",
            format("loss %g at step %lld of %lld, learning rate %g", std::isnan(s.loss) ? NAN : s.loss, static_cast<long long>(s.step),
                   static_cast<long long>(total_steps()), parts_.optimizer.groups()[0].lr),
            "lower the learning rate, or set clip_norm");
}

Progress Trainer::progress() const {
  Progress p;
  p.step = step_;
  p.total_steps = total_steps();
  p.epoch = epoch_;
  p.epochs = o_.epochs;
  p.step_in_epoch = step_in_epoch_;
  p.steps_per_epoch = steps_per_epoch_;
  p.loss = recent_loss_.value();
  p.epoch_loss = epoch_loss_;
  p.epoch_accuracy = epoch_accuracy_;
  p.lr = parts_.optimizer.groups()[0].lr;
  p.images_per_s = clock_->images_per_s();
  p.elapsed_s = clock_->elapsed();
  if (step_ > first_step_) p.eta_s = p.elapsed_s / static_cast<double>(step_ - first_step_) * static_cast<double>(p.total_steps - step_);
  if (device_.kind() == TN_KIND_CPU) p.busy_share = clock_->busy_share(tn_threads(device_.runtime()));
  const MemoryUse memory = memory_use(device_);
  p.memory_bytes = memory.held;
  p.memory_limit_bytes = memory.limit;
  return p;
}

void Trainer::report() {
  read_losses();
  clock_->measure(images_);
  const Progress p = progress();
  for (Callback* c : callbacks_) c->on_progress(p);
  recent_loss_ = {};
}

// false: the run ends here.
bool Trainer::after_step(const Batch& batch) {
  ++step_, ++step_in_epoch_;
  images_ += batch.size;
  if (due()) report();
  const CheckpointPlan& plan = o_.checkpoint;
  if (!plan.dir.empty() && plan.every > 0 && step_ % plan.every == 0) save();
  if (o_.stop != nullptr && o_.stop->load() != 0) report_.stopped_by = o_.stop->load();
  return report_.stopped_by == 0 && step_ < total_steps();
}

bool Trainer::run_epoch() {
  Batch batch;
  for (;;) {
    bool more = false;
    guard(batch, [&] { more = parts_.data.next(batch); });
    if (!more) break;
    guard(batch, [&] { train_step(batch); });
    const bool go_on = after_step(batch);
    if (!go_on && step_in_epoch_ < steps_per_epoch_) return false;
    if (!go_on) {  // the epoch is complete too: its report and the source's state say so
      guard(batch, [&] { parts_.data.next(batch); });
      break;
    }
  }
  end_epoch();
  return report_.stopped_by == 0 && step_ < total_steps();
}

void Trainer::end_epoch() {
  report();
  ++epoch_;
  report_.loss = epoch_loss_;
  report_.accuracy = epoch_accuracy_;
  const EpochReport e{epoch_, epoch_loss_, epoch_accuracy_, clock_->lap()};
  epoch_loss_ = epoch_accuracy_ = {};
  step_in_epoch_ = 0;
  for (Callback* c : callbacks_) c->on_epoch(e);
}

FitReport Trainer::fit() {
  parts_.model.train();
  clock_->start();
  report_ = {};
  images_ = 0;
  first_step_ = step_;
  const Progress begin = progress();
  for (Callback* c : callbacks_) c->on_begin(begin);
  if (step_ < total_steps()) while (run_epoch()) {}
  return finish();
}

FitReport Trainer::finish() {
  if (!pending_.empty()) report();
  if (step_in_epoch_ > 0) report_.loss = epoch_loss_, report_.accuracy = epoch_accuracy_;
  if (!o_.checkpoint.dir.empty() && saved_step_ != step_) save();
  report_.steps = step_;
  report_.epochs = epoch_;
  report_.images = images_;
  report_.seconds = clock_->elapsed();
  report_.images_per_s = report_.seconds > 0 ? static_cast<double>(images_) / report_.seconds : 0;
  for (Callback* c : callbacks_) c->on_end(report_);
  return report_;
}

// Runs a part of a step. Whatever fails, no gradients and no half-read losses stay; out of memory is explained.
void Trainer::guard(Batch& batch, const std::function<void()>& body) {
  std::string why;
  try {
    return body();
  } catch (const Error& e) {
    parts_.optimizer.zero_grad();
    if (e.status() != TN_E_OOM) throw;
    why = e.why();
  }
  pending_.clear();
  const int64_t samples = batch.size > 0 ? batch.size : parts_.data.batch_size();
  batch = {};
  explain_out_of_memory({parts_.model, parts_.data, parts_.optimizer, parameters_, o_.loss, device_, o_.generator}, samples, why);
}

}  // namespace tenon::train
