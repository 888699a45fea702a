// Taking samples in turn, and the rows.
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/tenon/bench/bench.h"
#include "tools/tenon/commands.h"
#include "tools/tenon/common/failure.h"
#include "tools/tenon/common/json.h"

namespace tenon::cli {
namespace {

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  utsname names{};
  uname(&names);
  return names.machine;
}

std::string folder_of_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

double in_unit(const Case& c, double ns) {
  if (c.unit == "ns") return ns;
  if (c.unit == "ms") return ns / 1e6;
  return c.unit == "img/s" ? c.work * 1e9 / ns : c.work / ns;  // FLOPs or bytes a nanosecond are 10^9 a second
}

// Linear between the two neighbours.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f", value);
  return text;
}

// Work on one thread is measured on one and the same processor: on a shared host two processors differ in speed for minutes,
// and each process tends to stay where it is. At the end everybody may run everywhere again.
class OnOneProcessor {
 public:
  OnOneProcessor(const Case& c, const std::vector<pid_t>& processes) : processes_(c.threads == 1 ? processes : std::vector<pid_t>()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) processes_.clear();
    for (const pid_t p : processes_) sched_setaffinity(p, sizeof one, &one);
  }
  ~OnOneProcessor() {
    for (const pid_t p : processes_) sched_setaffinity(p, sizeof before_, &before_);
  }
  OnOneProcessor(const OnOneProcessor&) = delete;

 private:
  std::vector<pid_t> processes_;  // 0: the calling thread
  cpu_set_t before_{};
};

bool is_time(const Case& c) { return c.unit == "ns" || c.unit == "ms"; }

// How many times as fast `own` is as `other`: the median over pairs taken one right after the other. On a shared machine
// whose speed changes between the pairs this says more than the ratio of two medians. 0: no pairs.
double times_as_fast(const Case& c, const std::vector<double>& own, const std::vector<double>& other) {
  if (own.empty() || own.size() != other.size()) return 0;
  std::vector<double> ratios;
  for (size_t k = 0; k < own.size(); ++k) ratios.push_back(is_time(c) ? other[k] / own[k] : own[k] / other[k]);
  std::sort(ratios.begin(), ratios.end());
  return quantile(ratios, 0.5);
}

JsonRow environment(const Case& c, const std::string& note) {
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = -1;
  JsonRow env;
  env.add("cpu", processor()).add("cores", static_cast<int64_t>(sysconf(_SC_NPROCESSORS_ONLN))).add("threads", c.threads);
  env.add("load1", load[0]).add("build", TENON_BUILD_TYPE).add("version", TENON_VERSION);
  if (!note.empty()) env.add("rival", note);
  return env;
}

}  // namespace

void Bench::use_threads(int threads) {
  set_default_runtime(Runtime({.threads = static_cast<uint32_t>(threads)}));
  set_default_device(default_runtime().device("cpu:0"));
}

RivalProcess* Bench::rival(const std::string& name) {
  if (options_.alone) return nullptr;
  if (auto it = rivals_.find(name); it != rivals_.end()) return it->second.get();
  const std::string bin = folder_of_program();
  std::vector<std::string> command{bin + "/tenon_rival_" + name};
  if (name == "memcpy" || name == "handfused" || name == "tiles") command = {bin + "/tenon_rival_native", name};
  if (name == "torch-train") command = {options_.torch_python, bin + "/../share/tenon/bench/torch_train.py"};
  std::string why = "no interpreter was named with --torch-python";
  std::unique_ptr<RivalProcess> process;
  // Debian's OpenBLAS does not know newer processors and falls back to SSE3: a rival must not be slowed by that.
  if (!command[0].empty()) process = RivalProcess::start(command, {"OPENBLAS_CORETYPE=SKYLAKEX"}, &why);
  if (!process) {
    if (options_.need.count(name))
      throw Failure(kMissing, "TN-CLI-012", "the rival " + name + " is absent", "tenon bench", why, "install its library, then configure and build again");
    print_warning(context_, "no rival " + name + ": " + why);
  }
  return (rivals_[name] = std::move(process)).get();
}

