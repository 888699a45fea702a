// A loader's batches on a device.
#include <tenon/io/tensors.hpp>
#include <tenon/train/source.hpp>

#include <algorithm>

namespace tenon::train {

// With one channel both orders are the same bytes, so channels-last costs nothing there.
Tensor images_to_device(const data::Batch& b, Device device, bool channels_last, DType dtype, Where where) {
  const int64_t n = b.size, c = b.shape.channels, h = b.shape.height, w = b.shape.width;
  TensorOptions options;
  options.device = device;
  Tensor x;
  if (channels_last && c == 1) x = from_host(b.x.data(), DType::f32, {n, h, w, c}, options, where).permute({0, 3, 1, 2}, where);
  else x = from_host(b.x.data(), DType::f32, {n, c, h, w}, options, where);
  if (channels_last && c != 1) x = x.channels_last(where);
  return x.to(dtype, where);
}

bool LoaderSource::next(Batch& out) {
  const bool more = value_or_throw(loader_.next(host_));
  if (!more) return false;
  out.size = host_.size;
  out.valid = out.size - std::count(host_.y.begin(), host_.y.end(), o_.ignore_index);
  o_.batch = std::max(o_.batch, out.size);
  out.x = images_to_device(host_, device_, o_.channels_last, o_.dtype);
  TensorOptions options;
  options.device = device_;
  out.y = from_host(host_.y.data(), DType::i64, {out.size}, options);
  return true;
}

Batch LoaderSource::example(int64_t n) {
  const data::ImageShape s = loader_.dataset().shape();
  const int64_t c = s.channels, h = s.height, w = s.width;
  const TensorOptions o{.dtype = o_.dtype, .device = device_};
  const Tensor x = o_.channels_last ? zeros({n, h, w, c}, o).permute({0, 3, 1, 2}) : zeros({n, c, h, w}, o);
  return {x, zeros({n}, {.dtype = DType::i64, .device = device_}), n, n};
}

void LoaderSource::restore(const data::SamplerState& state) { throw_if_failed(loader_.restore(state)); }

}  // namespace tenon::train
