// tenon/train/source.hpp - where a trainer's batches come from; derive from BatchSource to bring your own.
//
//   data::DataLoader loader(data->train, {.batch = 128, .seed = 1});
//   LoaderSource source(loader, device("cpu:0"), {.channels_last = true});
#pragma once
#include <tenon/core/tensor.hpp>
#include <tenon/data/loader.hpp>

#include <cstdint>

namespace tenon::train {

struct Batch {
  Tensor x, y;         // on the device: images f32 [n,c,h,w], labels i64 [n]
  int64_t size = 0;    // samples
  int64_t valid = 0;   // samples whose label is not ignored
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // false: the epoch is over, the next call starts the next one.
  virtual bool next(Batch& out) = 0;
  virtual int64_t batches_per_epoch() const = 0;
  virtual int64_t batch_size() const = 0;
  // The state after the last batch that next() gave, and going back to one: exact.
  virtual data::SamplerState state() const = 0;
  virtual void restore(const data::SamplerState& state) = 0;
  // n samples of the same form, of any content, for finding out what fits into memory; undefined tensors: not known.
  virtual Batch example(int64_t /*n*/) { return {}; }
};

struct LoaderSourceOptions {
  int64_t batch = 0;            // of the loader; 0: seen at the first batch
  bool channels_last = false;   // images in N,H,W,C order of memory, which convolutions on CPUs prefer
  DType dtype = DType::f32;
  int64_t ignore_index = -100;
};
// A DataLoader's batches. The loader is borrowed. Errors of the loader are thrown as tenon::Error.
class LoaderSource final : public BatchSource {
 public:
  LoaderSource(data::DataLoader& loader, Device device, LoaderSourceOptions options = {}) : loader_(loader), device_(device), o_(options) {}
  bool next(Batch& out) override;
  int64_t batches_per_epoch() const override { return static_cast<int64_t>(loader_.batches_per_epoch()); }
  int64_t batch_size() const override { return o_.batch; }
  data::SamplerState state() const override { return loader_.state(); }
  void restore(const data::SamplerState& state) override;
  Batch example(int64_t n) override;

 private:
  data::DataLoader& loader_;
  Device device_;
  LoaderSourceOptions o_;
  data::Batch host_;
};

// A loader's batch on a device, in the order of memory that is wanted. Copies.
Tensor images_to_device(const data::Batch& batch, Device device, bool channels_last, DType dtype = DType::f32, Where where = here());

}  // namespace tenon::train
