// Trying plugins in a child process, and what is remembered of it (F1). What each kind of death is called: tests/fault.
#include "loader/probe/run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "loader/probe/cache.h"
#include "loader/small_file.h"
#include "tests/loader/temp_folder.h"

namespace fs = std::filesystem;
using namespace tenon::loader;

namespace {

// A child that is a shell script: speaks the protocol as told.
ProbeRun run_script(const TempFolder& t, const std::string& body, uint32_t timeout_ms = 300) {
  const std::string path = t.write("probe.sh", "#!/bin/sh\n" + body);
  chmod(path.c_str(), 0755);
  return run_probe({path, "/some/plugin.so", -1, timeout_ms, false});
}

size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

const ProbeRecord kCrashed{"org.x", 11, 11, "SIGSEGV in open"};

}  // namespace

TEST(Probe, of_a_sound_plugin_is_safe) {
  const ProbeRun run = run_probe({TENON_PROBE, FIXTURE_DIR "/good.so", -1, 10000, false});
  EXPECT_EQ(run.end, ProbeEnd::Safe) << run.cause << run.output;
  EXPECT_EQ(run.cause, "");
}

TEST(Probe, of_a_plugin_that_is_refused_in_an_orderly_way_is_safe) {
  for (const char* name : {"undefined", "query_null", "size_zero", "unavailable", "open_error", "devices_fail", "no_symbol", "cpu_need", "throwing"}) {
    const ProbeRun run = run_probe({TENON_PROBE, std::string(FIXTURE_DIR "/") + name + ".so", -1, 10000, false});
    EXPECT_EQ(run.end, ProbeEnd::Safe) << name << ": " << run.cause;
  }
}

TEST(Probe, of_a_plugin_whose_driver_is_absent_has_the_verdicts_words) {
  const ProbeRun run = run_probe({TENON_PROBE, FIXTURE_DIR "/unavailable.so", -1, 10000, false});
  EXPECT_TRUE(run.absent);
  EXPECT_EQ(run.cause, "libdriver.so.7 is absent");
  EXPECT_EQ(run.native_code, 42);
  EXPECT_FALSE(run_probe({TENON_PROBE, FIXTURE_DIR "/open_error.so", -1, 10000, false}).absent);
}

TEST(Probe, opens_the_descriptor_it_is_given) {
  const int fd = open(FIXTURE_DIR "/good.so", O_RDONLY | O_CLOEXEC);
  TempFolder t;
  const std::string trace = t / "trace";
  setenv("TENON_FIXTURE_TRACE", trace.c_str(), 1);
  const ProbeRun run = run_probe({TENON_PROBE, "/no/such/file.so", fd, 10000, false});
  unsetenv("TENON_FIXTURE_TRACE");
  close(fd);
  EXPECT_EQ(run.end, ProbeEnd::Safe) << run.cause;
  EXPECT_TRUE(fs::exists(trace));
}

TEST(Probe, wants_an_end_record_whatever_the_exit_status_is) {
  TempFolder t;
  ProbeRun run = run_script(t, "echo 'stage open' >&3; exit 0");
  EXPECT_EQ(run.end, ProbeEnd::Crashed);
  EXPECT_EQ(run.cause, "exit status 0 in open, without an end record");
  run = run_script(t, "echo 'stage exit' >&3; echo done >&3; exit 5");
  EXPECT_EQ(run.cause, "exit status 5 in exit");
  EXPECT_EQ(run_script(t, "echo 'stage exit' >&3; echo done >&3").end, ProbeEnd::Safe);
  EXPECT_EQ(run_script(t, "echo 'stage open' >&3; kill -SEGV $$").cause, "SIGSEGV in open");
}

TEST(Probe, believes_known_stages_and_whole_lines_only) {
  TempFolder t;
  EXPECT_EQ(run_script(t, "printf 'stage open\\nstage \\033[31mdoom\\nstage clo' >&3; exit 0").cause, "exit status 0 in open, without an end record");
}

