// A trainer's state in and out of a checkpoint folder.
#include <tenon/core/random.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/tensors.hpp>
#include <tenon/train/trainer.hpp>

#include "framework/core/state.h"

namespace tenon::train {
namespace {

using StateDict = std::map<std::string, Tensor>;

// Host copies of a state, and views of them for the writer.
struct HostState {
  explicit HostState(const StateDict& state) {
    bytes.reserve(state.size());
    for (const auto& [name, t] : state) {
      bytes.emplace_back(static_cast<size_t>(t.numel() * size_bytes(t.dtype())));
      if (!bytes.back().empty()) t.read(bytes.back().data(), bytes.back().size());
      views.push_back({name, static_cast<uint32_t>(t.dtype()), {t.dims().begin(), t.dims().end()}, bytes.back().data(), bytes.back().size()});
    }
  }
  std::vector<std::vector<char>> bytes;
  std::vector<io::SafetensorsView> views;
};

[[noreturn]] void refuse(const std::string& directory, const std::string& why) {
  detail::raise(TN_E_ARG, error::id(error::kTrain, 15), Where{"", 0}, "resume", "the checkpoint does not fit this run", directory + ": " + why,
                "resume with the model, optimizer, data and batch that the run was started with");
}

double number(const io::TrainingState& s, const char* name) {
  const auto at = s.scalars.find(name);
  return at == s.scalars.end() ? 0 : at->second;
}
uint64_t counter(const io::TrainingState& s, const char* name) {
  const auto at = s.counters.find(name);
  return at == s.counters.end() ? 0 : at->second;
}

}  // namespace

std::string Trainer::save() {
  read_losses();
  io::TrainingState s;
  const data::SamplerState sampler = parts_.data.state();
  const GeneratorState random = (o_.generator ? *o_.generator : default_generator()).state();
  s.step = static_cast<uint64_t>(step_);
  s.epoch = static_cast<uint64_t>(epoch_);
  s.sampler_seed = sampler.seed, s.sampler_epoch = sampler.epoch, s.sampler_offset = sampler.offset;
  s.generator_seed = random.seed, s.generator_offset = random.offset;
  s.scalars = {{"loss.numerator", epoch_loss_.numerator}, {"loss.denominator", epoch_loss_.denominator},
               {"accuracy.numerator", epoch_accuracy_.numerator}, {"accuracy.denominator", epoch_accuracy_.denominator}};
  s.counters = {{"step_in_epoch", static_cast<uint64_t>(step_in_epoch_)}, {"steps_per_epoch", static_cast<uint64_t>(steps_per_epoch_)},
                {"scheduler.position", static_cast<uint64_t>(parts_.schedule ? parts_.schedule->position() : 0)}};
  s.config = o_.checkpoint.config;
  const HostState model(parts_.model.state_dict()), optimizer(parts_.optimizer.state());
  const std::string directory = value_or_throw(io::save_checkpoint(o_.checkpoint.dir, s, model.views, optimizer.views));
  throw_if_failed(io::prune_checkpoints(o_.checkpoint.dir, static_cast<size_t>(std::max<int64_t>(o_.checkpoint.keep, 1))));
  saved_step_ = step_;
  report_.checkpoint = directory;
  for (Callback* c : callbacks_) c->on_checkpoint(step_, directory);
  return directory;
}

void Trainer::resume(const std::string& directory) {
  value_or_throw(io::verify_checkpoint(directory));
  const io::TrainingState s = value_or_throw(io::read_state(directory + "/state.json"));
  if (counter(s, "steps_per_epoch") != static_cast<uint64_t>(steps_per_epoch_))
    refuse(directory, detail::format("an epoch had %llu steps, this run's has %lld", static_cast<unsigned long long>(counter(s, "steps_per_epoch")),
                                     static_cast<long long>(steps_per_epoch_)));
  // Everything is read and checked before anything is changed.
  TensorOptions options;
  options.device = device_;
  const StateDict model = load_safetensors(directory + "/model.safetensors", options);
  TensorOptions host;
  host.device = device("cpu:0");
  const StateDict optimizer = load_safetensors(directory + "/optimizer.safetensors", host);
  const StateDict before = parts_.model.state_dict();
  for (const auto& [name, t] : before)
    if (const auto at = model.find(name); at == model.end() || at->second.shape() != t.shape())
      refuse(directory, name + " is " + (at == model.end() ? "absent there" : at->second.type_text() + " there, " + t.type_text() + " here"));
  parts_.optimizer.load_state(optimizer);
  parts_.model.load_state_dict(model);
  parts_.data.restore({s.sampler_seed, s.sampler_epoch, s.sampler_offset});
  (o_.generator ? *o_.generator : default_generator()).set_state({s.generator_seed, s.generator_offset});
  if (parts_.schedule) parts_.schedule->seek(static_cast<int64_t>(counter(s, "scheduler.position")));
  step_ = loss_step_ = saved_step_ = static_cast<int64_t>(s.step);
  epoch_ = static_cast<int64_t>(s.epoch);
  step_in_epoch_ = static_cast<int64_t>(counter(s, "step_in_epoch"));
  epoch_loss_ = {number(s, "loss.numerator"), number(s, "loss.denominator")};
  epoch_accuracy_ = {number(s, "accuracy.numerator"), number(s, "accuracy.denominator")};
}

}  // namespace tenon::train
