// Children that crash, hang, leave or talk nonsense harm nobody, and what they said is kept for as long as it is true.
#include <csignal>
#include <chrono>
#include <thread>

#include "tests/doctor/fixture.h"

namespace tenon::cli {
namespace {

class Ask : public Machine {
 protected:
  // `body` speaks on descriptor 3 through the function say.
  AskOptions child(const std::string& body) {
    log = root + "/starts";
    AskOptions options;
    options.program = write("/child", "#!/bin/sh\nsay() { printf '%s\\n' \"$1\" >&3; }\necho start >> " + log + "\n" + body + "\n", 0755);
    options.timeout_ms = 1000;
    return options;
  }
  int starts() const { return Script{"", log}.starts(); }
  DriverAnswer ask(const AskOptions& options) { return ask_drivers({{"opencl", {root + "/libx.so"}, "x.icd"}}, options).at(0); }
  Fault only_fault(const DriverAnswer& answer) {
    EXPECT_EQ(answer.faults.size(), 1u) << answer.rows;
    return answer.faults.empty() ? Fault{} : answer.faults[0];
  }
  std::string log;
};

constexpr const char* kDevice = R"(say '{"device":{"name":"Card","memory_bytes":206158430208,"software":true}}'; say '{"stage":"end"}'; say '{"done":true}')";

TEST_F(Ask, hears_devices) {
  const DriverAnswer a = ask(child(kDevice));
  ASSERT_EQ(a.devices.size(), 1u);
  EXPECT_EQ(a.devices[0].name, "Card");
  EXPECT_EQ(a.devices[0].memory_bytes, uint64_t{192} << 30);
  EXPECT_TRUE(a.devices[0].software && a.faults.empty());
}

TEST_F(Ask, a_crash_has_its_signal_and_stage) {
  const Fault f = only_fault(ask(child("say '{\"stage\":\"start\"}'; kill -SEGV $$; sleep 9")));
  EXPECT_EQ(f.reason, Reason::driver_crashed);
  EXPECT_EQ(f.why, "SIGSEGV in stage start");
}

TEST_F(Ask, an_exit_without_an_end_record_is_a_crash_whatever_the_status) {
  for (const char* status : {"0", "7"}) {
    const Fault f = only_fault(ask(child("say '{\"stage\":\"load\"}'; exit " + std::string(status))));
    EXPECT_EQ(f.reason, Reason::driver_crashed);
    EXPECT_EQ(f.more.at("status"), status);
  }
}

TEST_F(Ask, a_hang_is_ended_and_what_it_started_with_it) {
  const auto begin = std::chrono::steady_clock::now();
  const Fault f = only_fault(ask(child("say '{\"stage\":\"devices\"}'; sleep 60 & echo $! > " + root + "/grandchild; wait")));
  EXPECT_EQ(f.reason, Reason::driver_timeout);
  EXPECT_EQ(f.why, "1 s passed in stage devices");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  std::ifstream in(root + "/grandchild");
  pid_t grandchild = 0;
  in >> grandchild;
  ASSERT_GT(grandchild, 0);
  std::string state;  // gone, or dead and not collected yet
  for (int i = 0; i < 200 && state != "gone" && state != "Z"; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string number, name;
    if (!(stat >> number >> name >> state)) state = "gone";
  }
  EXPECT_TRUE(state == "gone" || state == "Z") << state;
}

TEST_F(Ask, each_stage_has_the_limit_for_itself) {
  const DriverAnswer a = ask(child("for s in load start devices; do say \"{\\\"stage\\\":\\\"$s\\\"}\"; sleep 0.4; done; " + std::string(kDevice)));
  EXPECT_EQ(a.devices.size(), 1u) << a.rows;
}

TEST_F(Ask, nonsense_and_floods_are_left_out) {
  const DriverAnswer a = ask(child("say 'hello'; say '{\"stage\":\"<b>\"}'; say '[1]'; say '{\"device\":3}'; say '{\"fault\":null}'; head -c 3000000 /dev/zero >&3; " + std::string("exit 0")));
  EXPECT_EQ(a.faults.back().reason, Reason::driver_crashed);
  EXPECT_EQ(a.faults.back().why.find("<b>"), std::string::npos);
  EXPECT_LT(a.rows.size(), size_t{2} << 20);
}

TEST_F(Ask, many_at_once_take_the_time_of_one) {
  AskOptions options = child("say '{\"stage\":\"start\"}'; sleep 60");
  std::vector<DriverJob> jobs;
  for (const char* name : {"/a", "/b", "/c", "/d", "/e", "/f"}) jobs.push_back({"vulkan", {name}, ""});
  const auto begin = std::chrono::steady_clock::now();
  for (const DriverAnswer& a : ask_drivers(jobs, options)) EXPECT_EQ(only_fault(a).reason, Reason::driver_timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(6 * 1000)) << "one after the other";
}

TEST_F(Ask, a_program_that_is_not_there_is_said) {
  AskOptions options;
  options.program = root + "/nothing";
  const Fault f = only_fault(ask(options));
  EXPECT_EQ(f.reason, Reason::init_failed);
  EXPECT_EQ(f.more.at("code"), "ENOENT");
}

TEST_F(Ask, no_descriptor_of_this_process_reaches_the_child) {
  const int fd = dup2(0, 77);
  const DriverAnswer a = ask(child("test -e /proc/self/fd/77 && exit 9; " + std::string(kDevice)));
  close(fd);
  EXPECT_TRUE(a.faults.empty()) << a.rows;
}

class Kept : public Ask {
 protected:
  AskOptions keeping(const std::string& body) {
    AskOptions options = child(body);
    options.folder = root + "/cache";
    options.identity = "machine 1";
    return options;
  }
};

TEST_F(Kept, a_second_look_starts_nothing) {
  const AskOptions options = keeping(kDevice);
  EXPECT_FALSE(ask(options).kept);
  const DriverAnswer again = ask(options);
  EXPECT_TRUE(again.kept);
  EXPECT_EQ(again.devices.size(), 1u);
  EXPECT_EQ(starts(), 1);
}

TEST_F(Kept, asked_again_when_the_machine_or_a_library_changes_or_somebody_wants_it) {
  const std::string used = write("/libused.so.1", "one");
  struct stat info {};
  stat(used.c_str(), &info);
  const std::string stamp = std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "." + std::to_string(info.st_ino);
  AskOptions options = keeping("say '{\"library\":\"" + used + "\",\"stamp\":\"" + stamp + "\"}'; " + kDevice);
  ask(options);
  EXPECT_TRUE(ask(options).kept);
  options.again = true;
  EXPECT_FALSE(ask(options).kept);
  options.again = false;
  options.identity = "machine 2";
  EXPECT_FALSE(ask(options).kept);
  EXPECT_TRUE(ask(options).kept);
  write("/libused.so.1", "other");
  EXPECT_FALSE(ask(options).kept);
}

TEST_F(Kept, a_driver_that_crashed_is_not_started_again_until_its_file_changes) {
  write("/libx.so", "bad");
  const AskOptions options = keeping("say '{\"stage\":\"load\"}'; kill -ABRT $$");
  EXPECT_EQ(only_fault(ask(options)).reason, Reason::driver_crashed);
  const DriverAnswer again = ask(options);
  EXPECT_TRUE(again.kept);
  EXPECT_EQ(only_fault(again).why, "SIGABRT in stage load");
  write("/libx.so", "mended");
  EXPECT_FALSE(ask(options).kept);
}

TEST_F(Kept, what_may_pass_is_asked_again) {
  const auto kept = [&](const std::string& reason, const std::string& more) {
    const AskOptions options = keeping("say '{\"fault\":{\"reason\":\"" + reason + "\",\"why\":\"\",\"more\":" + more + "}}'; say '{\"done\":true}'");
    ask(options);
    return ask(options).kept;
  };
  for (const char* reason : {"init_failed", "no_permission", "abi_mismatch"}) EXPECT_FALSE(kept(reason, "{}")) << reason;
  EXPECT_FALSE(kept("library_missing", R"({"library":"libhwloc.so.15","needed_by":"libx.so"})"));
  EXPECT_TRUE(kept("library_missing", R"({"library":"libx.so"})")) << "until a folder of libraries changes";
}

TEST_F(Kept, a_folder_that_others_may_write_is_not_believed) {
  const AskOptions options = keeping(kDevice);
  ask(options);
  chmod(options.folder.c_str(), 0777);
  EXPECT_FALSE(ask(options).kept);
}

TEST_F(Kept, a_file_that_is_cut_or_foreign_is_none) {
  const AskOptions options = keeping(kDevice);
  ask(options);
  std::filesystem::path file = std::filesystem::directory_iterator(options.folder)->path();
  for (const char* text : {"", "{}", "\n", "{\"format\":\"tenon-drivers 1\"}\n"}) {
    std::ofstream(file) << text;
    EXPECT_FALSE(ask(options).kept) << text;
  }
}

}  // namespace
}  // namespace tenon::cli
