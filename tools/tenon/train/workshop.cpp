#include "tools/tenon/train/workshop.h"

#include <sys/stat.h>
#include <tenon/io/tensors.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {

uint32_t policy_number(const std::string& name) {
  return name == "require" ? TN_POLICY_REQUIRE : name == "no-expand" ? TN_POLICY_NO_EXPAND : TN_POLICY_PREFER;
}

Runtime open_runtime(const std::string& policy, int64_t threads, const std::string& kernels) {
  RuntimeOptions options;
  options.policy = policy_number(policy);
  options.threads = static_cast<uint32_t>(threads);
  if (kernels == "reference") options.flags |= TN_RT_NO_SEARCH;
  Runtime runtime(options, Where{"", 0});
  set_default_runtime(runtime);
  return runtime;
}

namespace {

bool exists(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0;
}

std::shared_ptr<const data::StreamingIdxDataset> open_stream(const std::string& dir, const std::string& part) {
  const auto file = [&](const char* dash, const char* dot) {
    const std::string path = dir + "/" + part + "-" + dash;
    return exists(path) ? path : dir + "/" + part + "-" + dot;
  };
  return value_or_throw(data::StreamingIdxDataset::open(file("images-idx3-ubyte", "images.idx3-ubyte"), file("labels-idx1-ubyte", "labels.idx1-ubyte")), Where{"", 0});
}

// From the first images: a file larger than memory is not read twice.
data::Normalise measure_stream(const data::Dataset& dataset) {
  constexpr uint64_t kMost = 10000;
  std::vector<uint64_t> indices(std::min(dataset.size(), kMost));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  std::vector<uint8_t> pixels(indices.size() * dataset.shape().pixels());
  std::vector<int64_t> labels(indices.size());
  throw_if_failed(dataset.read(indices, pixels.data(), labels.data()), Where{"", 0});
  return measure_normalisation(*value_or_throw(data::MemoryDataset::create(dataset.shape(), std::move(pixels), std::move(labels), dataset.classes())));
}

// Data whose pixels are all alike has a deviation of 0, by which nothing can be divided.
data::Normalise usable(data::Normalise n) {
  for (float& s : n.stddev) if (!(s > 0)) s = 1;
  return n;
}

}  // namespace

LoadedData load_data(const config::TrainConfig::Data& source, int64_t limit_train, int64_t limit_test) {
  LoadedData d;
  if (source.kind == "idx-stream") {
    d.train = open_stream(source.dir, "train");
    d.test = open_stream(source.dir, "t10k");
    d.normalise = usable(measure_stream(*d.train));
  } else {
    const data::IdxDataset all = value_or_throw(data::load_idx_dataset(source.dir), Where{"", 0});
    d.train = all.train;
    d.test = all.test;
    d.normalise = usable(data::measure_normalisation(*all.train));
    d.class_names = class_names(all.train_labels_known_as);
    d.known_as = all.train_images_known_as;
  }
  d.train = data::first_samples(d.train, static_cast<uint64_t>(limit_train));
  d.test = data::first_samples(d.test, static_cast<uint64_t>(limit_test));
  return d;
}

Workshop::Workshop(config::TrainConfig s, const std::atomic<int>* stop) : settings(std::move(s)) {
  if (settings.precision != "f32" && settings.precision != "f64")
    throw Failure(kFailed, "TN-CLI-021", "training in this precision is not supported", "precision", "precision is " + settings.precision + "; f32 and f64 are trained in", "use --precision=f32");
  runtime = open_runtime(settings.policy, settings.threads, settings.kernels);
  device = runtime->device(settings.device, policy_number(settings.policy), Where{"", 0});
  set_default_device(device);
  settings.device = device.name();
  manual_seed(static_cast<uint64_t>(settings.seed));
  data = load_data(settings.data, settings.limit_train, settings.limit_test);
  build_model();
  build_optimizer();
  train::TrainerOptions o;
  o.epochs = settings.epochs;
  o.max_steps = settings.steps;
  o.checkpoint = {settings.checkpoint.dir, settings.checkpoint.every, settings.checkpoint.keep, config::print_toml(settings)};
  o.stop = stop;
  trainer = std::make_unique<train::Trainer>(train::Parts{model, *source, *optimizer, schedule.get()}, std::move(o));
}

void Workshop::build_model() {
  dtype = settings.precision == "f64" ? DType::f64 : DType::f32;
  card.layers = settings.model.preset.empty() ? settings.model.layers : train::preset_layers(settings.model.preset, data.train->classes(), Where{"", 0});
  card.input = data.train->shape();
  card.classes = data.train->classes();
  card.normalise = data.normalise;
  card.class_names = data.class_names;
  card.config = config::print_toml(settings);
  model = train::build_model(card.layers, card.input, nullptr, Where{"", 0});
  model.move_to(device);
  model.convert_to(dtype);
  channels_last = device.kind() == TN_KIND_CPU && settings.kernels != "reference";
}

std::unique_ptr<optim::Schedule> Workshop::make_schedule(int64_t total) const {
  const auto& s = settings.schedule;
  if (s.name == "one_cycle") {
    optim::OneCycleOptions o;
    o.warm_share = s.warmup;
    return optim::one_cycle(total, o);
  }
  if (s.name == "cosine") return optim::cosine(total, s.min_lr);
  if (s.name == "step") return optim::step_decay(s.step_size * source->batches_per_epoch(), s.gamma);
  return optim::constant();
}

void Workshop::build_optimizer() {
  data::LoaderOptions lo;
  lo.batch = static_cast<uint32_t>(settings.batch);
  lo.seed = static_cast<uint64_t>(settings.seed);
  lo.normalise = data.normalise;
  loader = std::make_unique<data::DataLoader>(data.train, lo);
  source = std::make_unique<train::LoaderSource>(*loader, device, train::LoaderSourceOptions{.batch = settings.batch, .channels_last = channels_last, .dtype = dtype});
  const auto& o = settings.optimizer;
  const double lr = settings.schedule.name == "one_cycle" ? settings.schedule.max_lr : o.lr;
  const Where nowhere{"", 0};
  if (o.name == "sgd") optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = lr, .momentum = o.momentum, .weight_decay = o.weight_decay}, nowhere);
  else if (o.name == "adamw") optimizer = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{lr, o.betas[0], o.betas[1], o.eps, o.weight_decay}, nowhere);
  else optimizer = std::make_unique<optim::Adam>(model.parameters(), optim::AdamOptions{lr, o.betas[0], o.betas[1], o.eps, o.weight_decay}, nowhere);
  const int64_t all = settings.epochs * source->batches_per_epoch();
  schedule = std::make_unique<optim::Scheduler>(*optimizer, make_schedule(std::max<int64_t>(settings.steps > 0 ? std::min(settings.steps, all) : all, 1)));
}

train::Evaluation Workshop::test(const std::atomic<int>* stop) {
  return train::evaluate(model, data.test, {.device = device, .normalise = data.normalise, .channels_last = channels_last, .dtype = dtype, .stop = stop});
}

}  // namespace tenon::cli