Bench::Samples Bench::run(const Case& c) {
  if (!wants(c.name)) return {};
  ++cases_;
  struct Contender { std::string impl; RivalProcess* process; std::vector<double> values; std::string note; };
  std::vector<Contender> all;
  std::optional<bench::Sampler> own;
  if (c.tenon) own.emplace(c.tenon()), all.push_back({"tenon", nullptr, {}, ""});
  for (const std::string& name : c.rivals) {
    RivalProcess* process = rival(name);
    std::string why;
    if (process && process->open(c.name, &why)) all.push_back({name.substr(0, name.find('-')), process, {}, process->info()});
    else if (process) print_warning(context_, c.name + ": " + name + ": " + why);
  }
  std::vector<pid_t> processes;
  const bool own_threads = std::count(c.rivals.begin(), c.rivals.end(), "torch-train") != 0;  // it takes the better number of threads itself
  for (const Contender& contender : all)
    if (!own_threads) processes.push_back(contender.process ? contender.process->id() : 0);
  std::optional<OnOneProcessor> pinned(std::in_place, c, processes);
  const int64_t warm_up = std::min<int64_t>(3, options_.pairs);
  for (int64_t round = 0; round < options_.pairs + warm_up; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      Contender& contender = all[round % 2 ? all.size() - 1 - i : i];  // nobody always comes first
      // Threads of the contender before spin for some milliseconds before they sleep, on cores that this one wants.
      if (c.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::optional<double> ns = contender.process ? contender.process->sample() : own->sample();
      if (ns && round >= warm_up) contender.values.push_back(in_unit(c, *ns));
    }
  }
  pinned.reset();
  Samples samples;
  for (const Contender& contender : all) {
    samples[contender.impl] = contender.values;
    const double times = own && contender.process ? times_as_fast(c, all[0].values, contender.values) : 0;
    if (contender.values.empty()) print_warning(context_, c.name + ": " + contender.impl + " gave no figure");
    else row(c, contender.impl, contender.values, contender.note, times);
  }
  return samples;
}

void Bench::derived(const Case& c, const std::string& impl, const std::vector<double>& samples) {
  if (samples.empty() || !wants(c.name)) return;
  ++cases_;
  row(c, impl, samples, "computed from floor.fma_f32 and floor.copy", 0);
}

void Bench::row(const Case& c, const std::string& impl, std::vector<double> v, const std::string& note, double times) {
  std::sort(v.begin(), v.end());
  const double median = quantile(v, 0.5);
  if (context_.json) {
    JsonRow row;
    row.add("case", c.name).add("impl", impl).add("n", v.size()).add("min", v.front()).add("median", median).add("p90", quantile(v, 0.9));
    JsonRow env = environment(c, note);
    if (times > 0) env.add("tenon_is_times_as_fast", times);
    context_.line(row.add("unit", c.unit).add("env", env).text());
    std::fflush(stdout);
    return;
  }
  char text[256];
  if (!headed_) {
    std::snprintf(text, sizeof text, "%-26s %-10s %10s %10s %10s  %-8s %s", "CASE", "IMPL", "MIN", "MEDIAN", "P90", "UNIT", "TENON IS");
    context_.line(context_.bold(text));
    headed_ = true;
  }
  std::string ratio;
  if (times > 0) std::snprintf(text, sizeof text, "%.2f x as fast", times), ratio = text;
  std::snprintf(text, sizeof text, "%-26s %-10s %10s %10s %10s  %-8s %s", c.name.c_str(), impl.c_str(), figure(v.front()).c_str(), figure(median).c_str(), figure(quantile(v, 0.9)).c_str(), c.unit.c_str(), ratio.c_str());
  context_.line(text);
  std::fflush(stdout);
}

}  // namespace tenon::cli
