// tenon train: a training run from settings to a saved model.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/tensors.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/train/loss_log.h"
#include "tools/tenon/train/results.h"
#include "tools/tenon/train/settings.h"
#include "tools/tenon/train/workshop.h"

namespace tenon::cli {
namespace {

struct Options {
  SettingsArgs settings;
  std::string resume, log;
  bool print_config = false;
};

// A folder of checkpoints, or one checkpoint in it.
std::string checkpoint_folder(const std::string& path) {
  struct stat s {};
  if (::stat((path + "/state.json").c_str(), &s) == 0) return path;
  const io::CheckpointSearch found = value_or_throw(io::find_checkpoint(path), Where{"", 0});
  if (found.best) return found.best->directory;
  throw Failure(kFailed, "TN-CLI-022", "no checkpoint to resume from", path,
                found.skipped.empty() ? "the folder holds none" : "newest: " + found.skipped[0].directory + ": " + found.skipped[0].reason.what,
                "give the folder that `tenon train` printed as its checkpoint");
}

// Checkpoints of an earlier run would be taken for this one's: they are kept under another name.
void put_aside(const std::string& root) {
  struct stat s {};
  if (root.empty() || ::stat(root.c_str(), &s) != 0) return;
  const auto found = io::find_checkpoint(root);
  if (found && !found->best && found->skipped.empty()) return;
  for (int i = 1; i < 10000; ++i) {
    const std::string aside = root + ".old-" + std::to_string(i);
    if (::stat(aside.c_str(), &s) == 0) continue;
    if (std::rename(root.c_str(), aside.c_str()) == 0) return;
    throw_if_failed(io::errno_status(root, "rename", errno), Where{"", 0});
  }
}

void print_start(const Context& context, const Workshop& shop) {
  const std::string known = shop.data.known_as.empty() ? "" : " (" + shop.data.known_as + ")";
  context.line("# device " + std::string(shop.device.name()) + ", " + count_text(static_cast<double>(shop.model.parameter_count())) + " parameters, " +
               count_text(static_cast<double>(shop.data.train->size())) + " images" + known + ", " +
               count_text(static_cast<double>(shop.trainer->total_steps())) + " steps");
}

JsonRow report_json(const Workshop& shop, const train::FitReport& r, const char* event) {
  JsonRow row;
  row.add("event", event).add("device", shop.device.name()).add("steps", r.steps).add("epochs", r.epochs);
  row.add("train_loss", r.loss.value()).add("train_accuracy", r.accuracy.value()).add("train_s", r.seconds).add("images_per_s", r.images_per_s);
  if (!r.checkpoint.empty()) row.add("checkpoint", r.checkpoint);
  return row;
}

int end_interrupted(const Context& context, const Workshop& shop, const train::FitReport& r) {
  constexpr int kSignalBase = 128;  // as shells report a command that a signal ended
  if (context.json) context.line(report_json(shop, r, "interrupted").add("signal", r.stopped_by).text());
  else {
    context.line("Stopped after step " + std::to_string(r.steps) + " of " + std::to_string(shop.trainer->total_steps()) + ". Everything is in " + r.checkpoint);
    context.line("Go on with: tenon train --resume " + shop.settings.checkpoint.dir);
  }
  return kSignalBase + r.stopped_by;
}

int end_complete(const Context& context, Workshop& shop, const train::FitReport& r, const std::atomic<int>* stop) {
  if (!shop.settings.out.empty()) save_model(shop.settings.out, shop.model, shop.card);
  const train::Evaluation e = shop.test(stop);
  if (context.json) {
    JsonRow row = report_json(shop, r, "done");
    if (!shop.settings.out.empty()) row.add("model", shop.settings.out);
    context.line(row.add("test", evaluation_json(e, shop.data.class_names)).text());
    return kDone;
  }
  context.line(context.bold("Test accuracy " + percent(e.accuracy.value())) + " (" + count_text(e.accuracy.numerator) + " of " + count_text(e.accuracy.denominator) +
               "), loss " + std::to_string(e.loss.value()));
  context.line("Training: " + std::to_string(r.steps) + " steps, " + count_text(r.images_per_s) + " images/s, " + train::duration_text(r.seconds));
  context.line();
  print_class_table(context, e, shop.data.class_names);
  context.line();
  if (!shop.settings.out.empty()) context.line("Model: " + shop.settings.out + "   (tenon eval " + shop.settings.out + " --data " + shop.settings.data.dir + ")");
  if (!r.checkpoint.empty()) context.line("Checkpoint: " + r.checkpoint);
  return kDone;
}

config::TrainConfig settings_of(const Options& o, const Context& context, const std::string& checkpoint) {
  const std::string stored = checkpoint.empty() ? "" : value_or_throw(io::read_state(checkpoint + "/state.json"), Where{"", 0}).config;
  config::TrainConfig settings = resolve(o.settings, context, stored);
  if (settings.out.empty()) settings.out = "model.safetensors";
  if (settings.checkpoint.dir.empty()) settings.checkpoint.dir = "checkpoints";
  return settings;
}

int run(const Options& o, Context& context) {
  const std::string checkpoint = o.resume.empty() ? "" : checkpoint_folder(o.resume);
  const train::Interrupt interrupt;
  Workshop shop(settings_of(o, context, checkpoint), interrupt.flag());
  const std::string text = config::print_toml(shop.settings);
  if (o.print_config) {
    std::fputs(text.c_str(), stdout);
    return kDone;
  }
  if (context.json) context.line(JsonRow().add("event", "config").add("toml", text).text());
  else {
    context.line("# The resolved settings: tenon train --config FILE with these lines repeats this run.");
    context.line(text);
    print_start(context, shop);
  }
  std::fflush(stdout);
  if (checkpoint.empty()) put_aside(shop.settings.checkpoint.dir);
  else shop.trainer->resume(checkpoint);
  LossLog log(o.log, shop.trainer->step());
  train::ProgressBar bar(stderr);
  if (!o.log.empty()) shop.trainer->add(log);
  shop.trainer->add(bar);
  const train::FitReport report = shop.trainer->fit();
  if (report.stopped_by != 0) return end_interrupted(context, shop, report);
  return end_complete(context, shop, report, interrupt.flag());
}

Run setup(Args& args) {
  auto o = std::make_shared<Options>();
  o->settings.declare(args);
  args.option("--resume", &o->resume, "go on from a checkpoint: its folder, or the folder of checkpoints");
  args.option("--log", &o->log, "file for the loss of every step, one JSON object a line");
  args.flag("--print-config", &o->print_config, "print the resolved settings and stop");
  return [o](Context& context) { return run(*o, context); };
}

}  // namespace

extern const Command command_train;
const Command command_train{
    "train", "Train a network on IDX images; Ctrl-C saves a checkpoint and exits with 130 (SIGTERM: 143).",
    "tenon train --data fashion-mnist\n"
    "tenon train --data DIR --config run.toml --epochs=2 --optimizer.lr=0.01\n"
    "tenon train --model.preset=mlp --kernels=reference --limit_train=2000\n"
    "tenon train --resume checkpoints",
    kUsesDevice, setup};

}  // namespace tenon::cli
