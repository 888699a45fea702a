#include "schema.h"

namespace tenon::config {
namespace {

constexpr double kMost = 9007199254740992.0;  // 2^53: every whole number up to here is a double too

#define AT(member) [](TrainConfig& c) -> void* { return &c.member; }
constexpr Field kFields[] = {
    {"epochs", "passes over the training data", Kind::Integer, AT(epochs), 1, 1e6},
    {"batch", "samples per step", Kind::Integer, AT(batch), 1, 1e6},
    {"steps", "stop after so many steps; 0: after the epochs", Kind::Integer, AT(steps), 0, kMost},
    {"seed", "of every random choice", Kind::Integer, AT(seed), 0, kMost},
    {"device", "NAME:INDEX, auto, or several with commas", Kind::Text, AT(device)},
    {"policy", "what may replace a device that cannot", Kind::Text, AT(policy), 0, 0, "prefer require no-expand"},
    {"precision", "element type of the computation", Kind::Text, AT(precision), 0, 0, "f32 bf16 f16 f64"},
    {"kernels", "reference: only those linked in, no plugin files", Kind::Text, AT(kernels), 0, 0, "auto reference"},
    {"threads", "0: all", Kind::Integer, AT(threads), 0, 4096},
    {"out", "file for the trained model; empty: none", Kind::Text, AT(out)},
    {"limit_train", "use only the first so many training samples; 0: all", Kind::Integer, AT(limit_train), 0, kMost},
    {"limit_test", "use only the first so many test samples; 0: all", Kind::Integer, AT(limit_test), 0, kMost},
    {"data.dir", "folder with the data files", Kind::Text, AT(data.dir)},
    {"data.kind", "format of the data", Kind::Text, AT(data.kind), 0, 0, "idx idx-stream"},
    {"model.preset", "a ready-made network; empty when layers are given", Kind::Text, AT(model.preset)},
    {"model.layers", "the network, layer by layer", Kind::Texts, AT(model.layers)},
    {"optimizer.name", "", Kind::Text, AT(optimizer.name), 0, 0, "sgd adam adamw"},
    {"optimizer.lr", "step size", Kind::Real, AT(optimizer.lr), 0, 1e3},
    {"optimizer.momentum", "of sgd", Kind::Real, AT(optimizer.momentum), 0, 1},
    {"optimizer.weight_decay", "", Kind::Real, AT(optimizer.weight_decay), 0, 1e3},
    {"optimizer.betas", "of adam and adamw", Kind::Pair, AT(optimizer.betas), 0, 1},
    {"optimizer.eps", "of adam and adamw", Kind::Real, AT(optimizer.eps), 0, 1},
    {"schedule.name", "how the step size changes", Kind::Text, AT(schedule.name), 0, 0, "constant one_cycle cosine step"},
    {"schedule.max_lr", "peak of one_cycle", Kind::Real, AT(schedule.max_lr), 0, 1e3},
    {"schedule.min_lr", "end of cosine", Kind::Real, AT(schedule.min_lr), 0, 1e3},
    {"schedule.gamma", "factor of step", Kind::Real, AT(schedule.gamma), 0, 1},
    {"schedule.warmup", "rising part of one_cycle", Kind::Real, AT(schedule.warmup), 0, 1},
    {"schedule.step_size", "epochs between two cuts of step", Kind::Integer, AT(schedule.step_size), 1, 1e6},
    {"checkpoint.dir", "folder of checkpoints; empty: none", Kind::Text, AT(checkpoint.dir)},
    {"checkpoint.every", "steps between two; 0: only at the end", Kind::Integer, AT(checkpoint.every), 0, kMost},
    {"checkpoint.keep", "how many to keep", Kind::Integer, AT(checkpoint.keep), 1, 1e6},
};
#undef AT

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_field(const std::string& path) {
  for (const Field& field : kFields)
    if (path == field.path) return &field;
  return nullptr;
}

bool is_table(const std::string& path) {
  for (const Field& field : kFields)
    if (std::string(field.path).starts_with(path + ".")) return true;
  return false;
}

}  // namespace tenon::config
