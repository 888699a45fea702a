#include <tenon/data/tensors.hpp>

namespace tenon::data {

TensorBatch to_tensors(const Batch& b, Device device, Where where) {
  TensorOptions options;
  options.device = device;
  const int64_t n = b.size;
  return {from_host(b.x.data(), DType::f32, Shape{n, int64_t{b.shape.channels}, int64_t{b.shape.height}, int64_t{b.shape.width}}, options, where),
          from_host(b.y.data(), DType::i64, Shape{n}, options, where)};
}

}  // namespace tenon::data
