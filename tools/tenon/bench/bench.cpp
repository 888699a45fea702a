// `tenon bench SUITE`.
#include <cstdlib>
#include <memory>
#include <tenon/core/error.hpp>

#include "tools/tenon/bench/bench.h"
#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {
namespace {

struct Suite { const char* name; void (*run)(Bench&); };
constexpr Suite kSuites[] = {{"dispatch", bench_dispatch}, {"gemm", bench_gemm}, {"elementwise", bench_elementwise},
                             {"floor", bench_floor}, {"train", bench_train}};

struct Options {
  std::string suite = "all";
  BenchOptions bench;
  std::vector<std::string> need;
};

// A rival whose idle OpenMP threads spin takes a core from whoever is measured next. Read by OpenMP when it is loaded, which
// is later: in a rival's process, or with a plugin.
void let_idle_threads_sleep() { setenv("OMP_WAIT_POLICY", "PASSIVE", 0); }

int run(Context& context, const Options& options) {
  let_idle_threads_sleep();
  std::vector<std::string> names{"all"};
  for (const Suite& s : kSuites) names.push_back(s.name);
  if (std::find(names.begin(), names.end(), options.suite) == names.end()) {
    const std::string near = nearest_name(options.suite, names.data(), names.size());
    throw Failure(kUsage, "TN-CLI-009", "no suite is called \"" + options.suite + "\"", "tenon bench", "suites: dispatch, gemm, elementwise, floor, train, all",
                  near.empty() ? "tenon bench all" : "tenon bench " + near);
  }
  if (std::string(TENON_BUILD_TYPE) != "Release") print_warning(context, "this is a " TENON_BUILD_TYPE " build; figures of the preset `release` are the ones that count");
  BenchOptions bench_options = options.bench;
  bench_options.need.insert(options.need.begin(), options.need.end());
  Bench bench(context, bench_options);
  for (const Suite& s : kSuites)
    if (options.suite == "all" || options.suite == s.name) s.run(bench);
  if (bench.cases() == 0) print_warning(context, "no case's name contains \"" + options.bench.only + "\"");
  return kDone;
}

Run setup(Args& args) {
  auto options = std::make_shared<Options>();
  args.positional("SUITE", &options->suite, "dispatch, gemm, elementwise, floor, train or all", false);
  args.option("--case", &options->bench.only, "only cases whose name contains this");
  args.option("--pairs", &options->bench.pairs, "samples of each contender, taken in turn", 1, 100000);
  args.option("--need", &options->need, "fail when this rival is absent: onednn, torch, memcpy, handfused, tiles");
  args.flag("--alone", &options->bench.alone, "without rivals");
  args.option("--torch-python", &options->bench.torch_python, "a Python interpreter with torch, for the rivals of `train`");
  return [options](Context& context) { return run(context, *options); };
}

}  // namespace

extern const Command command_bench{"bench", "Measure Tenon beside its rivals.",
                                   "tenon bench dispatch\ntenon bench gemm --case f32.1024 --json\ntenon bench elementwise --need onednn --need handfused\ntenon bench all --json > figures.jsonl",
                                   kUsesNothing, setup};

}  // namespace tenon::cli