TEST(Probe, kills_a_child_that_hangs_and_what_it_started) {
  TempFolder t;
  const auto began = std::chrono::steady_clock::now();
  const ProbeRun run = run_script(t, "echo 'stage devices' >&3; sleep 77.25 & echo $! > " + (t / "pid") + "; wait");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_EQ(run.end, ProbeEnd::TimedOut);
  EXPECT_EQ(run.cause, "300 ms passed in devices");
  pid_t grandchild = 0;
  std::ifstream(t / "pid") >> grandchild;
  ASSERT_GT(grandchild, 0);
  for (int i = 0; i < 200 && kill(grandchild, 0) == 0; ++i) {
    std::ifstream state("/proc/" + std::to_string(grandchild) + "/stat");
    if (std::string(std::istreambuf_iterator<char>(state), {}).find(") Z ") != std::string::npos) break;  // dead, not yet collected by init
    usleep(10000);
    ASSERT_LT(i, 199) << "what the child started still runs";
  }
}

TEST(Probe, gives_each_stage_the_whole_time) {
  TempFolder t;
  EXPECT_EQ(run_script(t, "for s in query open kernels devices exit; do echo \"stage $s\" >&3; sleep 0.15; done; echo done >&3", 400).end, ProbeEnd::Safe);
}

TEST(Probe, keeps_a_bounded_part_of_what_the_child_prints) {
  TempFolder t;
  const ProbeRun run = run_script(t, "echo 'stage exit' >&3; head -c 1000000 /dev/zero | tr '\\0' x; echo err >&2; echo done >&3", 5000);
  EXPECT_EQ(run.end, ProbeEnd::Safe);
  EXPECT_EQ(run.output, std::string(2048, 'x'));
}

TEST(Probe, gives_the_child_no_other_descriptor) {
  TempFolder t;
  const int here = open("/dev/null", O_RDONLY);
  ASSERT_EQ(dup2(here, 77), 77);  // not close-on-exec
  const ProbeRun run = run_script(t, "if [ -e /proc/$$/fd/77 ]; then echo leaked; fi; if [ -e /proc/$$/fd/3 ]; then echo pipe; fi; echo 'stage exit' >&3; echo done >&3");
  close(here);
  close(77);
  EXPECT_EQ(run.output, "pipe\n");
}

TEST(Probe, leaves_no_descriptor_and_no_child_behind) {
  TempFolder t;
  run_script(t, "exit 0");
  const size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) run_probe({TENON_PROBE, FIXTURE_DIR "/good.so", -1, 10000, false});
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Probe, works_in_programs_that_ignore_their_children) {
  signal(SIGCHLD, SIG_IGN);
  const ProbeRun good = run_probe({TENON_PROBE, FIXTURE_DIR "/good.so", -1, 10000, false});
  TempFolder t;
  const ProbeRun bad = run_script(t, "echo 'stage open' >&3; exit 0");
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(good.end, ProbeEnd::Safe) << good.cause;
  EXPECT_EQ(bad.cause, "it ended in open, without an end record");
}

TEST(Probe, that_cannot_be_started_says_why) {
  TempFolder t;
  EXPECT_EQ(run_probe({t / "absent", "/x.so", -1, 1000, false}).cause, (t / "absent") + ": No such file or directory");
  EXPECT_EQ(run_probe({t.write("text", "x"), "/x.so", -1, 1000, false}).end, ProbeEnd::NotRun);
}

TEST(Probe, of_a_privileged_program_gets_no_variable_of_the_user) {
  TempFolder t;
  setenv("TENON_CONFIG", "sim.devices=3", 1);
  const std::string path = t.write("probe.sh", "#!/bin/sh\nenv; echo 'stage exit' >&3; echo done >&3\n");
  chmod(path.c_str(), 0755);
  const ProbeRun run = run_probe({path, "/x.so", -1, 1000, true});
  unsetenv("TENON_CONFIG");
  EXPECT_EQ(run.end, ProbeEnd::Safe);
  EXPECT_EQ(run.output.find("TENON"), std::string::npos) << run.output;
}

