// Networks from lists of layers.
#include <tenon/train/models.hpp>

#include "framework/core/state.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace tenon::train {
namespace {

using detail::format;

constexpr const char* kLayers[] = {"conv", "batchnorm", "layernorm", "relu", "tanh", "sigmoid", "silu", "gelu", "pool", "avgpool", "dropout", "flatten", "linear"};

struct Line {
  std::string text, name;
  std::vector<double> numbers;              // before the first word
  std::map<std::string, double> settings;   // "stride" -> 2
  size_t index = 0;
  Where where;
};

[[noreturn]] void refuse(const Line& line, uint32_t id, const char* what, const std::string& why, const std::string& advice) {
  detail::raise(TN_E_ARG, error::id(error::kTrain, id), line.where, "build_model", what, format("layer %zu, \"%s\": ", line.index, line.text.c_str()) + why, advice);
}
[[noreturn]] void not_understood(const Line& line, const std::string& why, const std::string& advice) {
  refuse(line, 20, "a layer is not understood", why, advice);
}

Line read_line(const std::string& text, size_t index, Where where) {
  Line line{text, "", {}, {}, index, where};
  std::istringstream words(text);
  words >> line.name;
  std::string key;
  for (std::string word; words >> word;) {
    double value = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number = end.ec == std::errc() && end.ptr == word.data() + word.size();
    if (!is_number && !key.empty()) not_understood(line, "no number follows \"" + key + "\"", "write " + key + " and a number");
    if (!is_number) key = word;
    else if (key.empty()) line.numbers.push_back(value);
    else line.settings[std::exchange(key, "")] = value;
  }
  if (!key.empty()) not_understood(line, "no number follows \"" + key + "\"", "write " + key + " and a number");
  return line;
}

int64_t whole(const Line& line, double v, int64_t low) {
  constexpr int64_t kMost = 1 << 20;
  if (v != static_cast<double>(static_cast<int64_t>(v)) || v < static_cast<double>(low) || v > static_cast<double>(kMost))
    not_understood(line, format("%g is not a whole number from %lld to %lld", v, static_cast<long long>(low), static_cast<long long>(kMost)), "give a size in this range");
  return static_cast<int64_t>(v);
}

// Keeps the form of the data from layer to layer.
class Build {
 public:
  Build(data::ImageShape input, Generator* generator) : c_(input.channels), h_(input.height), w_(input.width), generator_(generator) {}
  void add(const Line& line);
  nn::Sequential take() { return std::move(net_); }

 private:
  int64_t number(const Line& l, size_t i, int64_t low) const { return whole(l, l.numbers.at(i), low); }
  int64_t setting(const Line& l, const char* name, int64_t otherwise, int64_t low) const {
    const auto at = l.settings.find(name);
    return at == l.settings.end() ? otherwise : whole(l, at->second, low);
  }
  static void expect(const Line& l, size_t numbers, std::initializer_list<const char*> settings, const char* form) {
    bool known = l.numbers.size() == numbers;
    for (const auto& [name, v] : l.settings) known = known && std::find(settings.begin(), settings.end(), name) != settings.end();
    if (!known) not_understood(l, "it is not written as this layer is", std::string("write ") + form);
  }
  int64_t features() const { return flat_ ? c_ : c_ * h_ * w_; }
  void need_images(const Line& l) const {
    if (flat_) refuse(l, 21, "a layer does not fit what comes before it", format("it takes images, and gets %lld features", static_cast<long long>(c_)), "put it before flatten and linear");
  }
  void shrink(const Line& l, int64_t kernel, int64_t stride, int64_t pad) {
    const auto after = [&](int64_t size) { return (size + 2 * pad - kernel) / stride + 1; };
    if (kernel > h_ + 2 * pad || kernel > w_ + 2 * pad)
      refuse(l, 21, "a layer does not fit what comes before it",
             format("its window is %lld, the images are %lldx%lld", static_cast<long long>(kernel), static_cast<long long>(h_), static_cast<long long>(w_)), "use a smaller window, or pool less before it");
    h_ = after(h_), w_ = after(w_);
  }
  void conv(const Line& l);
  void pool(const Line& l, bool largest);
  void linear(const Line& l);
  bool activation(const Line& l);

