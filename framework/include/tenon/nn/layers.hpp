// tenon/nn/layers.hpp - the usual layers, with PyTorch's defaults and initial values.
#pragma once
#include <tenon/nn/module.hpp>

namespace tenon::nn {

// x [..., in] -> [..., out]; weight [out, in], bias [out]; both uniform in +-1/sqrt(in)
class Linear : public Layer<Linear> {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = true, Generator* generator = nullptr);
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  int64_t in_, out_;
};

struct Conv2dSpec {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3, stride = 1, padding = 0, dilation = 1, groups = 1;
  bool with_bias = true;
};
// x [N, in, H, W] -> [N, out, OH, OW]; weight [out, in/groups, k, k], uniform in +-1/sqrt(in/groups k k)
class Conv2d : public Layer<Conv2d> {
 public:
  explicit Conv2d(const Conv2dSpec& spec, Generator* generator = nullptr);
  Conv2d(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t padding = 0)
      : Conv2d(Conv2dSpec{in, out, kernel, stride, padding}) {}
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  Conv2dSpec spec_;
  Conv2dOptions options_;
};

// x [N, C, H, W]: statistics of the batch in training, running ones in eval. running = (1 - momentum) running + momentum
// batch; the running variance is the unbiased one.
class BatchNorm2d : public Layer<BatchNorm2d> {
 public:
  explicit BatchNorm2d(int64_t channels, double epsilon = 1e-5, double momentum = 0.1);
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias, running_mean, running_var;

 private:
  int64_t channels_;
  double epsilon_, momentum_;
};

// over the last axes, whose sizes are `dims`
class LayerNorm : public Layer<LayerNorm> {
 public:
  explicit LayerNorm(const Shape& dims, double epsilon = 1e-5);
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  Shape dims_;
  double epsilon_;
};

class Dropout : public Layer<Dropout> {  // in training only
 public:
  explicit Dropout(double rate = 0.5, Generator* generator = nullptr);
  Tensor forward(const Tensor& x) override;

 private:
  double rate_;
  Generator* generator_;
};

class MaxPool2d : public Layer<MaxPool2d> {
 public:
  explicit MaxPool2d(int64_t kernel, int64_t stride = 0, int64_t padding = 0);  // stride 0 = kernel
  Tensor forward(const Tensor& x) override;

 private:
  Pool2dOptions options_;
};
class AvgPool2d : public Layer<AvgPool2d> {
 public:
  explicit AvgPool2d(int64_t kernel, int64_t stride = 0, int64_t padding = 0, bool include_pad = true);
  Tensor forward(const Tensor& x) override;

 private:
  Pool2dOptions options_;
};

class Flatten : public Layer<Flatten> {  // [N, ...] -> [N, product]
 public:
  Flatten();
  Tensor forward(const Tensor& x) override;
};
#define TENON_ACTIVATION(Name) \
  class Name : public Layer<Name> { \
   public: \
    Name(); \
    Tensor forward(const Tensor& x) override; \
  };
TENON_ACTIVATION(ReLU)
TENON_ACTIVATION(Tanh)
TENON_ACTIVATION(Sigmoid)
TENON_ACTIVATION(SiLU)
#undef TENON_ACTIVATION
class GELU : public Layer<GELU> {
 public:
  explicit GELU(Gelu form = Gelu::exact);
  Tensor forward(const Tensor& x) override;

 private:
  Gelu form_;
};

// One after another; children are named 0, 1, 2, ...
class Sequential : public Layer<Sequential> {
 public:
  Sequential();
  template <class M>
  Sequential& append(M m) {
    attach(std::to_string(children().size()), std::make_shared<M>(std::move(m)));
    return *this;
  }
  Sequential& append_shared(std::shared_ptr<Module> m) {
    attach(std::to_string(children().size()), std::move(m));
    return *this;
  }
  Tensor forward(const Tensor& x) override;
  size_t size() const { return children().size(); }
};
template <class... M>
Sequential sequential(M... modules) {
  Sequential s;
  (s.append(std::move(modules)), ...);
  return s;
}

}  // namespace tenon::nn
