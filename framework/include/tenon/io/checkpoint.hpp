// tenon/io/checkpoint.hpp - the whole state of a training run in one folder that is either complete or not there.
//
//   ROOT/step-000000137/   model.safetensors  optimizer.safetensors  state.json  manifest.json
//
//   save_checkpoint("runs/a", state, model_views, optimizer_views);
//   auto found = find_checkpoint("runs/a");            // newest complete one, and why newer ones were passed over
//   if (found && found->best) { read_state(found->best->directory + "/state.json"); SafetensorsFile::open(...); }
//
// Writing: files go to a hidden folder beside, each synced; manifest.json with every file's size and SHA-256 comes last;
// then one rename makes the folder visible. So a killed or failed save leaves the checkpoints that were there before.
// Reading trusts only what the manifest vouches for; names in it that would lead out of the folder, and links, are refused.
// Errors: TN-FILE-001..019 of the files, and TN-FILE-021 manifest missing or damaged,
//         022 a file differs from the manifest, 023 a file of the manifest is missing, 024 state not understood.
#pragma once
#include <tenon/io/safetensors.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::io {

// All that a resumed run needs beside the tensors. Counters are u64, scalars f64; both survive bit for bit (NaN: as NaN).
struct TrainingState {
  uint64_t step = 0, epoch = 0;                                        // optimizer steps done; epoch under way
  uint64_t sampler_seed = 0, sampler_epoch = 0, sampler_offset = 0;    // samples of the epoch already consumed, all ranks
  uint64_t generator_seed = 0, generator_offset = 0;                   // Philox key and next counter
  std::map<std::string, double> scalars;                               // "scheduler.last_lr", "scaler.scale", ...
  std::map<std::string, uint64_t> counters;                            // "scheduler.step", "accumulation.done", ...
  std::string config;                                                  // the resolved configuration, TOML
  bool operator==(const TrainingState&) const = default;
};

std::string state_text(const TrainingState& state);                    // JSON; needs a UTF-8 config
Result<TrainingState> parse_state(const std::string& json, const std::string& where);
Result<TrainingState> read_state(const std::string& path);

// Builds one checkpoint file by file; for sharded or additional files use it instead of save_checkpoint.
// Destroyed before publish(): nothing remains. One thread at a time.
class CheckpointWriter {
 public:
  // Creates `root` when missing and removes hidden folders that dead writers left in it.
  static Result<CheckpointWriter> begin(const std::string& root, uint64_t step);
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  CheckpointWriter& operator=(CheckpointWriter&&) = delete;
  ~CheckpointWriter();
  // name: a plain file name such as "model-00001-of-00002.safetensors".
  Status add_tensors(const std::string& name, const std::vector<SafetensorsView>& tensors, const std::map<std::string, std::string>& metadata = {});
  Status add_text(const std::string& name, const std::string& text);
  // Writes the manifest and makes the folder visible, replacing one of the same step. Returns its path.
  Result<std::string> publish();

 private:
  CheckpointWriter(int lock_fd, std::string root, std::string temporary, uint64_t step)
      : lock_fd_(lock_fd), root_(std::move(root)), temporary_(std::move(temporary)), step_(step) {}
  Status record(const std::string& name);
  int lock_fd_ = -1;
  std::string root_, temporary_;
  uint64_t step_ = 0;
  struct FileRecord { std::string sha256; uint64_t size_bytes; };
  std::map<std::string, FileRecord> files_;
};

Result<std::string> save_checkpoint(const std::string& root, const TrainingState& state, const std::vector<SafetensorsView>& model,
                                    const std::vector<SafetensorsView>& optimizer);

struct CheckpointInfo {
  std::string directory;
  uint64_t step = 0;
  std::vector<std::string> files;  // as the manifest lists them, sorted
};
// Reads the manifest and checks every file's size and sum. Blocks for as long as reading all bytes takes.
Result<CheckpointInfo> verify_checkpoint(const std::string& directory);

struct SkippedCheckpoint { std::string directory; Status reason; };
struct CheckpointSearch {
  std::optional<CheckpointInfo> best;      // highest step that verifies
  std::vector<SkippedCheckpoint> skipped;  // newer ones that do not, newest first
};
// A missing root is TN-FILE-001; a root with no usable checkpoint gives best = nullopt and says why in `skipped`.
Result<CheckpointSearch> find_checkpoint(const std::string& root);

// Removes complete checkpoints but the newest `keep` (at least 1). Damaged ones are left for a person to look at.
Status prune_checkpoints(const std::string& root, size_t keep);

}  // namespace tenon::io
