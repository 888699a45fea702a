// What a device's memory holds; and, after a step that did not fit, the largest batch that does.
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>

#include "framework/core/state.h"
#include "framework/train/memory.h"

namespace tenon::train {
namespace {

using detail::format;

std::string mebibytes(uint64_t bytes) { return format("%.1f MiB", static_cast<double>(bytes) / 1048576); }
uint64_t bytes_of(const Tensor& t) { return static_cast<uint64_t>(t.numel() * size_bytes(t.dtype())); }

// Statistics and random state as they were, whatever the attempts did to them.
class Restore {
 public:
  Restore(nn::Module& model, Generator* generator) : generator_(generator ? *generator : default_generator()), random_(generator_.state()) {
    for (auto& [name, t] : model.named_buffers()) {
      values_.emplace_back(t, std::vector<char>(bytes_of(t)));
      t.read(values_.back().second.data(), values_.back().second.size());
    }
  }
  ~Restore() {
    generator_.set_state(random_);
    for (auto& [t, bytes] : values_) t.write(bytes.data(), bytes.size());
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  Generator& generator_;
  GeneratorState random_;
  std::vector<std::pair<Tensor, std::vector<char>>> values_;
};

void trim(Device device) { tn_memory_trim(device.runtime(), device.id(), nullptr); }

struct Need {
  bool fits = false;
  uint64_t bytes = 0;  // at the highest point, beside what was held before
};

// One step on n samples of the same form, without the update. An optimizer that has made no step yet will want its moments.
Need try_step(const StepParts& p, const Shape& sample, DType dtype, bool channels_last, int64_t n) {
  trim(p.device);
  const MemoryUse before = memory_use(p.device);
  tn_memory_limit(p.device.runtime(), p.device.id(), before.limit, nullptr);  // starts the peak anew
  Need need;
  try {
    Shape dims = sample;
    dims[0] = n;
    TensorOptions o{.dtype = dtype, .device = p.device};
    std::vector<Tensor> moments;
    if (p.optimizer.steps() == 0)
      for (const Tensor& t : p.parameters) moments.push_back(zeros_like(t.detach())), moments.push_back(zeros_like(t.detach()));
    Tensor x = zeros(dims, o);
    if (channels_last) x = x.channels_last();
    const Tensor y = zeros({n}, {.dtype = DType::i64, .device = p.device});
    grad(sum(p.loss(p.model(x), y)), p.parameters, {.allow_unused = true});
    p.device.synchronize();
    need.fits = true;
  } catch (const Error& e) {
    if (e.status() != TN_E_OOM) throw;
  }
  need.bytes = memory_use(p.device).peak - before.held;
  return need;
}

}  // namespace

MemoryUse memory_use(Device device) {
  tn_memory_info info{};
  info.size = sizeof info;
  if (!device || tn_memory_stats(device.runtime(), device.id(), &info, nullptr) != TN_OK) return {};
  return {info.in_use, info.peak, info.pooled, info.limit};
}

void explain_out_of_memory(const StepParts& p, Batch failed, int64_t batch_size, const std::string& core_why) {
  const int64_t batch = std::max<int64_t>(failed.x.defined() ? failed.size : batch_size, 1);
  const bool known = failed.x.defined();
  Shape sample = known ? failed.x.shape() : Shape{};
  const DType dtype = known ? failed.x.dtype() : DType::f32;
  const bool channels_last = known && failed.x.rank() == 4 && !failed.x.is_contiguous();
  failed = {};
  trim(p.device);
  const MemoryUse use = memory_use(p.device);
  uint64_t parameters = 0, optimizer = 0;
  for (const Tensor& t : p.parameters) parameters += bytes_of(t);
  for (const auto& [name, t] : p.optimizer.state()) optimizer += t.device() == p.device ? bytes_of(t) : 0;
  std::string advice = "use a smaller batch, or raise the memory limit", needs = core_why;
  if (known) {
    const Restore restore(p.model, p.generator);
    int64_t low = 0, high = batch;  // low fits, high does not
    uint64_t low_bytes = 0;
    while (high - low > 1) {
      const int64_t n = low + (high - low) / 2;
      const Need need = try_step(p, sample, dtype, channels_last, n);
      if (need.fits) low = n, low_bytes = need.bytes;
      else high = n;
    }
    trim(p.device);
    if (low > 0) {
      advice = format("use a batch of at most %lld, or raise the memory limit", static_cast<long long>(low));
      needs = format("about %s a sample", mebibytes(low_bytes / static_cast<uint64_t>(low)).c_str());
    } else {
      advice = "use a smaller model, or raise the memory limit: not even one sample fits";
    }
  }
  const uint64_t other = use.held > parameters + optimizer ? use.held - parameters - optimizer : 0;
  const std::string limit = use.limit ? "limit " + mebibytes(use.limit) : "no limit set";
  throw Error(TN_E_OOM, error::id(error::kTrain, 17),
              format("out of memory: a training step of %lld samples does not fit on %s", static_cast<long long>(batch), p.device.name()), Where{"", 0}, "fit",
              format("%s; held: parameters %s, optimizer %s, other %s; a step takes %s", limit.c_str(), mebibytes(parameters).c_str(),
                     mebibytes(optimizer).c_str(), mebibytes(other).c_str(), needs.c_str()),
              advice);
}

}  // namespace tenon::train
