// `tenon train` on an isolated device: the same losses, and after the death of the worker training goes on elsewhere.
#include <fcntl.h>

#include <map>
#include <sstream>

#include "tests/isolate/app.h"
#include "tests/train/images.h"

namespace tenon::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}
std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::stringstream in(text_of(path));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The command as a person runs it, isolated or not.
struct Child {
  Child(const std::string& folder, bool isolated, std::vector<std::string> args) : out(folder + "/stdout"), err(folder + "/stderr") {
    pid = fork();
    if (pid != 0) return;
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    if (chdir(folder.c_str()) != 0) _exit(125);
    if (isolated) setenv("TENON_ISOLATE", "dev.tenon.sim", 1);
    std::vector<char*> argv{const_cast<char*>(TENON_COMMAND)};
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    execv(TENON_COMMAND, argv.data());
    _exit(126);
  }
  int wait() {  // exit code, or 1000 + signal
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  // The worker that it started: the only child it has.
  pid_t worker() const {
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      std::ifstream children(task.path() / "children");
      pid_t child = 0;
      if (children >> child) return child;
    }
    return 0;
  }
  pid_t pid;
  std::string out, err;
};

class Train : public testing::Test {
 protected:
  void SetUp() override {
    TENON_NEEDS_IMAGES();
    write_images(folder.path, 1000, 200);
  }
  std::vector<std::string> train(std::vector<std::string> more) const {
    std::vector<std::string> args = {"train", "--data", folder.path, "--model.layers=linear 16,relu,linear 10", "--batch=20", "--policy=require"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::string path(const char* name) const { return folder.path + "/" + name; }
  TempFolder folder;
};

TEST_F(Train, gives_the_same_losses_bit_for_bit_in_a_worker_process) {
  for (const bool isolated : {false, true}) {
    Child child(folder.path, isolated, train({"--device=sim:0", "--epochs=3", "--log", isolated ? "isolated.jsonl" : "inside.jsonl", isolated ? "--checkpoint.dir=a" : "--checkpoint.dir=b"}));
    ASSERT_EQ(child.wait(), 0) << text_of(child.err);
  }
  EXPECT_EQ(lines_of(path("inside.jsonl")).size(), 150u);
  EXPECT_EQ(text_of(path("isolated.jsonl")), text_of(path("inside.jsonl")));
}

// The contract: the worker dies in the middle of training, the program says so in time and saves nothing false, and training
// goes on from the last checkpoint on another device.
TEST_F(Train, goes_on_on_the_cpu_after_the_worker_was_killed) {
  Child child(folder.path, true, train({"--device=sim:0", "--epochs=400", "--log", "log.jsonl", "--checkpoint.dir=c", "--checkpoint.every=60"}));
  for (int i = 0; i < 12000 && lines_of(path("log.jsonl")).size() < 137 && runs(child.pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const pid_t worker = child.worker();
  ASSERT_GT(worker, 0) << text_of(child.err);
  ASSERT_NE(text_of("/proc/" + std::to_string(worker) + "/comm").find("tenon-worker"), std::string::npos);
  const auto begin = Clock::now();
  kill(worker, SIGKILL);
  const int code = child.wait();
  EXPECT_LT(ms_since(begin), 15000);
  EXPECT_TRUE(code > 0 && code < 100) << code << ": not an orderly failure";
  const std::string said = text_of(child.err);
  EXPECT_NE(said.find("TN-LOAD-046"), std::string::npos) << said;
  EXPECT_NE(said.find("SIGKILL"), std::string::npos) << said;

  const std::vector<std::string> before = lines_of(path("log.jsonl"));
  ASSERT_GE(before.size(), 137u);
  ASSERT_LT(before.size(), 20000u) << "training was over before the worker was killed";
  Child resumed(folder.path, false, {"train", "--resume", "c", "--device=cpu", "--epochs=400", "--steps=" + std::to_string(before.size() + 300), "--log", "log.jsonl"});
  ASSERT_EQ(resumed.wait(), 0) << text_of(resumed.err);
  EXPECT_NE(text_of(resumed.out).find("# device cpu:0"), std::string::npos) << text_of(resumed.out);
  const std::vector<std::string> after = lines_of(path("log.jsonl"));
  ASSERT_EQ(after.size(), before.size() + 300);
  const size_t saved = before.size() / 60 * 60;  // the last checkpoint, or the one before if the loss came while it was written
  for (size_t i = 0; i + 60 < saved; ++i) ASSERT_EQ(after[i], before[i]) << "step " << i + 1;
  const auto loss = [](const std::string& line) { return std::stod(line.substr(line.find("\"loss\":") + 7)); };
  EXPECT_LT(loss(after.back()), loss(before.front()));
}

}  // namespace
}  // namespace tenon::test