TEST(ProbeCache, keeps_a_record_until_it_is_forgotten) {
  TempFolder t;
  const ProbeCache cache(t / "a/b/probe");
  EXPECT_FALSE(cache.find("key"));
  ASSERT_TRUE(cache.keep("key", kCrashed));
  ASSERT_TRUE(cache.keep("other key", {"org.y", 0, 0, ""}));
  ASSERT_TRUE(cache.find("key"));
  EXPECT_EQ(cache.find("key")->code, 11u);
  EXPECT_EQ(cache.find("key")->cause, "SIGSEGV in open");
  EXPECT_EQ(cache.find("other key")->code, 0u);
  EXPECT_EQ(cache.forget("org.x"), 1u);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_TRUE(cache.find("other key"));
}

TEST(ProbeCache, takes_files_that_are_not_whole_for_none) {
  TempFolder t;
  const ProbeCache cache(t / "probe");
  ASSERT_TRUE(cache.keep("key", kCrashed));
  const std::string file = (t / "probe/") + short_hash("key") + ".probe";
  std::ifstream in(file);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  for (size_t n = 0; n < whole.size(); ++n) {
    t.write("probe/" + short_hash("key") + ".probe", whole.substr(0, n));
    ASSERT_FALSE(cache.find("key")) << n;
  }
  for (const std::string& text : {whole + "x", whole + std::string(500000, '\n'), "tenon-probe 1" + whole.substr(13), std::string(1000000, '\0')}) {
    t.write("probe/" + short_hash("key") + ".probe", text);
    EXPECT_FALSE(cache.find("key") && text.substr(0, 13) != "tenon-probe 2");
  }
  t.write("probe/" + short_hash("another") + ".probe", whole);  // as if two keys had one hash
  EXPECT_FALSE(cache.find("another"));
}

TEST(ProbeCache, keeps_line_breaks_of_texts_from_forging_lines) {
  TempFolder t;
  const ProbeCache cache(t / "probe");
  ASSERT_TRUE(cache.keep("key\nid evil", {"org.x", 11, 0, "a\ncode 0\nend"}));
  EXPECT_EQ(cache.find("key\nid evil")->code, 11u);
}

TEST(ProbeCache, is_bounded) {
  TempFolder t;
  const ProbeCache cache(t / "probe");
  for (size_t i = 0; i < ProbeCache::kMost + 40; ++i) ASSERT_TRUE(cache.keep("key " + std::to_string(i), kCrashed));
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(t / "probe")) ++n;
  EXPECT_EQ(n, ProbeCache::kMost);
  EXPECT_TRUE(cache.find("key " + std::to_string(ProbeCache::kMost + 39)));
  EXPECT_FALSE(cache.keep("long", {"org.x", 11, 0, std::string(ProbeCache::kRecordBytes, 'x')}));
}

TEST(ProbeCache, is_not_used_where_others_can_write_or_where_there_is_no_place) {
  TempFolder t;
  const ProbeCache cache(t / "probe");
  ASSERT_TRUE(cache.keep("key", kCrashed));
  chmod((t / "probe").c_str(), 0777);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_FALSE(cache.keep("key", kCrashed));
  fs::create_directory_symlink(t / "probe", t / "link");
  chmod((t / "probe").c_str(), 0700);
  EXPECT_FALSE(ProbeCache(t / "link").find("key"));
  EXPECT_FALSE(ProbeCache("").keep("key", kCrashed));
  EXPECT_FALSE(ProbeCache("relative/probe").keep("key", kCrashed));
  EXPECT_FALSE(ProbeCache("/dev/null/probe").keep("key", kCrashed));
}

TEST(ProbeCache, serves_many_writers_of_one_key) {
  TempFolder t;
  const std::string folder = t / "probe";
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      const ProbeCache cache(folder);
      bool good = true;
      for (int i = 0; i < 200; ++i) {
        cache.keep("key", kCrashed);
        const auto found = cache.find("key");
        good = good && found && found->cause == kCrashed.cause;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++n;
  EXPECT_EQ(n, 1u);  // nothing unfinished is left beside it
}

TEST(DriverFingerprint, is_one_line_and_stays_while_nothing_changes) {
  EXPECT_EQ(driver_fingerprint(), driver_fingerprint());
  EXPECT_EQ(driver_fingerprint().find('\n'), std::string::npos);
  const std::string before = driver_fingerprint();
  setenv("LD_LIBRARY_PATH", "/opt/another/driver", 1);
  EXPECT_NE(driver_fingerprint(), before);
  unsetenv("LD_LIBRARY_PATH");
}
