// tools/config/config.h - the settings of a training run: read from TOML, JSON and flags, checked, printed.
//
//   auto config = tenon::config::load({"run.toml"}, {"--optimizer.lr=0.01", "--epochs=2"});
//   if (!config) std::cerr << config.status().text();   // error[TN-CONF-001]: unknown key "optimiser.lr" ... try: optimizer.lr
//   else std::cout << tenon::config::print_toml(*config);
//
// Later sources win: defaults, then the file, then flags. Nothing is ignored: an unknown key, a wrong type or a value out
// of range is an error naming file and line. print_toml gives text that reads back as the very same TrainConfig.
// Errors: TN-CONF-001 unknown key  002 wrong type  003 out of range  004 not one of the choices  005 not TOML or JSON
//         TN-CONF-006 key given twice  007 settings that contradict each other  008 flag not understood; TN-FILE-* of the file.
// Link tenon_config together with tenon_framework (or tenon_dataio), whose io::Status and file reading it uses.
#pragma once
#include <tenon/io/status.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon::config {

using io::Result;
using io::Status;

struct TrainConfig {
  struct Data { std::string dir = "/usr/share/datasets/fashion-mnist", kind = "idx"; bool operator==(const Data&) const = default; } data;
  struct Model {
    std::string preset = "cnn";          // cnn, mlp or lenet; "" when layers say it
    std::vector<std::string> layers;     // "conv 32 3", "relu", "pool 2", "linear 10", ...
    bool operator==(const Model&) const = default;
  } model;
  int64_t epochs = 4, batch = 128, steps = 0;  // steps: stop after so many; 0: after the epochs
  struct Optimizer {
    std::string name = "adam";           // sgd, adam, adamw
    double lr = 1e-3, momentum = 0.9, weight_decay = 0;
    std::array<double, 2> betas{0.9, 0.999};
    double eps = 1e-8;
    bool operator==(const Optimizer&) const = default;
  } optimizer;
  struct Schedule {
    std::string name = "one_cycle";      // constant, one_cycle, cosine, step
    double max_lr = 3e-3, min_lr = 0, gamma = 0.1, warmup = 0.3;   // warmup: part of all steps
    int64_t step_size = 1;               // epochs between two cuts of `step`
    bool operator==(const Schedule&) const = default;
  } schedule;
  int64_t seed = 1;
  std::string device = "auto", policy = "prefer", precision = "f32";
  std::string kernels = "auto";          // auto, reference (those linked in: slow, the same bits everywhere)
  int64_t threads = 0;                   // 0: all
  struct Checkpoint { std::string dir; int64_t every = 0, keep = 3; bool operator==(const Checkpoint&) const = default; } checkpoint;  // every: steps; 0: at the end
  std::string out;                       // where the trained model goes; "": nowhere
  int64_t limit_train = 0, limit_test = 0;  // samples; 0: all
  bool operator==(const TrainConfig&) const = default;
};

// One setting as a source gave it. `table` entries stand for "[name]" or a JSON object.
struct TableMark { bool operator==(const TableMark&) const = default; };
struct Unfit { std::string found; };     // a value no setting has: null, a date, an array within an array
using Value = std::variant<TableMark, bool, int64_t, double, std::string, std::vector<double>, std::vector<std::string>, Unfit>;
struct Entry { std::string path; Value value; std::string where; };  // path "optimizer.lr", where "run.toml:7"

// Sources; `name` is what messages call the text. Pure, any bytes.
Result<std::vector<Entry>> read_toml(const std::string& text, const std::string& name);
Result<std::vector<Entry>> read_json(const std::string& text, const std::string& name);
// "--optimizer.lr=0.1", "--limit-train=2000" ('-' and '_' are the same in keys); lists with commas.
Result<std::vector<Entry>> read_flags(const std::vector<std::string>& flags);

Status apply_entries(const std::vector<Entry>& entries, TrainConfig* config);  // types, ranges, unknown and doubled keys
Status check(const TrainConfig& config);                               // what single keys cannot tell
// paths: zero or one file; JSON when the name ends in .json or the text starts with '{', else TOML.
Result<TrainConfig> load(const std::vector<std::string>& paths, const std::vector<std::string>& flags);

std::string print_toml(const TrainConfig& config);
std::string describe_keys();  // one line a key: name, type, range or choices, default; for --help
// The known key nearest to what was typed, or "" when none is near.
std::string nearest_key(const std::string& typed);

}  // namespace tenon::config
