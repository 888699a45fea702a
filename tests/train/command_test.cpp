// `tenon train`, `eval` and `predict` as a person runs them: child processes on real images.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/train/images.h"

namespace tenon::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// A running child; its output goes to files in the folder.
struct Child {
  Child(const std::string& folder, std::vector<std::string> args) : out(folder + "/stdout"), err(folder + "/stderr") {
    pid = ::fork();
    if (pid != 0) return;
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    if (::chdir(folder.c_str()) != 0) ::_exit(125);
    std::vector<char*> argv{const_cast<char*>(TENON_COMMAND)};
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(TENON_COMMAND, argv.data());
    ::_exit(126);
  }
  int wait() {  // exit code, or 1000 + signal
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  pid_t pid;
  std::string out, err;
};

struct Finished { int code; std::string out, err; };
Finished tenon(const std::string& folder, std::vector<std::string> args) {
  Child child(folder, std::move(args));
  const int code = child.wait();
  return {code, text_of(child.out), text_of(child.err)};
}

size_t lines(const std::string& path) {
  const std::string text = text_of(path);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}
bool has_ended(const Child& child) {  // leaves the exit code for wait()
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child.pid;
}
void wait_for_lines(const Child& child, const std::string& path, size_t n) {
  for (int i = 0; i < 6000 && lines(path) < n && !has_ended(child); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

class Command : public testing::Test {
 protected:
  void SetUp() override {
    TENON_NEEDS_IMAGES();
    write_images(folder.path, 1000, 200);
  }
  // A small MLP on the linked kernels: the same bits everywhere.
  std::vector<std::string> train(std::vector<std::string> more) const {
    std::vector<std::string> args = {"train", "--data", folder.path, "--model.layers=linear 16,relu,linear 10", "--kernels=reference", "--batch=20", "--epochs=" + epochs};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  TempFolder folder;
  std::string epochs = "3";
};

TEST_F(Command, prints_settings_that_repeat_the_run) {
  const Finished first = tenon(folder.path, train({"--log", "a.jsonl"}));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string settings = first.out.substr(0, first.out.find("\n# device"));
  ASSERT_TRUE(io::write_file(folder.path + "/again.toml", settings).ok());
  const Finished second = tenon(folder.path, {"train", "--config", "again.toml", "--log", "b.jsonl"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(lines(folder.path + "/a.jsonl"), 150u);
  EXPECT_EQ(text_of(folder.path + "/a.jsonl"), text_of(folder.path + "/b.jsonl"));
  EXPECT_NE(first.out.find("Test accuracy"), std::string::npos) << first.out;
  EXPECT_EQ(first.out.substr(0, first.out.find("Training:")), second.out.substr(0, second.out.find("Training:")));
}

TEST_F(Command, goes_on_bit_for_bit_after_it_was_killed) {
  epochs = "20";  // long enough to be met half-way
  ASSERT_EQ(tenon(folder.path, train({"--log", "whole.jsonl", "--checkpoint.dir=whole"})).code, 0);
  Child child(folder.path, train({"--log", "killed.jsonl", "--checkpoint.dir=killed", "--checkpoint.every=60"}));
  wait_for_lines(child, folder.path + "/killed.jsonl", 137);
  ::kill(child.pid, SIGKILL);
  ASSERT_EQ(child.wait(), 1000 + SIGKILL) << "the run was over before it could be killed";
  const Finished resumed = tenon(folder.path, {"train", "--resume", "killed", "--log", "killed.jsonl"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.path + "/killed.jsonl"), text_of(folder.path + "/whole.jsonl"));
}

TEST_F(Command, saves_on_ctrl_c_and_goes_on_bit_for_bit) {
  epochs = "20";  // long enough to be met half-way
  ASSERT_EQ(tenon(folder.path, train({"--log", "whole.jsonl", "--checkpoint.dir=whole"})).code, 0);
  Child child(folder.path, train({"--log", "stopped.jsonl", "--checkpoint.dir=stopped"}));
  wait_for_lines(child, folder.path + "/stopped.jsonl", 1);
  ::kill(child.pid, SIGINT);
  ASSERT_EQ(child.wait(), 130) << text_of(child.err);
  EXPECT_NE(text_of(child.out).find("Go on with: tenon train --resume stopped"), std::string::npos) << text_of(child.out);
  const Finished resumed = tenon(folder.path, {"train", "--resume", "stopped", "--log", "stopped.jsonl"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.path + "/stopped.jsonl"), text_of(folder.path + "/whole.jsonl"));
}

TEST_F(Command, refuses_an_unknown_setting_with_the_right_one) {
  const Finished r = tenon(folder.path, train({"--optimiser.lr=0.1"}));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("TN-CONF-001"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("optimizer.lr"), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "");
}

TEST_F(Command, keeps_checkpoints_of_an_earlier_run_under_another_name) {
  ASSERT_EQ(tenon(folder.path, train({"--steps=5", "--checkpoint.dir=c"})).code, 0);
  ASSERT_EQ(tenon(folder.path, train({"--steps=3", "--checkpoint.dir=c"})).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path + "/c/step-000000003"));
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/c/step-000000005"));
  EXPECT_TRUE(std::filesystem::exists(folder.path + "/c.old-1/step-000000005"));
}

TEST_F(Command, evaluates_and_predicts_with_the_saved_model) {
  const Finished trained = tenon(folder.path, train({"--json", "--out=m.safetensors"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Finished evaluated = tenon(folder.path, {"eval", "m.safetensors", "--data", folder.path, "--kernels", "reference", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const auto number = [](const std::string& text, const std::string& key) {
    const size_t at = text.rfind("\"" + key + "\":");
    return at == std::string::npos ? std::string("absent") : text.substr(at, text.find(',', at) - at);
  };
  EXPECT_NE(number(trained.out, "accuracy"), "absent");
  EXPECT_EQ(number(evaluated.out, "accuracy"), number(trained.out, "accuracy"));
  EXPECT_EQ(number(evaluated.out, "loss"), number(trained.out, "loss"));
  const Finished seen = tenon(folder.path, {"predict", "m.safetensors", "0", "1", "t10k-images-idx3-ubyte", "--data", folder.path, "--json"});
  ASSERT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(std::count(seen.out.begin(), seen.out.end(), '\n'), 202);
  const Finished wrong = tenon(folder.path, {"predict", "m.safetensors", "t10k-labels-idx1-ubyte"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("TN-CLI-024"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace tenon::test
