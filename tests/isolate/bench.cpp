// isolate_bench - what isolation costs on sim:0: a small launch, a launch that is waited for, copies to and from the device.
// Prints the best of rounds inside and isolated, taken in turn; docs/isolation.md quotes them.
#include <algorithm>
#include <cstdio>

#include "tests/isolate/app.h"

namespace {

using namespace tenon::test;

struct Figures {
  double launch_us, waited_us, write_gbs, read_gbs;
};

// One round: 500 launches of 8 floats without waiting, 200 with, five copies of 16 MiB each way.
Figures measure(App& app) {
  tn_queue* q = app.queue("sim:0");
  tn_tensor *a = app.floats(q, 1, 8), *big = app.floats(q, 1, 4 << 20), *out = nullptr;
  uint32_t op = 0;
  tn_op_find(app.rt, "add", 0, &op, &app.diag);
  tn_tensor* in[] = {a, a};
  const auto launch = [&] {
    out = nullptr;
    const tn_call_args args{op, 0, 0, 0, 2, 1, in, &out, nullptr};
    tn_call(q, &args, &app.diag);
    tn_tensor_release(out);
  };
  const auto wait = [&] {
    tn_point point{};
    tn_queue_point(q, &point);
    tn_wait(app.rt, &point, 1, TN_FOREVER, &app.diag);
  };
  launch(), wait();
  Figures f{};
  auto begin = Clock::now();
  for (int i = 0; i < 500; ++i) launch();
  f.launch_us = ms_since(begin) * 1000 / 500;
  wait();
  begin = Clock::now();
  for (int i = 0; i < 200; ++i) launch(), wait();
  f.waited_us = ms_since(begin) * 1000 / 200;
  std::vector<float> data(4 << 20, 2.0f);
  const double bytes = 5.0 * 16 * 1048576;
  begin = Clock::now();
  for (int i = 0; i < 5; ++i) tn_tensor_write(q, big, data.data(), data.size() * 4, &app.diag);
  f.write_gbs = bytes / ms_since(begin) / 1e6;
  begin = Clock::now();
  for (int i = 0; i < 5; ++i) tn_tensor_read(q, big, data.data(), data.size() * 4, &app.diag);
  f.read_gbs = bytes / ms_since(begin) / 1e6;
  app.release_all();
  return f;
}

}  // namespace

int main() {
  App inside("");
  inside.load(SIM_PLUGIN);
  App isolated("dev.tenon.sim");
  isolated.load(SIM_PLUGIN);
  std::vector<Figures> rounds[2];
  for (int i = 0; i < 15; ++i) {
    rounds[0].push_back(measure(inside));
    rounds[1].push_back(measure(isolated));
  }
  std::printf("%-28s %10s %10s\n", "best of 15 rounds", "inside", "isolated");
  const auto row = [&](const char* name, double Figures::*figure, bool most = false) {
    double best[2];
    for (int i = 0; i < 2; ++i) {
      std::vector<double> all;
      for (const Figures& f : rounds[i]) all.push_back(f.*figure);
      best[i] = most ? *std::max_element(all.begin(), all.end()) : *std::min_element(all.begin(), all.end());
    }
    std::printf("%-28s %10.2f %10.2f\n", name, best[0], best[1]);
  };
  row("launch, not waited for, us", &Figures::launch_us);
  row("launch and wait, us", &Figures::waited_us);
  row("write 16 MiB, GB/s", &Figures::write_gbs, true);
  row("read 16 MiB, GB/s", &Figures::read_gbs, true);
  return 0;
}
