#include "tools/tenon/train/model_file.h"

#include <charconv>
#include <sstream>
#include <tenon/io/safetensors.hpp>
#include <tenon/io/tensors.hpp>
#include <tenon/train/models.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {
namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += (out.empty() ? "" : "\n") + l;
  return out;
}
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// Shortest text that reads back as the same float.
std::string floats_text(const std::vector<float>& v) {
  std::string out;
  for (float f : v) {
    char buffer[32];
    out += (out.empty() ? "" : " ") + std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, f).ptr);
  }
  return out;
}
std::vector<float> read_floats(const std::string& text) {
  std::vector<float> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    float f = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), f);
    if (end.ec != std::errc() || end.ptr != word.data() + word.size()) return {};
    out.push_back(f);
  }
  return out;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Failure(kFailed, "TN-CLI-020", "the file does not say how its network is built", path, why,
                "use a model that `tenon train` saved; its metadata has tenon.layers");
}

ModelCard read_card(const std::string& path, const std::map<std::string, std::string>& m) {
  const auto text = [&](const char* key) {
    const auto at = m.find(key);
    if (at == m.end()) refuse(path, std::string("its metadata has no entry ") + key);
    return at->second;
  };
  ModelCard card;
  card.layers = split(text("tenon.layers"));
  std::istringstream input(text("tenon.input")), classes(text("tenon.classes"));
  if (!(input >> card.input.channels >> card.input.height >> card.input.width) || card.input.pixels() == 0 || card.input.pixels() > (1u << 28))
    refuse(path, "tenon.input is " + io::quote(text("tenon.input")) + ", not three sizes");
  if (!(classes >> card.classes) || card.classes == 0) refuse(path, "tenon.classes is " + io::quote(text("tenon.classes")));
  card.normalise = {read_floats(text("tenon.mean")), read_floats(text("tenon.stddev"))};
  throw_if_failed(card.normalise.check(card.input), Where{"", 0});
  if (const auto at = m.find("tenon.class_names"); at != m.end()) card.class_names = split(at->second);
  if (const auto at = m.find("tenon.config"); at != m.end()) card.config = at->second;
  return card;
}

}  // namespace

void save_model(const std::string& path, const nn::Module& model, const ModelCard& card) {
  const nn::StateDict state = model.state_dict();
  std::map<std::string, std::string> metadata = {
      {"tenon.layers", join(card.layers)},
      {"tenon.input", std::to_string(card.input.channels) + " " + std::to_string(card.input.height) + " " + std::to_string(card.input.width)},
      {"tenon.classes", std::to_string(card.classes)},
      {"tenon.mean", floats_text(card.normalise.mean)}, {"tenon.stddev", floats_text(card.normalise.stddev)},
      {"tenon.config", card.config}};
  if (!card.class_names.empty()) metadata["tenon.class_names"] = join(card.class_names);
  save_safetensors(path, {state.begin(), state.end()}, metadata, Where{"", 0});
}

LoadedModel load_model(const std::string& path, Device device) {
  ModelCard card = read_card(path, value_or_throw(io::SafetensorsFile::open(path), Where{"", 0}).metadata());
  nn::Sequential model = train::build_model(card.layers, card.input);
  model.move_to(device);
  TensorOptions options;
  options.device = device;
  const nn::StateDict state = load_safetensors(path, options, Where{"", 0});
  if (!state.empty() && state.begin()->second.dtype() == DType::f64) model.convert_to(DType::f64);
  model.load_state_dict(state, true, Where{"", 0});
  return {std::move(model), std::move(card)};
}

std::vector<std::string> class_names(const std::string& labels_known_as) {
  if (!labels_known_as.starts_with("Fashion-MNIST")) return {};
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
}

}  // namespace tenon::cli
