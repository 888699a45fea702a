// backends/onednn/compat.h - one way to make primitives with oneDNN 2.x and 3.x.
//
// 2.x builds an operation descriptor first and a primitive descriptor from it; 3.x has one step with the engine in front.
// Each function takes the arguments of the 3.x constructor and returns the primitive descriptor.
// Errors: dnnl::error is thrown; callers translate it at the plugin's border.
#pragma once
#include <dnnl.hpp>

namespace tenon::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

#if DNNL_VERSION_MAJOR >= 3
inline constexpr bool kVersion3 = true;
#define TENON_ONEDNN_MAKE(type, engine, attr, ...) type::primitive_desc(engine, __VA_ARGS__, attr)
#define TENON_ONEDNN_MAKE_BACKWARD(type, engine, attr, hint, ...) type::primitive_desc(engine, __VA_ARGS__, hint, attr)
#else
inline constexpr bool kVersion3 = false;
#define TENON_ONEDNN_MAKE(type, engine, attr, ...) type::primitive_desc(type::desc(__VA_ARGS__), attr, engine)
#define TENON_ONEDNN_MAKE_BACKWARD(type, engine, attr, hint, ...) \
  type::primitive_desc(type::desc(__VA_ARGS__), attr, engine, hint)
#endif

// `bias` may be an empty descriptor.
inline auto make_matmul(const dnnl::engine& e, const Desc& src, const Desc& weights, const Desc& bias, const Desc& dst,
                        const dnnl::primitive_attr& attr) {
  return TENON_ONEDNN_MAKE(dnnl::matmul, e, attr, src, weights, bias, dst);
}

struct ConvGeometry {
  Dims strides, dilates, lo, hi;  // dilates: oneDNN counts from 0
};

inline auto make_conv(const dnnl::engine& e, dnnl::prop_kind prop, const Desc& x, const Desc& w, const Desc& bias,
                      const Desc& y, const ConvGeometry& g, const dnnl::primitive_attr& attr) {
  return TENON_ONEDNN_MAKE(dnnl::convolution_forward, e, attr, prop, dnnl::algorithm::convolution_direct, x, w, bias, y,
                           g.strides, g.dilates, g.lo, g.hi);
}

inline auto make_conv_input_grad(const dnnl::engine& e, const Desc& dx, const Desc& w, const Desc& dy,
                                 const ConvGeometry& g, const dnnl::convolution_forward::primitive_desc& hint,
                                 const dnnl::primitive_attr& attr) {
  return TENON_ONEDNN_MAKE_BACKWARD(dnnl::convolution_backward_data, e, attr, hint,
                                    dnnl::algorithm::convolution_direct, dx, w, dy, g.strides, g.dilates, g.lo, g.hi);
}

inline auto make_conv_weight_grad(const dnnl::engine& e, const Desc& x, const Desc& dw, const Desc& dy,
                                  const ConvGeometry& g, const dnnl::convolution_forward::primitive_desc& hint,
                                  const dnnl::primitive_attr& attr) {
  return TENON_ONEDNN_MAKE_BACKWARD(dnnl::convolution_backward_weights, e, attr, hint,
                                    dnnl::algorithm::convolution_direct, x, dw, dy, g.strides, g.dilates, g.lo, g.hi);
}

struct PoolGeometry {
  dnnl::algorithm algorithm;
  Dims strides, kernel, lo, hi;
};

inline auto make_pool(const dnnl::engine& e, const Desc& x, const Desc& y, const PoolGeometry& g,
                      const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::pooling_forward::primitive_desc(e, dnnl::prop_kind::forward_training, g.algorithm, x, y, g.strides,
                                               g.kernel, Dims(2, 0), g.lo, g.hi, attr);
#else
  return TENON_ONEDNN_MAKE(dnnl::pooling_forward, e, attr, dnnl::prop_kind::forward_training, g.algorithm, x, y,
                           g.strides, g.kernel, g.lo, g.hi);
#endif
}

inline auto make_pool_grad(const dnnl::engine& e, const Desc& dx, const Desc& dy, const PoolGeometry& g,
                           const dnnl::pooling_forward::primitive_desc& hint, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::pooling_backward::primitive_desc(e, g.algorithm, dx, dy, g.strides, g.kernel, Dims(2, 0), g.lo, g.hi,
                                                hint, attr);
#else
  return TENON_ONEDNN_MAKE_BACKWARD(dnnl::pooling_backward, e, attr, hint, g.algorithm, dx, dy, g.strides, g.kernel,
                                    g.lo, g.hi);
#endif
}

// y in x's layout; `statistics` [rows].
inline auto make_layer_norm(const dnnl::engine& e, const Desc& x, const Desc& statistics, float epsilon,
                            dnnl::normalization_flags flags, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::layer_normalization_forward::primitive_desc(e, dnnl::prop_kind::forward_training, x, x, statistics,
                                                           epsilon, flags, attr);
#else
  return TENON_ONEDNN_MAKE(dnnl::layer_normalization_forward, e, attr, dnnl::prop_kind::forward_training, x, statistics,
                           epsilon, flags);
#endif
}

inline auto make_batch_norm(const dnnl::engine& e, dnnl::prop_kind prop, const Desc& x, float epsilon,
                            dnnl::normalization_flags flags, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::batch_normalization_forward::primitive_desc(e, prop, x, x, epsilon, flags, attr);
#else
  return TENON_ONEDNN_MAKE(dnnl::batch_normalization_forward, e, attr, prop, x, epsilon, flags);
#endif
}

inline auto make_batch_norm_grad(const dnnl::engine& e, const Desc& x, float epsilon, dnnl::normalization_flags flags,
                                 const dnnl::batch_normalization_forward::primitive_desc& hint,
                                 const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::batch_normalization_backward::primitive_desc(e, dnnl::prop_kind::backward, x, x, x, epsilon, flags, hint,
                                                            attr);
#else
  return TENON_ONEDNN_MAKE_BACKWARD(dnnl::batch_normalization_backward, e, attr, hint, dnnl::prop_kind::backward, x, x,
                                    epsilon, flags);
#endif
}

}  // namespace tenon::onednn
