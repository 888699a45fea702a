#include <tenon/io/checkpoint.hpp>

#include "temp_dir.hpp"

#include <sys/mount.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <limits>

using namespace tenon::io;
using namespace tenon::test;

namespace {

TrainingState state_at(uint64_t step) {
  TrainingState s;
  s.step = step;
  s.epoch = 2;
  s.sampler_seed = UINT64_MAX, s.sampler_epoch = 2, s.sampler_offset = 17 * step;
  s.generator_seed = 1ull << 63, s.generator_offset = 99;
  s.scalars = {{"lr", 0.1}, {"tiny", 5e-324}, {"zero", -0.0}, {"inf", INFINITY}, {"third", 1.0 / 3}};
  s.counters = {{"scheduler.step", UINT64_MAX}};
  s.config = "epochs = 3\n# ümlaut\n";
  return s;
}

// Tensors whose content tells the step.
std::string save(const std::string& root, uint64_t step) {
  std::vector<uint64_t> w(1000, step), m(2000, step + 1);
  auto saved = save_checkpoint(root, state_at(step), {{"w", TN_U64, {1000}, w.data(), 8000}}, {{"w.m", TN_U64, {2000}, m.data(), 16000}});
  EXPECT_TRUE(saved) << (saved ? "" : saved.status().text());
  return saved ? *saved : "";
}

uint64_t loaded_step(const std::string& directory) {
  auto file = SafetensorsFile::open(directory + "/model.safetensors");
  std::vector<uint64_t> w(1000);
  EXPECT_TRUE(file && file->read(file->tensors()[0], w.data(), 8000).ok());
  return w[999];
}

void flip_bit(const std::string& path, size_t bit) {
  std::string bytes = get(path);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  put(path, bytes);
}

}  // namespace

TEST(Checkpoint, state_survives_bit_for_bit) {
  const TrainingState s = state_at(137);
  auto back = parse_state(state_text(s), "state.json");
  ASSERT_TRUE(back) << back.status().text();
  EXPECT_EQ(*back, s);
  EXPECT_TRUE(std::signbit(back->scalars.at("zero")));
  TrainingState nan;
  nan.scalars = {{"x", std::nan("")}};
  EXPECT_TRUE(std::isnan(parse_state(state_text(nan), "s")->scalars.at("x")));
}

TEST(Checkpoint, state_with_missing_unknown_or_wrong_keys_is_refused) {
  const std::string good = state_text(state_at(1));
  const auto id = [](const std::string& text) { auto r = parse_state(text, "s"); return r ? 0u : r.status().id & 0xFFFF; };
  const auto with = [&](const std::string& from, const std::string& to) { std::string t = good; t.replace(t.find(from), from.size(), to); return t; };
  EXPECT_EQ(id(good), 0u);
  EXPECT_EQ(id(with("\"epoch\"", "\"epoque\"")), 24u);
  EXPECT_EQ(id(with("\"version\": 1", "\"version\": 2")), 24u);
  EXPECT_EQ(id(with("\"step\": 1", "\"step\": -1")), 24u);
  EXPECT_EQ(id(with("\"step\": 1", "\"step\": 1.5")), 24u);
  EXPECT_EQ(id("{}"), 24u);
  EXPECT_EQ(id("[]"), 24u);
  EXPECT_EQ(id(""), 24u);
  EXPECT_EQ(id(std::string(100000, '[')), 24u);
}

TEST(Checkpoint, newest_complete_one_is_found) {
  TempDir dir;
  const std::string root = dir / "a/b";
  save(root, 9), save(root, 10), save(root, 2);
  auto found = find_checkpoint(root);
  ASSERT_TRUE(found && found->best);
  EXPECT_EQ(found->best->step, 10u);
  EXPECT_EQ(found->best->files, (std::vector<std::string>{"model.safetensors", "optimizer.safetensors", "state.json"}));
  EXPECT_TRUE(found->skipped.empty());
  EXPECT_EQ(loaded_step(found->best->directory), 10u);
  EXPECT_EQ(*read_state(found->best->directory + "/state.json"), state_at(10));
}

TEST(Checkpoint, damaged_ones_are_passed_over_and_named) {
  TempDir dir;
  save(dir.path(), 1);
  const std::string truncated = save(dir.path(), 2), flipped = save(dir.path(), 3), missing = save(dir.path(), 4), no_manifest = save(dir.path(), 5), empty = save(dir.path(), 6);
  std::filesystem::resize_file(truncated + "/model.safetensors", std::filesystem::file_size(truncated + "/model.safetensors") - 1);
  flip_bit(flipped + "/optimizer.safetensors", 8 * 9000 + 3);
  std::filesystem::remove(missing + "/optimizer.safetensors");
  std::filesystem::remove(no_manifest + "/manifest.json");
  put(empty + "/manifest.json", "");
  auto found = find_checkpoint(dir.path());
  ASSERT_TRUE(found && found->best);
  EXPECT_EQ(found->best->step, 1u);
  ASSERT_EQ(found->skipped.size(), 5u);
  const uint32_t expected[] = {21, 21, 23, 22, 22};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(found->skipped[i].reason.id, file_error(expected[i])) << found->skipped[i].reason.text();
}

