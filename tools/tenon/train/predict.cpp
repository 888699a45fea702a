// tenon predict: what a saved model says about images.
#include <algorithm>
#include <charconv>
#include <memory>
#include <tenon/autograd/autograd.hpp>
#include <tenon/core/ops.hpp>
#include <tenon/io/tensors.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/train/results.h"
#include "tools/tenon/train/settings.h"
#include "tools/tenon/train/workshop.h"

namespace tenon::cli {
namespace {

struct Options {
  std::string model, data = "fashion-mnist";
  std::vector<std::string> images;
  int64_t top = 3;
};

// An image to look at; label -1: not known.
struct Sample {
  std::string name;
  std::vector<uint8_t> pixels;
  int64_t label = -1;
};

[[noreturn]] void refuse_form(const std::string& path, data::ImageShape want, const std::string& found) {
  throw Failure(kFailed, "TN-CLI-024", "the image does not have the form that the model takes", path,
                "the model takes u8 images of " + std::to_string(want.channels) + "x" + std::to_string(want.height) + "x" + std::to_string(want.width) + ", this is " + found,
                "scale it to this size, or use a model made for it");
}

// A file of one or many images.
void add_file(const std::string& path, data::ImageShape want, std::vector<Sample>& out) {
  const data::IdxArray a = value_or_throw(data::load_idx(path), Where{"", 0});
  uint64_t last[3] = {1, 1, 1};
  const auto& d = a.header.dims;
  for (size_t i = 0; i < std::min<size_t>(d.size(), 2); ++i) last[2 - i] = d[d.size() - 1 - i];
  const bool fits = a.header.dtype == TN_U8 && d.size() >= 2 && last[1] == want.height && last[2] == want.width && a.bytes.size() % want.pixels() == 0;
  std::string found;
  for (uint32_t n : d) found += (found.empty() ? "" : "x") + std::to_string(n);
  if (!fits) refuse_form(path, want, found.empty() ? "empty" : found);
  const size_t n = a.bytes.size() / want.pixels();
  for (size_t i = 0; i < n; ++i) {
    const auto first = a.bytes.begin() + static_cast<std::ptrdiff_t>(i * want.pixels());
    out.push_back({n == 1 ? path : path + "[" + std::to_string(i) + "]", {first, first + static_cast<std::ptrdiff_t>(want.pixels())}, -1});
  }
}

std::vector<Sample> samples(const Options& o, data::ImageShape want) {
  std::vector<Sample> out;
  std::shared_ptr<const data::Dataset> test;
  for (const std::string& word : o.images) {
    uint64_t index = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), index);
    if (end.ec != std::errc() || end.ptr != word.data() + word.size()) {
      add_file(word, want, out);
      continue;
    }
    if (!test) test = load_data({data_folder(o.data), "idx"}, 0, 0).test;
    if (test->shape() != want) refuse_form(o.data, want, std::to_string(test->shape().height) + "x" + std::to_string(test->shape().width));
    Sample s{"test image " + word, std::vector<uint8_t>(want.pixels()), -1};
    throw_if_failed(test->read({&index, 1}, s.pixels.data(), &s.label), Where{"", 0});
    out.push_back(std::move(s));
  }
  return out;
}

std::string name_of(const ModelCard& card, int64_t label) {
  const size_t i = static_cast<size_t>(label);
  return i < card.class_names.size() ? card.class_names[i] : std::to_string(label);
}

void print_sample(const Context& context, const Sample& s, std::span<const double> p, const ModelCard& card, int64_t top) {
  std::vector<int64_t> order(p.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  std::vector<JsonRow> rows;
  std::string text = s.name + ": ";
  for (int64_t c : order) {
    const double share = p[static_cast<size_t>(c)];
    rows.push_back(JsonRow().add("class", c).add("name", name_of(card, c)).add("probability", share));
    text += (c == order[0] ? "" : ", ") + name_of(card, c) + " " + percent(share, 1);
  }
  if (context.json) {
    JsonRow row;
    row.add("image", s.name).add("class", order.at(0)).add("top", rows);
    if (s.label >= 0) row.add("label", s.label);
    context.line(row.text());
    return;
  }
  if (s.label >= 0) text += s.label == order.at(0) ? "   " + context.good("right") : "   " + context.bad("wrong") + ", it is " + name_of(card, s.label);
  context.line(text);
}

int run(const Options& o, Context& context) {
  const Device device = context.device();
  LoadedModel loaded = load_model(o.model, device);
  loaded.model.eval();
  const NoGrad off;
  const data::ImageShape shape = loaded.card.input;
  for (const Sample& s : samples(o, shape)) {
    data::Batch batch;
    batch.size = 1;
    batch.shape = shape;
    batch.x.resize(shape.pixels());
    loaded.card.normalise.apply(s.pixels.data(), shape, batch.x.data());
    const Tensor x = train::images_to_device(batch, device, false, loaded.model.parameters().at(0).dtype());
    print_sample(context, s, softmax(loaded.model(x)).to_vector<double>(), loaded.card, o.top);
  }
  return kDone;
}

Run setup(Args& args) {
  auto o = std::make_shared<Options>();
  args.positional("MODEL", &o->model, "file that `tenon train` saved");
  args.positionals("IMAGE", &o->images, "IDX files of images, or numbers of test images in --data");
  args.option("--data", &o->data, "folder of IDX files, or fashion-mnist");
  args.option("--top", &o->top, "how many answers to show", 1, 1000);
  return [o](Context& context) { return run(*o, context); };
}

}  // namespace

extern const Command command_predict;
const Command command_predict{"predict", "Say what a saved model sees in images.", "tenon predict model.safetensors 0 1 2 --data fashion-mnist\ntenon predict model.safetensors shirt.idx --json",
                              kUsesDevice, setup};

}  // namespace tenon::cli
