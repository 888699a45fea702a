// Loss, accuracy and counts per class over a dataset.
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/io/tensors.hpp>
#include <tenon/train/evaluate.hpp>
#include <tenon/train/source.hpp>

#include <chrono>

namespace tenon::train {
namespace {

struct ModeGuard {
  explicit ModeGuard(nn::Module& m) : model(m), training(m.is_training()) { model.eval(); }
  ~ModeGuard() { model.train(training); }
  nn::Module& model;
  bool training;
};

void count_answers(const std::vector<int64_t>& answers, const std::vector<int64_t>& labels, int64_t ignore_index, Evaluation& e) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignore_index) continue;
    const size_t most = static_cast<size_t>(std::max(labels[i], answers[i]));
    if (most >= e.classes.size()) e.classes.resize(most + 1);
    ClassCount& truth = e.classes[static_cast<size_t>(labels[i])];
    ++truth.samples;
    ++e.classes[static_cast<size_t>(answers[i])].predicted;
    e.accuracy.denominator += 1;
    if (answers[i] != labels[i]) continue;
    ++truth.correct;
    e.accuracy.numerator += 1;
  }
}

}  // namespace

Evaluation evaluate(nn::Module& model, std::shared_ptr<const data::Dataset> dataset, const EvaluateOptions& o) {
  const auto begin = std::chrono::steady_clock::now();
  const ModeGuard mode(model);
  NoGrad off;
  const Device device = o.device ? o.device : default_device();
  Evaluation e;
  e.classes.resize(dataset->classes());
  data::LoaderOptions options;
  options.batch = o.batch;
  options.shuffle = false;
  options.normalise = o.normalise;
  data::DataLoader loader(dataset, options);
  data::Batch batch;
  while (value_or_throw(loader.next(batch)) && !(o.stop != nullptr && o.stop->load() != 0)) {
    TensorOptions to;
    to.device = device;
    const Tensor y = from_host(batch.y.data(), DType::i64, {int64_t{batch.size}}, to);
    const Tensor output = model(images_to_device(batch, device, o.channels_last, o.dtype));
    const double loss = sum(cross_entropy_rows(output, y, o.ignore_index)).item<double>();
    const double before = e.accuracy.denominator;
    count_answers(argmax(output).to_vector<int64_t>(), batch.y, o.ignore_index, e);
    e.loss += {loss, e.accuracy.denominator - before};
  }
  e.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  e.images_per_s = e.seconds > 0 ? e.accuracy.denominator / e.seconds : 0;
  return e;
}

}  // namespace tenon::train
