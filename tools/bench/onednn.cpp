// tenon_rival_onednn: oneDNN called directly through its C++ interface. Primitives and memory objects are made before
// timing; layouts are plain row-major, but for cases that end in .packed: there oneDNN names the weights' layout itself
// (format_tag::any), and they are reordered into it once.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "tools/bench/rival.h"

namespace tenon::bench {
namespace {

using dnnl::memory;
using Kind = memory::data_type;

struct Call {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  std::vector<std::shared_ptr<float[]>> held;

  // The argument in another layout from now on.
  void reordered(int id, const memory::desc& want) {
    if (arguments[id].get_desc() == want) return;
    memory from = arguments[id];
    held.push_back(large_floats(want.get_size() / 4 + 1));
    arguments[id] = memory(want, engine, held.back().get());
    dnnl::reorder(from, arguments[id]).execute(stream, from, arguments[id]);
    stream.wait();
  }

  // Memory of `desc` under argument number `id`, holding small values of its type.
  void argument(int id, const memory::desc& desc) {
    const size_t bytes = desc.get_size();
    held.push_back(large_floats(bytes / 4 + 1));
    if (desc.data_type() != Kind::f32) {  // random bits would be NaN, infinite or subnormal in narrow types
      auto* byte = reinterpret_cast<unsigned char*>(held.back().get());
      for (size_t i = 0; i < bytes; ++i) byte[i] = desc.data_type() == Kind::bf16 ? (i % 2 ? 0x3F : static_cast<unsigned char>(i * 37)) : static_cast<unsigned char>(i * 37 % 100);
    }
    arguments[id] = memory(desc, engine, held.back().get());
  }
};

std::unique_ptr<Sampler> sampler(std::shared_ptr<Call> call, int threads) {
  return std::make_unique<Sampler>([call = std::move(call), threads](int64_t calls) {
    omp_set_num_threads(threads);
    for (; calls > 0; --calls) {
      call->primitive.execute(call->stream, call->arguments);
      call->stream.wait();
    }
  });
}

std::unique_ptr<Sampler> gemm(const std::string& dtype, memory::dim n, int threads, bool packed) {
  omp_set_num_threads(threads);  // primitives are made for a width
  auto call = std::make_shared<Call>();
  Kind a = Kind::f32, b = Kind::f32, c = Kind::f32;
  if (dtype == "bf16") a = b = c = Kind::bf16;
  else if (dtype == "u8s8") a = Kind::u8, b = Kind::s8, c = Kind::s32;
  else if (dtype != "f32") throw std::runtime_error("no element type " + dtype);
  const memory::desc ad({n, n}, a, memory::format_tag::ab), bd({n, n}, b, memory::format_tag::ab), cd({n, n}, c, memory::format_tag::ab);
  const memory::desc weights = packed ? memory::desc({n, n}, b, memory::format_tag::any) : bd;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc pd(call->engine, ad, weights, cd);
#else
  const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(ad, weights, cd), call->engine);
#endif
  call->primitive = dnnl::matmul(pd);
  call->argument(DNNL_ARG_SRC, ad);
  call->argument(DNNL_ARG_WEIGHTS, bd);
  call->argument(DNNL_ARG_DST, cd);
  call->reordered(DNNL_ARG_WEIGHTS, pd.weights_desc());
  return sampler(call, threads);
}

std::unique_ptr<Sampler> softmax() {
  omp_set_num_threads(1);
  auto call = std::make_shared<Call>();
  const memory::desc d({4096, 4096}, Kind::f32, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  call->primitive = dnnl::softmax_forward(dnnl::softmax_forward::primitive_desc(call->engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, d, d, 1));
#else
  call->primitive = dnnl::softmax_forward(dnnl::softmax_forward::primitive_desc(dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, d, 1), call->engine));
#endif
  call->argument(DNNL_ARG_SRC, d);
  call->argument(DNNL_ARG_DST, d);
  return sampler(call, 1);
}

std::unique_ptr<Sampler> layer_norm() {
  omp_set_num_threads(1);
  auto call = std::make_shared<Call>();
  const memory::desc d({4096, 4096}, Kind::f32, memory::format_tag::ab), row({4096}, Kind::f32, memory::format_tag::a), stat({4096}, Kind::f32, memory::format_tag::a);
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  // Training form: Tenon's op gives mean and deviation as well.
#if DNNL_VERSION_MAJOR >= 3
  call->primitive = dnnl::layer_normalization_forward(dnnl::layer_normalization_forward::primitive_desc(call->engine, dnnl::prop_kind::forward_training, d, d, stat, 1e-5f, flags));
#else
  call->primitive = dnnl::layer_normalization_forward(dnnl::layer_normalization_forward::primitive_desc(
      dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_training, d, stat, 1e-5f, flags), call->engine));
#endif
  call->argument(DNNL_ARG_SRC, d);
  call->argument(DNNL_ARG_DST, d);
  call->argument(DNNL_ARG_MEAN, stat);
  call->argument(DNNL_ARG_VARIANCE, stat);
  call->argument(DNNL_ARG_SCALE, row);
  call->argument(DNNL_ARG_SHIFT, row);
  return sampler(call, 1);
}

std::unique_ptr<Sampler> make(const std::string& name) {
  if (part(name, 0) == "gemm" && part(name, 3).size() > 1) return gemm(part(name, 1), std::stol(part(name, 2)), std::stoi(part(name, 3).substr(1)), part(name, 4) == "packed");
  if (name == "softmax.4096") return softmax();
  if (name == "layernorm.4096") return layer_norm();
  throw std::runtime_error("onednn has no case " + name);
}

}  // namespace
}  // namespace tenon::bench

int main() {
  const dnnl_version_t* v = dnnl_version();
  return tenon::bench::serve("oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch), tenon::bench::make);
}
