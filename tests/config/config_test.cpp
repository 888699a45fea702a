#include "tools/config/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "../io/temp_dir.hpp"

using namespace tenon::config;
using namespace tenon::test;
using tenon::io::conf_error;
using tenon::io::file_error;

namespace {

Status toml(const std::string& text, TrainConfig* out = nullptr) {
  TrainConfig scratch;
  auto entries = read_toml(text, "run.toml");
  return entries ? apply_entries(*entries, out ? out : &scratch) : entries.status();
}

Status json(const std::string& text, TrainConfig* out = nullptr) {
  TrainConfig scratch;
  auto entries = read_json(text, "run.json");
  return entries ? apply_entries(*entries, out ? out : &scratch) : entries.status();
}

Status flags(const std::vector<std::string>& list, TrainConfig* out = nullptr) {
  TrainConfig scratch;
  auto entries = read_flags(list);
  return entries ? apply_entries(*entries, out ? out : &scratch) : entries.status();
}

}  // namespace

TEST(Config, toml_json_and_flags_say_the_same) {
  TrainConfig a, b, c;
  ASSERT_TRUE(toml("epochs = 2\nlimit_train = 2000\n[optimizer]\nname = \"sgd\"\nlr = 1e-2\nbetas = [0.5, 0.25]\n[model]\nlayers = [\"flatten\", \"linear 10\"]\n", &a).ok());
  ASSERT_TRUE(json(R"({"epochs":2,"limit_train":2000,"optimizer":{"name":"sgd","lr":0.01,"betas":[0.5,0.25]},"model":{"layers":["flatten","linear 10"]}})", &b).ok());
  ASSERT_TRUE(flags({"--epochs=2", "--limit-train=2000", "--optimizer.name=sgd", "--optimizer.lr=0.01", "--optimizer.betas=0.5,0.25", "--model.layers=flatten,linear 10"}, &c).ok());
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
  EXPECT_EQ(a.epochs, 2);
  EXPECT_EQ(a.optimizer.betas[1], 0.25);
  EXPECT_EQ(a.model.preset, "") << "layers take the preset's place";
  EXPECT_TRUE(check(a).ok());
}

TEST(Config, an_unknown_key_is_refused_with_the_key_that_was_meant) {
  const std::pair<const char*, const char*> cases[] = {{"epoch", "epochs"}, {"epocsh", "epochs"}, {"optimiser.lr", "optimizer.lr"}, {"optimizer.leraning_rate", ""}, {"lr", "optimizer.lr"},
                                                      {"optimizer.weight_decya", "optimizer.weight_decay"}, {"train_limit", ""}, {"limit_trian", "limit_train"}, {"momentum", "optimizer.momentum"},
                                                      {"zzzzzzzzzz", ""}, {"batchsize", ""}, {"bacth", "batch"}, {"checkpoint.evry", "checkpoint.every"}};
  for (const auto& [typed, meant] : cases) {
    const Status s = toml(std::string(typed) + " = 1\n");
    EXPECT_EQ(s.id, conf_error(1)) << typed;
    if (*meant) {
      EXPECT_EQ(s.fix, std::string("write ") + meant) << typed;
    }
  }
  EXPECT_EQ(toml("[optimiser]\n").fix, "write optimizer") << "even an empty table";
  EXPECT_EQ(json(R"({"optimizer":{"learning":{}}})").id, conf_error(1));
  EXPECT_EQ(flags({"--learning-rate=1"}).id, conf_error(1));
}

TEST(Config, error_text_names_file_and_line) {
  EXPECT_EQ(toml("epochs = 2\n\n[optimizer]\nleraning = 1\nlr = \"fast\"\n").where, "run.toml:4");
  EXPECT_EQ(toml("epochs = 2\n[optimizer]\nlr = \"fast\"\n").text(),
            "error[TN-CONF-002]: run.toml:3: wrong type for optimizer.lr\n"
            "  where: run.toml:3\n"
            "  why:   it must be a number; found the text \"fast\"\n"
            "  try:   write it like optimizer.lr = 0.001\n");
  EXPECT_EQ(json("{\n\"epochs\": 2,\n\"batch\": 1.5\n}").where, "run.json:3");
  EXPECT_EQ(json("{\n\"epochs\": 2,\n\"batch\": 0\n}").where, "run.json:3");
  EXPECT_EQ(json("{\n\"epochs\": 2,\n\"device\":\n true}").where, "run.json:4");
  EXPECT_EQ(toml("epochs = \n").where, "run.toml:1");
  EXPECT_EQ(json("{\n\"epochs\": 2,,\n}").where, "run.json:2");
  EXPECT_EQ(flags({"--epochs=two"}).where, "flag \"--epochs=two\"");
}