TEST(Checkpoint, any_flipped_bit_of_the_manifest_is_noticed) {
  TempDir dir;
  const std::string good = save(dir.path(), 7), path = good + "/manifest.json", text = get(path);
  for (size_t bit = 0; bit < text.size() * 8; bit += 3) {
    flip_bit(path, bit);
    EXPECT_FALSE(verify_checkpoint(good)) << "bit " << bit;
    put(path, text);
  }
  EXPECT_TRUE(verify_checkpoint(good));
}

TEST(Checkpoint, manifest_cannot_lead_out_of_its_folder) {
  TempDir dir;
  const std::string good = save(dir.path(), 7), path = good + "/manifest.json", text = get(path);
  put(dir / "outside", "secret");
  for (const char* name : {"../outside", "/etc/hostname", ".hidden", "a/../../outside", "..", "a\\\\b", ""}) {
    std::string changed = text;
    changed.replace(changed.find("state.json"), 10, name);
    put(path, changed);
    auto verdict = verify_checkpoint(good);
    ASSERT_FALSE(verdict) << name;
    EXPECT_EQ(verdict.status().id, file_error(21)) << name;
  }
  put(path, text);
  std::filesystem::copy_file(good + "/state.json", dir / "copy.json");
  std::filesystem::remove(good + "/state.json");
  std::filesystem::create_symlink(dir / "copy.json", good + "/state.json");
  EXPECT_EQ(verify_checkpoint(good).status().id, file_error(3)) << "same content, but a link";
}

TEST(Checkpoint, a_writer_killed_at_any_moment_leaves_a_good_one) {
  TempDir dir;
  save(dir.path(), 1);
  uint64_t newest = 1;
  for (int moment = 0; moment < 50; ++moment) {
    const pid_t child = ::fork();
    if (child == 0)
      for (uint64_t step = newest;; ++step) save(dir.path(), step);  // starts by replacing the newest
    ::usleep(static_cast<useconds_t>(300 + moment * 211));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    auto found = find_checkpoint(dir.path());
    ASSERT_TRUE(found && found->best) << moment;
    ASSERT_TRUE(found->skipped.empty()) << found->skipped[0].reason.text();
    ASSERT_GE(found->best->step, newest) << "never falls back";
    newest = found->best->step;
    ASSERT_EQ(loaded_step(found->best->directory), newest);
  }
  save(dir.path(), newest + 1);
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) EXPECT_TRUE(entry.path().filename().string().starts_with("step-")) << entry.path();
}

TEST(Checkpoint, a_full_disk_keeps_the_one_before) {
  TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  save(dir.path(), 1);
  const std::string big(2 << 20, 'b');
  auto failed = save_checkpoint(dir.path(), state_at(2), {{"t", TN_U8, {big.size()}, big.data(), big.size()}}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().id, file_error(7));
  auto found = find_checkpoint(dir.path());
  EXPECT_TRUE(found && found->best && found->best->step == 1 && found->skipped.empty());
  EXPECT_EQ(count_files(dir.path()), 1u);
  ::umount(dir.path().c_str());
}

TEST(Checkpoint, saving_a_step_again_replaces_it) {
  TempDir dir;
  save(dir.path(), 5);
  auto state = state_at(5);
  state.epoch = 77;
  const uint64_t w = 1;
  auto again = save_checkpoint(dir.path(), state, {{"w", TN_U64, {1}, &w, 8}}, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(read_state(*again + "/state.json")->epoch, 77u);
  EXPECT_EQ(count_files(dir.path()), 1u);
}

TEST(Checkpoint, pruning_keeps_the_newest_good_and_touches_no_damaged_one) {
  TempDir dir;
  for (uint64_t s = 1; s <= 5; ++s) save(dir.path(), s);
  std::filesystem::remove(dir / "step-000000005/manifest.json");
  ASSERT_TRUE(prune_checkpoints(dir.path(), 2).ok());
  EXPECT_TRUE(std::filesystem::exists(dir / "step-000000005"));
  EXPECT_TRUE(std::filesystem::exists(dir / "step-000000004") && std::filesystem::exists(dir / "step-000000003"));
  EXPECT_FALSE(std::filesystem::exists(dir / "step-000000002"));
  ASSERT_TRUE(prune_checkpoints(dir.path(), 0).ok());
  EXPECT_TRUE(find_checkpoint(dir.path())->best) << "the last good one always stays";
}

TEST(Checkpoint, a_missing_or_empty_root_is_told_apart) {
  TempDir dir;
  EXPECT_EQ(find_checkpoint(dir / "none").status().id, file_error(1));
  auto empty = find_checkpoint(dir.path());
  ASSERT_TRUE(empty);
  EXPECT_FALSE(empty->best);
}