  nn::Sequential net_;
  int64_t c_, h_, w_;
  bool flat_ = false;
  Generator* generator_;
};

void Build::conv(const Line& l) {
  expect(l, 2, {"stride", "pad"}, "conv OUT KERNEL [stride S] [pad P]");
  need_images(l);
  nn::Conv2dSpec s;
  s.in = c_, s.out = number(l, 0, 1), s.kernel = number(l, 1, 1);
  s.stride = setting(l, "stride", 1, 1), s.padding = setting(l, "pad", s.kernel / 2, 0);
  shrink(l, s.kernel, s.stride, s.padding);
  net_.append(nn::Conv2d(s, generator_));
  c_ = s.out;
}

void Build::pool(const Line& l, bool largest) {
  expect(l, 1, {"stride"}, largest ? "pool K [stride S]" : "avgpool K [stride S]");
  need_images(l);
  const int64_t kernel = number(l, 0, 1), stride = setting(l, "stride", kernel, 1);
  shrink(l, kernel, stride, 0);
  if (largest) net_.append(nn::MaxPool2d(kernel, stride));
  else net_.append(nn::AvgPool2d(kernel, stride));
}

void Build::linear(const Line& l) {
  expect(l, 1, {}, "linear OUT");
  const int64_t out = number(l, 0, 1);
  if (!flat_) net_.append(nn::Flatten());
  net_.append(nn::Linear(features(), out, true, generator_));
  c_ = out, flat_ = true;
}

bool Build::activation(const Line& l) {
  if (l.name == "relu") net_.append(nn::ReLU());
  else if (l.name == "tanh") net_.append(nn::Tanh());
  else if (l.name == "sigmoid") net_.append(nn::Sigmoid());
  else if (l.name == "silu") net_.append(nn::SiLU());
  else if (l.name == "gelu") net_.append(nn::GELU());
  else return false;
  expect(l, 0, {}, l.name.c_str());
  return true;
}

void Build::add(const Line& l) {
  if (activation(l)) return;
  if (l.name == "conv") return conv(l);
  if (l.name == "pool" || l.name == "avgpool") return pool(l, l.name == "pool");
  if (l.name == "linear") return linear(l);
  if (l.name == "batchnorm") {
    expect(l, 0, {}, "batchnorm");
    need_images(l);
    net_.append(nn::BatchNorm2d(c_));
  } else if (l.name == "layernorm") {
    expect(l, 0, {}, "layernorm");
    net_.append(nn::LayerNorm(flat_ ? Shape{c_} : Shape{c_, h_, w_}));
  } else if (l.name == "dropout") {
    expect(l, 1, {}, "dropout RATE");
    if (!(l.numbers[0] >= 0 && l.numbers[0] < 1)) not_understood(l, format("the rate is %g", l.numbers[0]), "give a rate from 0 up to, not with, 1");
    net_.append(nn::Dropout(l.numbers[0], generator_));
  } else if (l.name == "flatten") {
    expect(l, 0, {}, "flatten");
    if (!flat_) net_.append(nn::Flatten());
    c_ = features(), flat_ = true;
  } else {
    std::vector<std::string> names(std::begin(kLayers), std::end(kLayers));
    const std::string near = nearest_name(l.name, names.data(), names.size());
    not_understood(l, "\"" + l.name + "\" is not the name of a layer", near.empty() ? "use conv, batchnorm, relu, pool, dropout, flatten, linear, ..." : "write " + near);
  }
}

}  // namespace

std::vector<std::string> preset_names() { return {"cnn", "lenet", "mlp"}; }

std::vector<std::string> preset_layers(const std::string& name, uint32_t classes, Where where) {
  const std::string last = "linear " + std::to_string(classes);
  if (name == "cnn") return {"conv 32 3", "batchnorm", "relu", "pool 2", "conv 64 3", "batchnorm", "relu", "pool 2", "flatten", "linear 128", "relu", last};
  if (name == "lenet") return {"conv 6 5", "relu", "pool 2", "conv 16 5 pad 0", "relu", "pool 2", "flatten", "linear 120", "relu", "linear 84", "relu", last};
  if (name == "mlp") return {"flatten", "linear 512", "relu", last};
  const std::vector<std::string> names = preset_names();
  const std::string near = nearest_name(name, names.data(), names.size());
  detail::raise(TN_E_ARG, error::id(error::kTrain, 22), where, "preset_layers", "no network of this name", "\"" + name + "\"; known are cnn, lenet, mlp",
                near.empty() ? "use one of these, or give model.layers" : "write " + near);
}

nn::Sequential build_model(const std::vector<std::string>& layers, data::ImageShape input, Generator* generator, Where where) {
  Build build(input, generator);
  for (size_t i = 0; i < layers.size(); ++i) build.add(read_line(layers[i], i + 1, where));
  return build.take();
}

}  // namespace tenon::train