TEST(Config, types_are_not_bent) {
  for (const char* text : {"epochs = 2.0", "epochs = \"2\"", "epochs = true", "epochs = [2]", "epochs = 2026-01-01", "[epochs]\nx = 1", "device = 1", "optimizer.lr = \"0.1\"", "optimizer.betas = [0.9]",
                           "optimizer.betas = [0.9, 0.9, 0.9]", "optimizer.betas = 0.9", "optimizer.betas = [\"a\", \"b\"]", "model.layers = \"linear\"", "model.layers = [1]", "model.layers = [[\"a\"]]",
                           "model.layers = [\"a\", 1]", "optimizer = 3", "optimizer = []", "[[optimizer]]\nlr = 1"})
    EXPECT_EQ(toml(text).id, conf_error(2)) << text;
  for (const char* text : {R"({"epochs":null})", R"({"epochs":"2"})", R"({"epochs":2.0})", R"({"seed":18446744073709551615})", R"({"model":{"layers":[true]}})", R"({"optimizer":[]})"})
    EXPECT_EQ(json(text).id, conf_error(2)) << text;
  for (const char* flag : {"--epochs=2.0", "--epochs=", "--epochs=0x2", "--epochs= 2", "--optimizer.lr=fast", "--optimizer.betas=0.9", "--optimizer.betas=a,b"}) EXPECT_EQ(flags({flag}).id, conf_error(2)) << flag;
  TrainConfig c;
  ASSERT_TRUE(toml("optimizer.lr = 1", &c).ok()) << "a whole number is a number";
  EXPECT_EQ(c.optimizer.lr, 1.0);
}

TEST(Config, values_out_of_range_are_refused_with_the_range) {
  for (const char* text : {"epochs = 0", "epochs = -1", "batch = 0", "seed = -1", "threads = 100000", "optimizer.lr = -0.1", "optimizer.lr = nan", "optimizer.lr = inf", "optimizer.momentum = 1.5",
                           "optimizer.betas = [0.9, 2.0]", "optimizer.betas = [nan, 0.5]", "checkpoint.keep = 0", "batch = 9223372036854775807"})
    EXPECT_EQ(toml(text).id, conf_error(3)) << text;
  EXPECT_NE(toml("epochs = 0").why.find("allowed are 1 to 1000000"), std::string::npos);
  EXPECT_EQ(toml("optimizer.name = \"addam\"").id, conf_error(4));
  EXPECT_EQ(toml("policy = \"\"").id, conf_error(4));
  EXPECT_EQ(flags({"--out=\xff"}).id, conf_error(3));
  EXPECT_EQ(toml("out = \"\\u0000\"").id, conf_error(3));
}

TEST(Config, damaged_text_is_refused) {
  for (const char* text : {"epochs", "= 1", "epochs = 1 2", "epochs = 1\nepochs = 2", "out = \"\xff\"", "[a\n", "x = '''"}) EXPECT_EQ(toml(text).id, conf_error(5)) << text;
  for (const char* text : {"", "[]", "1", "\"a\"", "{", "{\"epochs\":1}x", "{\"epochs\":1,}", "{\"out\":\"\xff\"}", "{\"epochs\":1e999}", "{\"model\":{\"layers\":[[1]]}}"}) EXPECT_EQ(json(text).id, conf_error(5)) << text;
  EXPECT_EQ(json(std::string("{\"epochs\":1}\0{", 14)).id, conf_error(5)) << "nothing may hide behind a NUL";
  EXPECT_EQ(json("{\"epochs\":1,\"epochs\":2}").id, conf_error(6));
  EXPECT_EQ(json("{\"a\":" + std::string(100000, '[')).id, conf_error(5));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_FALSE(json(deep).ok());
  EXPECT_FALSE(toml("a = " + std::string(100000, '[')).ok());
  EXPECT_EQ(flags({"--epochs=1", "--epochs=2"}).id, conf_error(6));
  for (const char* flag : {"epochs=2", "--epochs", "-e=2", "--=2", ""}) EXPECT_EQ(flags({flag}).id, conf_error(8)) << flag;
}

