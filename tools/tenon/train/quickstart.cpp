// tenon quickstart: the main road from the machine's devices to a model that classifies, each step checked.
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <tenon/io/file.hpp>
#include <tenon/io/tensors.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/train/results.h"
#include "tools/tenon/train/same_steps.h"
#include "tools/tenon/train/settings.h"
#include "tools/tenon/train/workshop.h"

namespace tenon::cli {
namespace {

struct Options {
  std::string data = "fashion-mnist", out = "quickstart", report = "quickstart.json";
  int64_t epochs = 3, started = 0, limit_train = 0;
};

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void heading(const Context& context, const std::string& text) {
  if (context.json) return;
  context.line();
  context.line(context.bold(text));
  std::fflush(stdout);
}
void say(const Context& context, const std::string& text) {
  if (!context.json) context.line(text);
}

// What this machine has, in a few lines; `tenon doctor` says more.
void summarise_machine(const Context& context, tn_runtime* runtime) {
  uint32_t usable = 0, refused = 0;
  for (const tn_plugin_entry& p : plugin_entries(runtime)) ++(p.code == 0 ? usable : refused);
  say(context, std::to_string(usable) + " plugins in use" + (refused ? ", " + std::to_string(refused) + " not (tenon plugins says why)" : std::string()) + "; devices:");
  for (const tn_device_entry& d : device_entries(runtime))
    say(context, "  " + std::string(d.name) + (d.verdict == 0 ? "  " + std::string(d.info.name) : "  not usable: " + std::string(d.cause)));
  say(context, "  " + std::to_string(tn_threads(runtime)) + " threads");
}

config::TrainConfig settings_for(const Options& o, const Context& context) {
  config::TrainConfig c;  // the defaults are the quickstart's: cnn, batch 128, Adam, one cycle
  c.data.dir = data_folder(o.data);
  c.epochs = o.epochs;
  c.limit_train = o.limit_train;
  c.device = context.device_spec;
  c.policy = context.policy;
  c.threads = context.threads;
  c.out = o.out + "/model.safetensors";
  c.checkpoint.dir = o.out + "/checkpoints";
  c.checkpoint.keep = 1;
  return c;
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) throw_if_failed(io::errno_status(path, "create", errno), Where{"", 0});
}

struct Found {
  train::FitReport fit;
  train::Evaluation test, reloaded;
  SameSteps same;
};

// The simulated accelerator computes slowly on purpose, so these steps are small.
void compare_with_simulation(const Context& context, Workshop& shop, Found& found) {
  constexpr int64_t kSteps = 20;
  constexpr uint32_t kBatch = 16;
  heading(context, "The same network on the simulated accelerator");
  const Device sim = shop.runtime->device("sim:0", TN_POLICY_REQUIRE, Where{"", 0}), cpu = shop.runtime->device("cpu:0", TN_POLICY_REQUIRE, Where{"", 0});
  found.same = compare_devices(shop.card, shop.data.train, cpu, sim, kSteps, kBatch, 3e-4);
  char text[200];
  std::snprintf(text, sizeof text, "%lld steps from one state: last loss %.6f on cpu:0, %.6f on sim:0; largest relative difference %.1e", static_cast<long long>(kSteps),
                found.same.a.back(), found.same.b.back(), found.same.largest_difference);
  say(context, text);
  constexpr double kTolerance = 1e-4;
  if (found.same.largest_difference > kTolerance)
    throw Failure(kFailed, "TN-CLI-025", "two devices disagree", "sim:0 and cpu:0", text, "run `tenon doctor`, and report this with its output");
}

void save_and_reload(const Context& context, Workshop& shop, Found& found) {
  heading(context, "Saving, loading back, classifying");
  save_model(shop.settings.out, shop.model, shop.card);
  const LoadedModel loaded = load_model(shop.settings.out, shop.device);
  nn::Sequential model = loaded.model;
  found.reloaded = train::evaluate(model, shop.data.test, {.device = shop.device, .normalise = loaded.card.normalise, .channels_last = shop.channels_last});
  char text[160];
  std::snprintf(text, sizeof text, "test accuracy %.17g before, %.17g after loading", found.test.accuracy.value(), found.reloaded.accuracy.value());
  say(context, shop.settings.out + ": " + text);
  if (!(found.reloaded.accuracy == found.test.accuracy))
    throw Failure(kFailed, "TN-CLI-026", "the loaded model answers otherwise than the saved one", shop.settings.out, text, "report this with the file");
  if (context.json) return;
  context.line();
  print_class_table(context, found.reloaded, shop.card.class_names);
}

std::string report_text(const Workshop& shop, const Found& f, double started) {
  return JsonRow()
      .add("accuracy", f.test.accuracy.value()).add("reloaded_accuracy", f.reloaded.accuracy.value()).add("epochs", f.fit.epochs)
      .add("train_s", f.fit.seconds).add("total_s", now_s() - started).add("images_per_s", f.fit.images_per_s).add("device", shop.device.name())
      .add("sim_largest_relative_difference", f.same.largest_difference).add("steps", f.fit.steps).add("model", shop.settings.out)
      .text() + "\n";
}

void next_steps(const Context& context, const Workshop& shop) {
  heading(context, "Next");
  const std::string tenon = context.program.empty() ? "tenon" : context.program;
  say(context, "  " + tenon + " predict " + shop.settings.out + " 0 1 2         what the model sees in test images");
  say(context, "  " + tenon + " train --data DIR --model.preset=lenet    your own images and networks");
  say(context, "  " + tenon + " why conv2d 'f32[128,1,28,28]' 'f32[32,1,3,3]'   which kernel won, and why");
  say(context, "  " + tenon + " --help");
}

int run(const Options& o, Context& context) {
  const double started = o.started > 0 ? static_cast<double>(o.started) : now_s();
  make_folder(o.out);
  const train::Interrupt interrupt;
  Workshop shop(settings_for(o, context), interrupt.flag());
  heading(context, "This machine");
  summarise_machine(context, shop.runtime->get());
  heading(context, "Training a convolutional network on " + count_text(static_cast<double>(shop.data.train->size())) + " images" + (shop.data.known_as.empty() ? "" : " (" + shop.data.known_as + ")"));
  train::ProgressBar bar(stderr);
  shop.trainer->add(bar);
  Found found;
  found.fit = shop.trainer->fit();
  if (found.fit.stopped_by != 0) {
    say(context, "Stopped. Go on with: tenon train --resume " + shop.settings.checkpoint.dir);
    return 128 + found.fit.stopped_by;
  }
  found.test = shop.test();
  say(context, "test accuracy " + percent(found.test.accuracy.value()) + " after " + std::to_string(found.fit.epochs) + " epochs, " + count_text(found.fit.images_per_s) +
               " images/s, " + train::duration_text(found.fit.seconds) + " on " + shop.device.name());
  compare_with_simulation(context, shop, found);
  save_and_reload(context, shop, found);
  const std::string report = report_text(shop, found, started);
  throw_if_failed(io::write_file(o.report, report), Where{"", 0});
  if (context.json) context.line(report.substr(0, report.size() - 1));
  next_steps(context, shop);
  return kDone;
}

Run setup(Args& args) {
  auto o = std::make_shared<Options>();
  args.option("--data", &o->data, "folder of IDX files, or fashion-mnist");
  args.option("--epochs", &o->epochs, "passes over the training images", 1, 1000);
  args.option("--limit-train", &o->limit_train, "only the first so many training images; 0: all", 0);
  args.option("--out", &o->out, "folder for the model and the checkpoint");
  args.option("--report", &o->report, "file for the figures, as JSON");
  args.option("--started", &o->started, "second (date +%s) from which total_s counts; 0: now", 0);
  return [o](Context& context) { return run(*o, context); };
}

}  // namespace

extern const Command command_quickstart;
const Command command_quickstart{"quickstart", "Train, compare devices, save, load and classify: the main road in about two minutes.", "tenon quickstart\ntenon quickstart --epochs 2 --json",
                                 kUsesDevice, setup};

}  // namespace tenon::cli
