// Figures of the CPU kernels, one JSON row each: the kernel's plan is prepared once and launched many times.
//   bench_cpu [threads] [part of a name]
#include "tests/cpu/harness.h"

#include <sys/mman.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace tenon::test;
namespace {

double wall_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// One thread is timed by its own CPU clock, which other processes disturb less.
bool cpu_clock = true;
double seconds_now() {
  if (!cpu_clock) return wall_now();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
struct Time { double best, median; };
// ns of one call: best and median of batches of `inner` calls over about a third of a second.
template <class F>
Time measure(F&& f, int inner) {
  std::vector<double> t;
  f();
  for (const double end = wall_now() + 0.35; wall_now() < end || t.size() < 5;) {
    const double b = seconds_now();
    for (int i = 0; i < inner; ++i) f();
    t.push_back((seconds_now() - b) / inner * 1e9);
  }
  std::sort(t.begin(), t.end());
  return {t[0], t[t.size() / 2]};
}
float* floats(int64_t n) {
  const size_t bytes = (size_t(n) * 4 + (2u << 20)) >> 21 << 21;
  void* p = std::aligned_alloc(2u << 20, std::max<size_t>(bytes, 2u << 20));
  madvise(p, bytes, MADV_HUGEPAGE);
  float* x = static_cast<float*>(p);
  for (int64_t i = 0; i < n; ++i) x[i] = float(i % 1009) * 0.004f - 2;
  return x;
}
const char* filter = "";
uint32_t threads = 1;
bool wanted(const char* name) { return std::strstr(name, filter) != nullptr; }
void report(const char* name, const char* impl, Time t, double amount, const char* unit, double est_ns = 0) {
  std::printf("{\"case\":\"%s\",\"impl\":\"%s\",\"threads\":%u,\"min_ns\":%.1f,\"median_ns\":%.1f,\"est_ns\":%.1f,\"rate\":%.2f,\"unit\":\"%s\"}\n", name, impl, threads, t.best, t.median, est_ns, amount / t.best, unit);
  std::fflush(stdout);
}
void kernel(Pack& pack, const char* name, const char* row, Op& op, std::vector<void*> views, double amount, const char* unit, int inner = 1) {
  if (!wanted(name)) return;
  double est_ns = 0;
  if (std::string why = pack.refusal(row, op, &est_ns); !why.empty()) {
    std::printf("{\"case\":\"%s\",\"refused\":\"%s\"}\n", name, row);
    return;
  }
  const tn_kernel_plan* plan = pack.prepare(row, op);
  void* work = plan->workspace_bytes ? floats(int64_t(plan->workspace_bytes / 4 + 16)) : nullptr;
  tn_view v[16] = {};
  for (size_t i = 0; i < views.size(); ++i) v[i].host = views[i];
  v[views.size()].host = work;
  tn_launch l{v, uint32_t(views.size()), uint32_t(op.push.size() * 8), op.push.data(), nullptr, nullptr, nullptr};
  report(name, row, measure([&] { plan->launch(plan, &l); }, inner), amount, unit, est_ns);
  std::free(work);
  pack.retire(row, plan);
}
// x*0.5*(1+tanh(0.79788*(x+0.044715*x^3))) + b
Prog gelu() {
  Prog p;
  const uint32_t f = TN_F32;
  const uint16_t x = p.in(0, f), b = p.in(1, f), c0 = p.slot(0, f), c1 = p.slot(1, f), one = p.slot(2, f), half = p.slot(3, f);
  const uint16_t x2 = p.add(TN_OP_MUL, f, x, x), x3 = p.add(TN_OP_MUL, f, x2, x), m = p.add(TN_OP_MUL, f, x3, c0), a = p.add(TN_OP_ADD, f, x, m);
  const uint16_t t = p.add(TN_OP_TANH, f, p.add(TN_OP_MUL, f, a, c1)), u = p.add(TN_OP_ADD, f, t, one);
  const uint16_t h = p.add(TN_OP_MUL, f, x, half);
  return p.out(p.add(TN_OP_ADD, f, p.add(TN_OP_MUL, f, h, u), b));
}
// The same formula in one loop that the compiler vectorises, with the kernel's own way to tanh.
inline float tanh_loop(float x) {
  const float a = std::fabs(x), c = std::min(a, 10.0f) * 2;
  const float q = std::nearbyint(c * 1.44269504f);
  float r = c - q * 0.693359375f;
  r = r + q * 2.12194440e-4f;
  float g = 1.985783601e-04f;
  g = g * r + 1.393370796e-03f, g = g * r + 8.333360776e-03f, g = g * r + 4.166646302e-02f, g = g * r + 1.666666716e-01f, g = g * r + 0.5f;
  const float p = g * (r * r) + r;
  const int32_t bits = (int32_t(q) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, 4);
  const float t = p * power + (power - 1), y = t / (t + 2);
  return std::copysign(a < 1e-4f ? a : y, x);
}
__attribute__((noinline, optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")))
void gelu_loop(const float* __restrict x, const float* __restrict b, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v * 0.5f * (1 + tanh_loop(0.79788f * (v + 0.044715f * v * v * v))) + b[i];
  }
}

void pointwise(Pack& pack, float* x, float* y, float* z) {
  Prog add;
  add.out(add.add(TN_OP_ADD, TN_F32, add.in(0, TN_F32), add.in(1, TN_F32)));
  for (int64_t n : {16, 13, 1024}) {
    Op op(TN_OPID_POINTWISE);
    op.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, add);
    const std::string name = "add_" + std::to_string(n);
    kernel(pack, name.c_str(), "cpu.pointwise.dense", op, {x, y, z}, double(n), "elements/ns", 10000);
  }
  for (int64_t n : {int64_t{1} << 14, int64_t{1} << 18, int64_t{1} << 23}) {
    Prog p = gelu();
    Op op(TN_OPID_POINTWISE);
    op.in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n}).program(TN_KEY_PROGRAM, p).scalar(0.044715f).scalar(0.79788f).scalar(1.0f).scalar(0.5f);
    const std::string name = "gelu_chain_" + std::to_string(n);
    kernel(pack, name.c_str(), "cpu.pointwise.dense", op, {x, y, z}, double(n), "elements/ns");
    if (wanted(name.c_str()) && threads == 1) report(name.c_str(), "fused loop", measure([&] { gelu_loop(x, y, z, n); }, 1), double(n), "elements/ns");
  }
  for (uint32_t f : {TN_OP_TANH, TN_OP_EXP, TN_OP_SQRT, TN_OP_MUL}) {
    Prog p;
    const uint16_t v = p.in(0, TN_F32);
    p.out(p.add(f, TN_F32, v, v));
    Op op(TN_OPID_POINTWISE);
    op.in(TN_F32, {4096}).out(TN_F32, {4096}).program(TN_KEY_PROGRAM, p);
    kernel(pack, ("function_" + std::to_string(f)).c_str(), "cpu.pointwise.dense", op, {x, z}, 4096, "elements/ns", 20);
  }
  const int64_t big = 16 << 20;
  if (wanted("memcpy_64MiB")) report("memcpy_64MiB", "libc", measure([&] { std::memcpy(z, x, size_t(big) * 4); }, 1), double(big) * 8, "GB/s");
  Op copy(TN_OPID_COPY);
  copy.in(TN_F32, {big}).out(TN_F32, {big});
  kernel(pack, "copy_64MiB", "cpu.copy", copy, {x, z}, double(big) * 8, "GB/s");
  Op transpose(TN_OPID_COPY);
  transpose.in(Op::with_strides(TN_F32, {4096, 4096}, {1, 4096})).out(TN_F32, {4096, 4096});
  kernel(pack, "transpose_4096", "cpu.copy", transpose, {x, z}, double(big) * 8, "GB/s");
}
void reductions(Pack& pack, float* x, float* z) {
  for (int64_t axis : {0, 1}) {
    Op op(TN_OPID_REDUCE);
    op.in(TN_F32, {4096, 4096}).out(TN_F32, {4096}).ints(TN_KEY_AXES, {axis}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
    kernel(pack, axis ? "sum_rows_4096" : "sum_columns_4096", "cpu.reduce", op, {x, z}, 64.0 * (1 << 20), "GB/s");
    Op small(TN_OPID_REDUCE);
    small.in(TN_F32, {64, 256}).out(TN_F32, {axis ? 64 : 256}).ints(TN_KEY_AXES, {axis}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
    kernel(pack, axis ? "sum_rows_64x256" : "sum_columns_64x256", "cpu.reduce", small, {x, z}, 65536.0, "GB/s", 100);
    Op top(TN_OPID_REDUCE);
    top.in(TN_F32, {64, 256}).out(TN_F32, {axis ? 64 : 256}).ints(TN_KEY_AXES, {axis}).i64(TN_KEY_MONOID, TN_MONOID_MAX);
    kernel(pack, axis ? "max_rows_64x256" : "max_columns_64x256", "cpu.reduce", top, {x, z}, 65536.0, "GB/s", 100);
  }
}
void bias_gradients(Pack& pack, float* x, float* z) {
  for (auto [c, h] : {std::pair<int64_t, int64_t>{32, 28}, {64, 14}}) {
    Op op(TN_OPID_REDUCE);
    op.in(Op::with_strides(TN_F32, {128, c, h, h}, {h * h * c, 1, h * c, c})).out(TN_F32, {c}).ints(TN_KEY_AXES, {0, 2, 3}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
    kernel(pack, ("bias_128x" + std::to_string(c)).c_str(), "cpu.reduce", op, {x, z}, double(128 * c * h * h) * 4, "GB/s");
  }
  Op op(TN_OPID_REDUCE);
  op.in(TN_F32, {128, 512}).out(TN_F32, {512}).ints(TN_KEY_AXES, {0}).i64(TN_KEY_MONOID, TN_MONOID_SUM);
  kernel(pack, "bias_128x512", "cpu.reduce", op, {x, z}, 128 * 512 * 4, "GB/s", 20);
}
void random(Pack& pack, float* z) {
  Prog p;
  const uint16_t at = p.add(TN_OP_ADD, TN_U64, p.slot(1, TN_U64), p.add(TN_OP_INDEX, TN_U64, TN_INDEX_FLAT));
  const uint16_t word = p.add(TN_OP_PHILOX, TN_U32, at, p.slot(0, TN_U64), 0), top = p.add(TN_OP_SHR, TN_U32, word, p.slot(2, TN_U32));
  p.out(p.add(TN_OP_MUL, TN_F32, p.add(TN_OP_CAST, TN_F32, top), p.slot(3, TN_F32)));
  Op op(TN_OPID_POINTWISE);
  op.out(TN_F32, {1 << 20}).ints(TN_KEY_DIMS, {1 << 20}).program(TN_KEY_PROGRAM, p).scalar(uint64_t{7}).scalar(uint64_t{1}).scalar(uint32_t{8}).scalar(0x1p-24f);
  kernel(pack, "uniform_1Mi", "cpu.pointwise.dense", op, {z}, 1 << 20, "elements/ns");
}
void products(Pack& pack, float* x, float* y, float* z) {
  for (int64_t n : {8, 16, 32, 64}) {
    Op op(TN_OPID_MATMUL);
    op.in(TN_F32, {n, n}).in(TN_F32, {n, n}).out(TN_F32, {n, n});
    const std::string name = "matmul_f32_" + std::to_string(n);
    kernel(pack, name.c_str(), "cpu.matmul.micro_f32", op, {x, y, z}, 2.0 * double(n * n * n), "GFLOP/s", 1000);
  }
  for (int64_t n : {64, 128, 512, 1024, 2048}) {
    Op op(TN_OPID_MATMUL);
    op.in(TN_F32, {n, n}).in(TN_F32, {n, n}).out(TN_F32, {n, n});
    kernel(pack, ("matmul_f32_" + std::to_string(n)).c_str(), "cpu.matmul.f32", op, {x, y, z}, 2.0 * double(n * n * n), "GFLOP/s");
    Op b(TN_OPID_MATMUL);
    b.in(TN_BF16, {n, n}).in(TN_BF16, {n, n}).out(TN_F32, {n, n});
    kernel(pack, ("matmul_bf16_" + std::to_string(n)).c_str(), "cpu.matmul.amx_bf16", b, {x, y, z}, 2.0 * double(n * n * n), "GFLOP/s");
    Op i(TN_OPID_MATMUL);
    i.in(TN_U8, {n, n}).in(TN_I8, {n, n}).out(TN_I32, {n, n});
    kernel(pack, ("matmul_u8s8_" + std::to_string(n)).c_str(), "cpu.matmul.amx_u8s8", i, {x, y, z}, 2.0 * double(n * n * n), "GOP/s");
  }
}
void norms(Pack& pack, float* x, float* y, float* z) {
  for (int64_t n : {64, 4096}) {
    Op s(TN_OPID_SOFTMAX);
    s.in(TN_F32, {n, n}).out(TN_F32, {n, n}).i64(TN_KEY_AXIS, -1);
    kernel(pack, ("softmax_" + std::to_string(n)).c_str(), "cpu.softmax", s, {x, z}, double(n * n) * 8, "GB/s");
    Op l(TN_OPID_LAYER_NORM);
    l.in(TN_F32, {n, n}).in(TN_F32, {n}).in(TN_F32, {n}).out(TN_F32, {n, n}).out(TN_F32, {n, 1}).out(TN_F32, {n, 1}).i64(TN_KEY_AXIS, -1).f64(TN_KEY_EPSILON, 1e-5);
    kernel(pack, ("layer_norm_" + std::to_string(n)).c_str(), "cpu.layer_norm", l, {x, y, y + 8192, z, y + 16384, y + 32768}, double(n * n) * 8, "GB/s");
  }
}

tn_type images(int64_t n, int64_t c, int64_t h, bool last = true) {
  return last ? Op::with_strides(TN_F32, {n, c, h, h}, {h * h * c, 1, h * c, c}) : Op::dense(TN_F32, {n, c, h, h});
}
void batch_norms(Pack& pack, float* x, float* y, float* z) {
  for (bool last : {true, false})
    for (auto [c, h] : {std::pair<int64_t, int64_t>{32, 28}, {64, 14}}) {
      const tn_type t = images(128, c, h, last);
      const std::string shape = "_128x" + std::to_string(c) + "x" + std::to_string(h) + (last ? "_last" : "_first");
      const double bytes = 128.0 * double(c * h * h) * 4;
      Op f(TN_OPID_BATCH_NORM), g(TN_OPID_BATCH_NORM_GRAD), i(TN_OPID_BATCH_NORM_INFER);
      f.in(t).in(TN_F32, {c}).in(TN_F32, {c}).out(t).out(TN_F32, {c}).out(TN_F32, {c}).f64(TN_KEY_EPSILON, 1e-5);
      kernel(pack, ("batch_norm" + shape).c_str(), "cpu.batch_norm", f, {x, y, y + 64, z, y + 128, y + 192}, bytes * 2, "GB/s");
      i.in(t).in(TN_F32, {c}).in(TN_F32, {c}).in(TN_F32, {c}).in(TN_F32, {c}).out(t).f64(TN_KEY_EPSILON, 1e-5);
      kernel(pack, ("batch_norm_infer" + shape).c_str(), "cpu.batch_norm_infer", i, {x, y, y + 64, y + 128, y + 192, z}, bytes * 2, "GB/s");
      g.in(t).in(TN_F32, {c}).in(TN_F32, {c}).in(TN_F32, {c}).in(t).out(t).out(TN_F32, {c}).out(TN_F32, {c}).f64(TN_KEY_EPSILON, 1e-5);
      kernel(pack, ("batch_norm_grad" + shape).c_str(), "cpu.batch_norm_grad", g, {x, x + 64, x + 128, x + 192, y, z, x + 256, x + 320}, bytes * 3, "GB/s");
    }
}
void pools(Pack& pack, float* x, float* y, float* z) {
  struct Shape { int64_t n, c, h; };
  for (const Shape s : {Shape{128, 32, 28}, {128, 64, 14}, {64, 6, 28}, {64, 16, 10}}) {
    const tn_type t = images(s.n, s.c, s.h), small = images(s.n, s.c, s.h / 2);
    const std::string shape = std::string("_").append(std::to_string(s.n)) + "x" + std::to_string(s.c) + "x" + std::to_string(s.h);
    const double bytes = double(s.n * s.c * s.h * s.h) * 4;
    const auto attributes = [](Op& op) -> Op& { return op.ints(TN_KEY_KERNEL, {2, 2}).ints(TN_KEY_STRIDES, {2, 2}); };
    Op m(TN_OPID_MAX_POOL2D), g(TN_OPID_MAX_POOL2D_GRAD), a(TN_OPID_AVG_POOL2D), b(TN_OPID_AVG_POOL2D_GRAD);
    m.in(t).out(small), a.in(t).out(small), g.in(t).in(small).in(small).out(t), b.in(small).out(t);
    kernel(pack, ("max_pool" + shape).c_str(), "cpu.max_pool2d", attributes(m), {x, z}, bytes * 1.25, "GB/s");
    kernel(pack, ("max_pool_grad" + shape).c_str(), "cpu.max_pool2d_grad", attributes(g), {x, y, y, z}, bytes * 2.25, "GB/s");
    kernel(pack, ("avg_pool" + shape).c_str(), "cpu.avg_pool2d", attributes(a), {x, z}, bytes * 1.25, "GB/s");
    kernel(pack, ("avg_pool_grad" + shape).c_str(), "cpu.avg_pool2d_grad", attributes(b), {y, z}, bytes * 1.25, "GB/s");
  }
}
// One step of Adam as its expansion writes it, over the weights of a 784 x 512 layer.
void steps(Pack& pack, float* x, float* y, float* z) {
  const uint32_t f = TN_F32;
  Prog p;
  const uint16_t in0 = p.in(0, f), in1 = p.in(1, f), in2 = p.in(2, f), in3 = p.in(3, f), one = p.slot(8, f), rate = p.slot(0, f);
  const uint16_t shrink = p.add(TN_OP_SUB, f, one, p.add(TN_OP_MUL, f, rate, p.slot(5, f)));
  const uint16_t w = p.add(TN_OP_MUL, f, in0, shrink), g = p.add(TN_OP_ADD, f, in1, p.add(TN_OP_MUL, f, p.slot(4, f), w));
  const auto mix = [&](uint32_t beta, uint16_t old, uint16_t fresh) {
    return p.add(TN_OP_ADD, f, p.add(TN_OP_MUL, f, p.slot(beta, f), old), p.add(TN_OP_MUL, f, p.add(TN_OP_SUB, f, one, p.slot(beta, f)), fresh));
  };
  const uint16_t m = mix(1, in2, g), v = mix(2, in3, p.add(TN_OP_MUL, f, g, g));
  const uint16_t root = p.add(TN_OP_DIV, f, p.add(TN_OP_SQRT, f, v), p.add(TN_OP_SQRT, f, p.slot(7, f)));
  const uint16_t step = p.add(TN_OP_DIV, f, m, p.add(TN_OP_ADD, f, root, p.slot(3, f)));
  p.out(p.add(TN_OP_SUB, f, w, p.add(TN_OP_MUL, f, p.add(TN_OP_DIV, f, rate, p.slot(6, f)), step))), p.out(m), p.out(v);
  const int64_t n = 784 * 512;
  Op op(TN_OPID_POINTWISE);
  op.in(f, {n}).in(f, {n}).in(f, {n}).in(f, {n}).out(f, {n}).out(f, {n}).out(f, {n}).program(TN_KEY_PROGRAM, p);
  for (float c : {1e-3f, 0.9f, 0.999f, 1e-8f, 0.0f, 0.01f, 0.1f, 0.01f, 1.0f}) op.scalar(c);
  float* o = z + 4 * n;
  kernel(pack, "adam_784x512", "cpu.pointwise.dense", op, {x, y, z, z + n, o, o + n, o + 2 * n}, double(n) * 28, "GB/s");
}
// Forward, input gradient and weight gradient of the convolutions of two small networks, channels-last.
void convolutions(Pack& pack, float* x, float* y, float* z) {
  struct Shape { int64_t n, c, h, o, k, pad; };
  for (const Shape s : {Shape{64, 1, 28, 6, 5, 0}, {64, 1, 28, 6, 5, 2}, {64, 6, 14, 16, 5, 0}, {64, 6, 12, 16, 5, 0}, {128, 1, 28, 32, 3, 1}, {128, 32, 14, 64, 3, 1}}) {
    const int64_t out = s.h + 2 * s.pad - s.k + 1;
    const tn_type xt = images(s.n, s.c, s.h), yt = images(s.n, s.o, out), wt = Op::dense(TN_F32, {s.o, s.c, s.k, s.k});
    const std::string shape = std::string("_").append(std::to_string(s.n)) + "x" + std::to_string(s.c) + "x" + std::to_string(s.h) + "_o" + std::to_string(s.o) + "k" + std::to_string(s.k) + "p" + std::to_string(s.pad);
    const double flops = 2.0 * double(s.n * s.o * out * out * s.c * s.k * s.k);
    const auto pads = [&](Op& op) -> Op& { return op.ints(TN_KEY_LO, {s.pad, s.pad}).ints(TN_KEY_HI, {s.pad, s.pad}); };
    Op f(TN_OPID_CONV2D), gx(TN_OPID_CONV2D_INPUT_GRAD), gw(TN_OPID_CONV2D_WEIGHT_GRAD);
    f.in(xt).in(wt).in(TN_F32, {s.o}).out(yt);
    gx.in(yt).in(wt).out(xt).ints(TN_KEY_DIMS, {s.n, s.c, s.h, s.h});
    gw.in(xt).in(yt).out(wt).ints(TN_KEY_DIMS, {s.o, s.c, s.k, s.k});
    kernel(pack, ("conv" + shape).c_str(), "cpu.conv2d", pads(f), {x, y, y, z}, flops, "GFLOP/s");
    kernel(pack, ("conv_input_grad" + shape).c_str(), "cpu.conv2d_input_grad", pads(gx), {x, y, z}, flops, "GFLOP/s");
    kernel(pack, ("conv_weight_grad" + shape).c_str(), "cpu.conv2d_weight_grad", pads(gw), {x, y, z}, flops, "GFLOP/s");
    Op first(TN_OPID_CONV2D_WEIGHT_GRAD);
    first.in(images(s.n, s.c, s.h, false)).in(images(s.n, s.o, out, false)).out(wt).ints(TN_KEY_DIMS, {s.o, s.c, s.k, s.k});
    kernel(pack, ("conv_weight_grad_first" + shape).c_str(), "cpu.conv2d_weight_grad", pads(first), {x, y, z}, flops, "GFLOP/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) threads = uint32_t(std::atoi(argv[1]));
  if (argc > 2) filter = argv[2];
  cpu_clock = threads == 1;
  Pack pack(nullptr, threads);
  float* x = floats(16 << 20);
  float* y = floats(16 << 20);
  float* z = floats(16 << 20);
  pointwise(pack, x, y, z);
  reductions(pack, x, z);
  bias_gradients(pack, x, z);
  random(pack, z);
  products(pack, x, y, z);
  norms(pack, x, y, z);
  batch_norms(pack, x, y, z);
  pools(pack, x, y, z);
  convolutions(pack, x, y, z);
  steps(pack, x, y, z);
}