TEST(Config, settings_that_contradict_each_other_are_refused) {
  TempDir dir;
  const auto id = [&](const std::string& text) {
    put(dir / "c.toml", text);
    auto c = load({dir / "c.toml"}, {});
    return c ? 0u : c.status().id;
  };
  EXPECT_EQ(id(""), 0u) << "defaults alone are good";
  EXPECT_EQ(id("[model]\npreset = \"mlp\"\nlayers = [\"relu\"]"), conf_error(7));
  EXPECT_EQ(id("[model]\npreset = \"\""), conf_error(7));
  EXPECT_EQ(id("[model]\npreset = \"resnet\""), conf_error(4));
  EXPECT_EQ(id("[checkpoint]\nevery = 5"), conf_error(7));
  EXPECT_EQ(id("[data]\ndir = \"\""), conf_error(7));
}

TEST(Config, flags_win_over_the_file_and_the_file_over_defaults) {
  TempDir dir;
  put(dir / "c.toml", "epochs = 7\nbatch = 9\n"), put(dir / "c.json", "{\"epochs\":7,\"batch\":9}"), put(dir / "c", " {\"epochs\":7,\"batch\":9}");
  for (const char* name : {"c.toml", "c.json", "c"}) {
    auto c = load({dir / name}, {"--batch=11"});
    ASSERT_TRUE(c) << c.status().text();
    EXPECT_EQ(c->epochs, 7);
    EXPECT_EQ(c->batch, 11);
    EXPECT_EQ(c->seed, TrainConfig{}.seed);
  }
  EXPECT_EQ(load({dir / "none.toml"}, {}).status().id, file_error(1));
  EXPECT_EQ(load({dir.path()}, {}).status().id, file_error(3));
  EXPECT_EQ(load({"a", "b"}, {}).status().id, conf_error(8));
  put(dir / "big.toml", std::string(2 << 20, '\n'));
  EXPECT_EQ(load({dir / "big.toml"}, {}).status().id, file_error(5));
}

TEST(Config, the_printed_configuration_reads_back_as_the_very_same) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    TrainConfig c, back;
    const auto real = [&](double high) { return high * std::ldexp(static_cast<double>(random() >> 11), -53) * (random() % 4 ? 1.0 : 1e-300); };
    c.optimizer.lr = real(1000), c.optimizer.momentum = real(1), c.optimizer.betas = {real(1), real(1)}, c.optimizer.eps = i % 7 ? real(1) : 5e-324, c.schedule.max_lr = i % 5 ? real(1000) : -0.0;
    c.seed = static_cast<int64_t>(random() >> 11), c.out = std::string("a\"b\\c\n\t\x01\x7f ü 猫 '''") + std::to_string(i), c.model.preset = "", c.model.layers = {"conv 32 3", "\"", ""};
    ASSERT_TRUE(toml(print_toml(c), &back).ok()) << toml(print_toml(c)).text();
    ASSERT_EQ(back, c) << print_toml(c);
    ASSERT_EQ(std::signbit(back.schedule.max_lr), std::signbit(c.schedule.max_lr));
    ASSERT_EQ(print_toml(back), print_toml(c));
  }
  TrainConfig preset, back;
  ASSERT_TRUE(toml(print_toml(preset), &back).ok());
  EXPECT_EQ(back, preset);
}

TEST(Config, help_lists_every_key) {
  const std::string help = describe_keys();
  for (const char* key : {"--epochs=4", "--optimizer.lr=0.001", "--optimizer.betas=[0.9, 0.999]", "sgd adam adamw", "--limit_train=0", "--model.preset=\"cnn\""}) EXPECT_NE(help.find(key), std::string::npos) << key;
}
