// tenon eval: a saved model's accuracy on a test set.
#include <memory>

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
  std::string model, data = "fashion-mnist", kernels = "auto";
  int64_t limit = 0;
};

int run(const Options& o, Context& context) {
  const Runtime runtime = open_runtime(context.policy, context.threads, o.kernels);
  const Device device = runtime.device(context.device_spec, context.policy_number(), Where{"", 0});
  set_default_device(device);
  LoadedModel loaded = load_model(o.model, device);
  const LoadedData data = load_data({data_folder(o.data), "idx"}, 0, o.limit);
  if (data.test->shape() != loaded.card.input || data.test->classes() > loaded.card.classes)
    throw Failure(kFailed, "TN-CLI-023", "model and data do not fit together", o.model,
                  "the model takes " + std::to_string(loaded.card.input.height) + "x" + std::to_string(loaded.card.input.width) + " images of " +
                      std::to_string(loaded.card.classes) + " classes, the data has " + std::to_string(data.test->shape().height) + "x" +
                      std::to_string(data.test->shape().width) + " and " + std::to_string(data.test->classes()),
                  "use the data that the model was trained on");
  const bool last = device.kind() == TN_KIND_CPU && o.kernels != "reference";
  const train::Evaluation e = train::evaluate(loaded.model, data.test, {.device = device, .normalise = loaded.card.normalise, .channels_last = last,
                                                                        .dtype = loaded.model.parameters().at(0).dtype()});
  if (context.json) {
    context.line(evaluation_json(e, loaded.card.class_names).add("device", device.name()).add("model", o.model).text());
    return kDone;
  }
  context.line(context.bold("Accuracy " + percent(e.accuracy.value())) + " (" + count_text(e.accuracy.numerator) + " of " + count_text(e.accuracy.denominator) +
               "), loss " + std::to_string(e.loss.value()) + ", " + count_text(e.images_per_s) + " images/s on " + device.name());
  context.line();
  print_class_table(context, e, loaded.card.class_names);
  return kDone;
}

Run setup(Args& args) {
  auto o = std::make_shared<Options>();
  args.positional("MODEL", &o->model, "file that `tenon train` saved");
  args.option("--data", &o->data, "folder of IDX files, or fashion-mnist");
  args.option("--limit", &o->limit, "only the first so many test images; 0: all", 0);
  args.choice("--kernels", &o->kernels, {"auto", "reference"}, "reference: only those linked in");
  return [o](Context& context) { return run(*o, context); };
}

}  // namespace

extern const Command command_eval;
const Command command_eval{"eval", "Measure a saved model on test images, class by class.",
                           "tenon eval model.safetensors --data fashion-mnist\ntenon eval model.safetensors --data DIR --json", kUsesDevice, setup};

}  // namespace tenon::cli
