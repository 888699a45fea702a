// Texts: progress lines, durations; networks from lists of layers.
#include <tenon/train/train.hpp>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

train::Progress some_progress() {
  train::Progress p;
  p.step = 515, p.total_steps = 938, p.epoch = 1, p.epochs = 2;
  p.loss = 0.28713, p.epoch_accuracy = {894, 1000};
  p.images_per_s = 8431.4, p.eta_s = 21.2, p.busy_share = 0.931, p.memory_bytes = 38 << 20;
  return p;
}

TEST(ProgressLine, has_loss_accuracy_eta_rate_busy_share_and_memory) {
  train::ProgressStyle wide;
  wide.width = 140;
  EXPECT_EQ(train::progress_line(some_progress(), wide),
            "epoch 2/2  [========>       ]  55%  loss 0.2871  acc 89.4%  eta 0:21  8,431 img/s  busy 93%  mem 38 MiB");
}
TEST(ProgressLine, leaves_parts_out_until_it_fits) {
  for (int width = 1; width < 140; ++width) {
    train::ProgressStyle narrow;
    narrow.width = width;
    const std::string line = train::progress_line(some_progress(), narrow);
    EXPECT_TRUE(static_cast<int>(line.size()) < width || line == "epoch 2/2") << line;
  }
}
TEST(ProgressLine, leaves_out_what_is_not_known) {
  train::Progress p = some_progress();
  p.busy_share = -1, p.eta_s = -1, p.memory_bytes = 0;
  train::ProgressStyle wide;
  wide.width = 140;
  EXPECT_EQ(train::progress_line(p, wide), "epoch 2/2  [========>       ]  55%  loss 0.2871  acc 89.4%  8,431 img/s");
}
TEST(ProgressBar, writes_plain_lines_where_there_is_no_terminal) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  {
    train::ProgressBar bar(stream, train::ProgressStyle{});
    train::Progress p = some_progress();
    p.elapsed_s = 3;
    bar.on_progress(p);  // too early for a line
    p.elapsed_s = 11;
    bar.on_progress(p);
    bar.on_epoch({1, {30, 100}, {90, 100}, 61});
  }
  std::fclose(stream);
  const std::string got(text, size);
  std::free(text);
  EXPECT_EQ(got, "epoch 2/2  [========>       ]  55%  loss 0.2871  acc 89.4%  eta 0:21\nepoch 1: loss 0.3000, accuracy 90.00 %, 1:01\n");
}
TEST(Duration, is_written_as_clocks_do) {
  EXPECT_EQ(train::duration_text(7), "0:07");
  EXPECT_EQ(train::duration_text(59.6), "1:00");
  EXPECT_EQ(train::duration_text(3723), "1:02:03");
  EXPECT_EQ(train::duration_text(-1), "?");
  EXPECT_EQ(train::duration_text(1.0 / 0.0), "?");
}

const data::ImageShape kImage{1, 28, 28};

TEST(BuildModel, works_sizes_out) {
  nn::Sequential net = train::build_model(train::preset_layers("cnn", 10), kImage);
  EXPECT_EQ(net.parameter_count(), 32 * 9 + 32 + 2 * 32 + 64 * 32 * 9 + 64 + 2 * 64 + 3136 * 128 + 128 + 1280 + 10);
  EXPECT_EQ(train::build_model(train::preset_layers("lenet", 10), kImage).parameter_count(), 61706);  // as published for LeNet-5's full form
  EXPECT_EQ(train::build_model(train::preset_layers("mlp", 10), kImage).parameter_count(), 784 * 512 + 512 + 5130);
  EXPECT_EQ(train::build_model({"conv 4 3 stride 2 pad 0", "avgpool 2 stride 1", "linear 7"}, kImage)(zeros({2, 1, 28, 28})).shape(), (Shape{2, 7}));
}

struct Refused { std::vector<std::string> layers; const char* id; const char* why; const char* advice; };

TEST(BuildModel, refuses_layers_with_reasons) {
  const Refused cases[] = {
      {{"lineer 10"}, "TN-TRAIN-020", "layer 1, \"lineer 10\": \"lineer\" is not the name of a layer", "write linear"},
      {{"relu", "conv 32"}, "TN-TRAIN-020", "layer 2, \"conv 32\": it is not written as this layer is", "write conv OUT KERNEL [stride S] [pad P]"},
      {{"conv 32 3 pda 1"}, "TN-TRAIN-020", "layer 1, \"conv 32 3 pda 1\": it is not written as this layer is", "write conv OUT KERNEL [stride S] [pad P]"},
      {{"linear 2.5"}, "TN-TRAIN-020", "layer 1, \"linear 2.5\": 2.5 is not a whole number from 1 to 1048576", "give a size in this range"},
      {{"conv 8 3 pad"}, "TN-TRAIN-020", "layer 1, \"conv 8 3 pad\": no number follows \"pad\"", "write pad and a number"},
      {{"dropout 1"}, "TN-TRAIN-020", "layer 1, \"dropout 1\": the rate is 1", "give a rate from 0 up to, not with, 1"},
      {{""}, "TN-TRAIN-020", "layer 1, \"\": \"\" is not the name of a layer", "use conv, batchnorm, relu, pool, dropout, flatten, linear, ..."},
      {{"linear 10", "pool 2"}, "TN-TRAIN-021", "layer 2, \"pool 2\": it takes images, and gets 10 features", "put it before flatten and linear"},
      {{"pool 20", "pool 2"}, "TN-TRAIN-021", "layer 2, \"pool 2\": its window is 2, the images are 1x1", "use a smaller window, or pool less before it"},
  };
  for (const Refused& c : cases) {
    try {
      train::build_model(c.layers, kImage);
      ADD_FAILURE() << c.why;
    } catch (const Error& e) {
      EXPECT_EQ(e.id(), c.id);
      EXPECT_EQ(e.why(), c.why);
      EXPECT_EQ(e.advice(), c.advice);
    }
  }
  try {
    train::preset_layers("lennet", 10);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.id(), "TN-TRAIN-022");
    EXPECT_EQ(e.advice(), "write lenet");
  }
}

}  // namespace
}  // namespace tenon::test
