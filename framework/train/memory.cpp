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

// One step on n samples, without the update. An optimizer that has made no step yet will want its moments.
Need try_step(const StepParts& p, int64_t n) {
  trim(p.device);
  const MemoryUse before = memory_use(p.device);
  tn_memory_limit(p.device.runtime(), p.device.id(), before.limit, nullptr);  // starts the peak anew
  Need need;
  try {
    std::vector<Tensor> moments;
    if (p.optimizer.steps() == 0)
      for (const Tensor& t : p.parameters) moments.push_back(zeros_like(t.detach())), moments.push_back(zeros_like(t.detach()));
    const Batch batch = p.data.example(n);
    grad(sum(p.loss(p.model(batch.x), batch.y)), p.parameters, {.allow_unused = true});
    p.device.synchronize();
    need.fits = true;
  } catch (const Error& e) {
    if (e.status() != TN_E_OOM) throw;
  }
  need.bytes = memory_use(p.device).peak - before.held;
  return need;
}

struct Largest {
  int64_t samples = 0;  // 0: not even one fits
  uint64_t bytes = 0;
};
Largest find_largest(const StepParts& p, int64_t too_many) {
  const Restore restore(p.model, p.generator);
  Largest found;
  for (int64_t high = too_many; high - found.samples > 1;) {
    const int64_t n = found.samples + (high - found.samples) / 2;
    const Need need = try_step(p, n);
    if (need.fits) found = {n, need.bytes};
    else high = n;
  }
  trim(p.device);
  return found;
}

bool has_example(const StepParts& p) {
  try {
    return p.data.example(1).x.defined();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

MemoryUse memory_use(Device device) {
  tn_memory_info info{};
  info.size = sizeof info;
  if (!device || tn_memory_stats(device.runtime(), device.id(), &info, nullptr) != TN_OK) return {};
  return {info.in_use, info.peak, info.pooled, info.limit};
}

void explain_out_of_memory(const StepParts& p, int64_t samples, const std::string& core_why) {
  trim(p.device);
  const MemoryUse use = memory_use(p.device);
  uint64_t parameters = 0, optimizer = 0;
  for (const Tensor& t : p.parameters) parameters += bytes_of(t);
  for (const auto& [name, t] : p.optimizer.state()) optimizer += name.starts_with("slot.") && t.rank() > 0 && t.device() == p.device ? bytes_of(t) : 0;
  std::string advice = "use a smaller batch, or raise the memory limit", needs = core_why;
  if (has_example(p)) {
    const Largest largest = find_largest(p, samples);
    if (largest.samples > 0) {
      advice = format("use a batch of at most %lld, or raise the memory limit", static_cast<long long>(largest.samples));
      needs = format("a step takes %.1f KiB a sample", static_cast<double>(largest.bytes) / static_cast<double>(largest.samples) / 1024);
    } else {
      advice = "use a smaller model, or raise the memory limit: not even one sample fits";
    }
  }
  const uint64_t other = use.held > parameters + optimizer ? use.held - parameters - optimizer : 0;
  const std::string limit = use.limit ? "limit " + mebibytes(use.limit) : "no limit set";
  throw Error(TN_E_OOM, error::id(error::kTrain, 17),
              format("out of memory: a training step of %lld samples does not fit on %s", static_cast<long long>(samples), p.device.name()), Where{"", 0}, "op fit",
              format("%s; held: parameters %s, optimizer %s, other %s; %s", limit.c_str(), mebibytes(parameters).c_str(), mebibytes(optimizer).c_str(),
                     mebibytes(other).c_str(), needs.c_str()),
              advice);
}

}  // namespace tenon::train
