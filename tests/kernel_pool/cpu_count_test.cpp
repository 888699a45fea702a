// How many threads a machine gives: quota text, cgroup folders and core numbering, on made-up machines.
#include "kernel/cpu_count.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernel/thread_pool.h"

namespace fs = std::filesystem;
using namespace tenon::kernel;

namespace {

class Machine {
 public:
  Machine() {
    char name[] = "/tmp/tenon_machine_XXXXXX";
    root_ = mkdtemp(name);
  }
  ~Machine() { fs::remove_all(root_); }
  Machine& file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return *this;
  }
  Machine& core(int cpu, int package, int core) {
    const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    return file(at + "physical_package_id", std::to_string(package) + "\n").file(at + "core_id", std::to_string(core) + "\n");
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace

TEST(CpuMax, gives_quota_over_period) {
  EXPECT_DOUBLE_EQ(*parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_DOUBLE_EQ(*parse_cpu_max("20000 100000"), 0.2);
}

TEST(CpuMax, of_no_limit_or_foreign_text_is_no_limit) {
  for (const char* text : {"max 100000\n", "", "100000", "abc def", "100000 0", "-1 100000", "100000 x", "0 100000",
                           "99999999999999999999999 1"}) {
    EXPECT_FALSE(parse_cpu_max(text)) << text;
  }
}

TEST(CgroupLimit, is_the_tightest_of_the_group_and_those_above) {
  Machine m;
  m.file("/proc/self/cgroup", "1:cpu:/old\n0::/a/b\n").file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  m.file("/sys/fs/cgroup/a/cpu.max", "300000 100000\n").file("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_DOUBLE_EQ(*cgroup_cpu_limit(m.root()), 3.0);
}

TEST(CgroupLimit, is_absent_without_a_unified_hierarchy) {
  Machine m;
  EXPECT_FALSE(cgroup_cpu_limit(m.root()));
  m.file("/proc/self/cgroup", "4:memory:/x\n");
  EXPECT_FALSE(cgroup_cpu_limit(m.root()));
}

TEST(PhysicalCores, counts_two_hyperthreads_once_and_equal_numbers_of_two_sockets_twice) {
  Machine m;
  m.core(0, 0, 0).core(1, 0, 1).core(2, 0, 0).core(3, 1, 0);
  EXPECT_EQ(physical_cores({0, 1, 2, 3}, m.root()), 3u);
  EXPECT_EQ(physical_cores({0, 2}, m.root()), 1u);
}

TEST(PhysicalCores, without_topology_counts_logical_ones) {
  Machine m;
  EXPECT_EQ(physical_cores({0, 1, 5}, m.root()), 3u);
}

TEST(ThreadCount, is_cut_to_the_quota_rounded_up_and_is_never_zero) {
  Machine m;
  m.file("/proc/self/cgroup", "0::/\n").file("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(thread_count({0, 1, 2, 3}, m.root()), 2u);
  EXPECT_EQ(thread_count({0}, m.root()), 1u);
  EXPECT_EQ(thread_count({}, m.root()), 1u);
  m.file("/sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(thread_count({0, 1, 2, 3}, m.root()), 1u);
}

TEST(ThreadCount, of_this_machine_lies_within_its_affinity) {
  EXPECT_GE(default_thread_count(), 1u);
  EXPECT_LE(default_thread_count(), allowed_cpus().size());
}
