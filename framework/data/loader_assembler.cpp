#include "loader_detail.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::data {
namespace {

Status check_options(const LoaderOptions& o, const Dataset& dataset) {
  const auto bad = [](std::string why, const char* fix) { return Status{io::data_error(16), "loader: options that make no sense", std::move(why), fix, ""}; };
  if (o.batch == 0) return bad("batch is 0", "use a batch of 1 or more");
  if (o.world == 0 || o.rank >= o.world) return bad("rank " + std::to_string(o.rank) + " of " + std::to_string(o.world), "use a rank below world");
  if (o.transforms.size() > 200) return bad(std::to_string(o.transforms.size()) + " transforms; at most 200", "use fewer");
  if (o.drop_last && dataset.size() < uint64_t{o.batch} * o.world)
    return bad("batch " + std::to_string(o.batch) + " x " + std::to_string(o.world) + " ranks is more than the " + std::to_string(dataset.size()) + " samples, and drop_last leaves none", "use a smaller batch");
  return o.normalise.check(dataset.shape());
}

}  // namespace

DataLoader::Assembler::Assembler(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)), options_status_(check_options(options_, *dataset_)),
      sampler_(dataset_->size(), options_.seed, options_.shuffle), scratch_(dataset_->shape().pixels()) {}

uint64_t DataLoader::Assembler::batches_left(uint64_t offset) const {
  const uint64_t global = uint64_t{options_.batch} * options_.world, left = dataset_->size() - std::min(offset, dataset_->size());
  return options_.drop_last ? left / global : left / global + (left % global != 0);
}

// The positions first + rank, first + rank + world, ... below last, and the samples the epoch's order puts there.
void DataLoader::Assembler::choose(const SamplerState& state, uint64_t first, uint64_t last, Batch& batch) {
  batch.indices.clear();
  for (uint64_t p = first + options_.rank; p < last; p += options_.world) batch.indices.push_back(sampler_.index_at(state.epoch, p));
  batch.size = static_cast<uint32_t>(batch.indices.size());
  batch.shape = dataset_->shape();
  batch.x.resize(batch.size * batch.shape.pixels());
  batch.y.resize(batch.size);
  pixels_.resize(batch.size * batch.shape.pixels());
}

void DataLoader::Assembler::finish_image(const SamplerState& state, Batch& batch, uint32_t i) {
  const uint64_t n = batch.shape.pixels();
  uint8_t* image = pixels_.data() + i * n;
  for (size_t t = 0; t < options_.transforms.size(); ++t) {
    RandomStream random({options_.seed, static_cast<uint32_t>(state.epoch), batch.indices[i], static_cast<uint32_t>(t)});
    options_.transforms[t]->apply(image, scratch_.data(), batch.shape, random);
  }
  options_.normalise.apply(image, batch.shape, batch.x.data() + i * n);
}

Status DataLoader::Assembler::assemble(const SamplerState& state, Batch& batch, bool* end) {
  *end = batches_left(state.offset) == 0;
  if (*end) {
    batch.next = {state.seed, state.epoch + 1, 0};
    return {};
  }
  const uint64_t last = std::min(dataset_->size(), state.offset + uint64_t{options_.batch} * options_.world);
  choose(state, state.offset, last, batch);
  Status status = dataset_->read(batch.indices, pixels_.data(), batch.y.data());
  if (!status.ok()) return status;
  for (uint32_t i = 0; i < batch.size; ++i) finish_image(state, batch, i);
  batch.next = {state.seed, state.epoch, last};
  return {};
}

}  // namespace tenon::data
