// Tables and caches are bounded: a million shapes and a hundred thousand optimizer steps cost no memory. Times are printed,
// not asserted: the last tenth should take about as long as the first.
#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

namespace {

long resident_mib() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * 4 / 1024;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Every rank-8 shape of at most 4,096 elements, in lexicographic order, until `count` were seen.
template <class F>
bool each_shape(std::vector<int64_t>& dims, int64_t room, int64_t& count, const F& f) {
  if (dims.size() == 8) {
    f(dims);
    return --count > 0;
  }
  for (int64_t d = 1; d <= room; ++d) {
    dims.push_back(d);
    const bool go_on = each_shape(dims, room / d, count, f);
    dims.pop_back();
    if (!go_on) return false;
  }
  return true;
}

TEST(Bounded, a_million_shapes_cost_no_memory) {
  constexpr int64_t kShapes = 1000000;
  tenon::NoGrad off;
  int64_t seen = 0, left = kShapes;
  long after_first = 0, most = 0;
  double began = seconds(), first_tenth = 0, last_tenth = 0;
  std::vector<int64_t> dims;
  each_shape(dims, 4096, left, [&](const std::vector<int64_t>& shape) {
    const tenon::Tensor x = tenon::empty(tenon::Shape(std::span<const int64_t>(shape)));
    const tenon::Tensor y = x + x;
    if (++seen % (kShapes / 10) != 0) return;
    const double now = seconds();
    if (seen == kShapes / 10) first_tenth = now - began, after_first = resident_mib();
    last_tenth = now - began;
    began = now;
    most = std::max(most, resident_mib());
  });
  EXPECT_EQ(seen, kShapes);
  std::printf("first tenth %.2f us a shape, last tenth %.2f us a shape, memory %ld MiB then at most %ld MiB\n", first_tenth / kShapes * 1e7,
              last_tenth / kShapes * 1e7, after_first, most);
  EXPECT_LE(most - after_first, 256);
}

TEST(Bounded, changing_scalars_make_no_plans) {
  constexpr int kSteps = 100000;
  tenon::Tensor p = tenon::ones({64}), g = tenon::ones({64});
  p.set_requires_grad(true);
  tenon::optim::Adam adam({p}, {.lr = 1e-3});
  long after_first = 0;
  double began = seconds(), first_tenth = 0, last_tenth = 0;
  for (int step = 1; step <= kSteps; ++step) {
    adam.groups()[0].lr = 1e-3 / step;
    p.set_grad(g);
    adam.step();
    if (step % (kSteps / 10) != 0) continue;
    const double now = seconds();
    if (step == kSteps / 10) first_tenth = now - began, after_first = resident_mib();
    last_tenth = now - began;
    began = now;
  }
  std::printf("first tenth %.0f ns a step, last tenth %.0f ns a step\n", first_tenth / kSteps * 1e10, last_tenth / kSteps * 1e10);
  EXPECT_LE(resident_mib() - after_first, 16);
}

}  // namespace
