// Launches through the plugin against oneDNN called directly (plain layouts, primitives prebuilt), taken in turns.
// Not a test. Usage: tenon_bench_onednn [threads] [matmul|conv|both]; prints median microseconds, GFLOP/s and the ratio.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "backends/onednn/compat.h"
#include "tests/onednn/harness.h"

namespace onednn_test {
namespace {

using tenon::onednn::ConvGeometry;
using tenon::onednn::Desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Medians {
  double plugin, direct;
};

template <class A, class B>
Medians interleave(const A& plugin, const B& direct) {
  std::vector<double> p, d;
  plugin(), direct();
  const double start = now_us();
  while (p.size() < 31 || (now_us() - start < 300000 && p.size() < 2000)) {
    const double a = now_us();
    plugin();
    const double b = now_us();
    direct();
    const double c = now_us();
    p.push_back(b - a), d.push_back(c - b);
  }
  std::sort(p.begin(), p.end()), std::sort(d.begin(), d.end());
  return {p[p.size() / 2], d[d.size() / 2]};
}

void report(const char* name, uint32_t threads, double flops, Medians m) {
  std::printf("%-34s t%u plugin %10.2f us %8.1f GFLOP/s  direct %10.2f us %8.1f GFLOP/s  speed ratio %.3f\n", name, threads,
              m.plugin, flops / m.plugin / 1e3, m.direct, flops / m.direct / 1e3, m.direct / m.plugin);
  std::fflush(stdout);
}

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

// A prepared plan with its views and workspace.
struct Launcher {
  Plugin& plugin;
  const Call& call;
  const tn_kernel_plan* plan;
  std::vector<tn_view> views;
  std::vector<unsigned char> workspace;
  Launcher(Plugin& p, const Call& c) : plugin(p), call(c), plan(p.prepare(c)), workspace(plan->workspace_bytes) {
    for (const auto& group : {c.in, c.out}) {
      for (Tensor* t : group) views.push_back({1, 0, t->bytes.size(), t->type.dtype ? t->bytes.data() : nullptr});
    }
    if (!workspace.empty()) views.push_back({1, 0, workspace.size(), workspace.data()});
  }
  ~Launcher() { plugin.retire(call, plan); }
  void operator()() const {
    const tn_launch l{views.data(), static_cast<uint32_t>(views.size()), 0, nullptr, nullptr, nullptr, nullptr};
    if (plan->launch(plan, &l) != TN_OK) std::puts("launch failed");
  }
};

Type type_of(uint32_t dtype) {
  return dtype == TN_F32 ? Type::f32 : dtype == TN_BF16 ? Type::bf16 : dtype == TN_U8 ? Type::u8 : dtype == TN_I8 ? Type::s8 : Type::s32;
}

void matmul(const char* name, uint32_t a_type, uint32_t b_type, uint32_t out_type, int64_t n, uint32_t threads) {
  Tensor a(a_type, {n, n}), b(b_type, {n, n}), out(out_type, {n, n});
  a.fill(1), b.fill(2);
  const Call call{"onednn.matmul", TN_OPID_MATMUL, {&a, &b}, {&out}, {}, {}, 0};
  const Launcher plugin(Plugin::with_threads(threads), call);
  omp_set_num_threads(static_cast<int>(threads));
  const Desc ad({n, n}, type_of(a_type), Tag::ab), bd({n, n}, type_of(b_type), Tag::ab), od({n, n}, type_of(out_type), Tag::ab);
  const auto pd = tenon::onednn::make_matmul(engine(), ad, bd, Desc(), od, dnnl::primitive_attr());
  const dnnl::matmul primitive(pd);
  dnnl::stream stream(engine());
  const std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, {ad, engine(), a.bytes.data()}},
                                                        {DNNL_ARG_WEIGHTS, {bd, engine(), b.bytes.data()}},
                                                        {DNNL_ARG_DST, {od, engine(), out.bytes.data()}}};
  const auto m = interleave(plugin, [&] { primitive.execute(stream, arguments); });
  char text[64];
  std::snprintf(text, sizeof text, "gemm.%s.%ld", name, static_cast<long>(n));
  report(text, threads, 2.0 * static_cast<double>(n * n * n), m);
}

struct Shape {
  int64_t n, c, h, o, k, pad;
};

ConvGeometry geometry(const Shape& s) { return {{1, 1}, {0, 0}, {s.pad, s.pad}, {s.pad, s.pad}}; }

// Uninitialised weights may hold denormals, which are slow.
dnnl::memory weights(const Desc& desc) {
  dnnl::memory m(desc, engine());
  std::memset(m.get_data_handle(), 0, desc.get_size());
  return m;
}

Attrs attrs(const Shape& s) {
  Attrs a;
  a.set(TN_KEY_LO, Dims{s.pad, s.pad}).set(TN_KEY_HI, Dims{s.pad, s.pad});
  return a;
}

// Direct: activations in the layout the caller has, weights already in oneDNN's.
void conv(const Shape& s, bool last, uint32_t dtype, uint32_t threads) {
  const int64_t oh = s.h + 2 * s.pad - s.k + 1;
  const auto tensor = [&](Dims d) { return last ? Tensor::channels_last(dtype, d) : Tensor(dtype, d); };
  Tensor x = tensor({s.n, s.c, s.h, s.h}), y = tensor({s.n, s.o, oh, oh}), w(dtype, {s.o, s.c, s.k, s.k}), none;
  x.fill(1), y.fill(2), w.fill(3);
  const double flops = 2.0 * static_cast<double>(s.n * s.o * oh * oh * s.c * s.k * s.k);
  omp_set_num_threads(static_cast<int>(threads));
  const Tag tag = last ? Tag::nhwc : Tag::nchw;
  const Desc xd({s.n, s.c, s.h, s.h}, type_of(dtype), tag), yd({s.n, s.o, oh, oh}, type_of(dtype), tag);
  const Desc wd({s.o, s.c, s.k, s.k}, type_of(dtype), Tag::any);
  const auto forward = tenon::onednn::make_conv(engine(), dnnl::prop_kind::forward_training, xd, wd, Desc(), yd, geometry(s),
                                                dnnl::primitive_attr());
  dnnl::stream stream(engine());
  Tensor x_direct = x, y_direct = y;  // each side writes its own, so that values stay ordinary
  const dnnl::memory xm(xd, engine(), x_direct.bytes.data()), ym(yd, engine(), y_direct.bytes.data());
  char text[96];
  std::snprintf(text, sizeof text, "conv %ldx%ldx%ld o%ld k%ld %s %s", static_cast<long>(s.n), static_cast<long>(s.c),
                static_cast<long>(s.h), static_cast<long>(s.o), static_cast<long>(s.k), last ? "nhwc" : "nchw",
                dtype == TN_F32 ? "f32" : "bf16");
  std::printf("%s\n", text);
  {
    const Call call{"onednn.conv2d", TN_OPID_CONV2D, {&x, &w, &none}, {&y}, attrs(s), {}, 0};
    const Launcher plugin(Plugin::with_threads(threads), call);
    const dnnl::convolution_forward p(forward);
    const dnnl::memory wm = weights(forward.weights_desc());
    report("  forward", threads, flops, interleave(plugin, [&] {
             p.execute(stream, {{DNNL_ARG_SRC, xm}, {DNNL_ARG_WEIGHTS, wm}, {DNNL_ARG_DST, ym}});
           }));
  }
  if (s.c > 1) {
    y.fill(2);
    const Call call{"onednn.conv2d_input_grad", TN_OPID_CONV2D_INPUT_GRAD, {&y, &w}, {&x}, attrs(s), {}, 0};
    const Launcher plugin(Plugin::with_threads(threads), call);
    const auto pd = tenon::onednn::make_conv_input_grad(engine(), xd, wd, yd, geometry(s), forward, dnnl::primitive_attr());
    const dnnl::convolution_backward_data p(pd);
    const dnnl::memory wm = weights(pd.weights_desc());
    report("  input grad", threads, flops, interleave(plugin, [&] {
             p.execute(stream, {{DNNL_ARG_DIFF_DST, ym}, {DNNL_ARG_WEIGHTS, wm}, {DNNL_ARG_DIFF_SRC, xm}});
           }));
  }
  x.fill(1), y.fill(2), x_direct.fill(1), y_direct.fill(2);
  const Call call{"onednn.conv2d_weight_grad", TN_OPID_CONV2D_WEIGHT_GRAD, {&x, &y}, {&w}, attrs(s), {}, 0};
  const Launcher plugin(Plugin::with_threads(threads), call);
  const auto pd = tenon::onednn::make_conv_weight_grad(engine(), xd, wd, yd, geometry(s), forward, dnnl::primitive_attr());
  const dnnl::convolution_backward_weights p(pd);
  const dnnl::memory wm = weights(pd.diff_weights_desc());
  report("  weight grad", threads, flops, interleave(plugin, [&] {
           p.execute(stream, {{DNNL_ARG_SRC, xm}, {DNNL_ARG_DIFF_DST, ym}, {DNNL_ARG_DIFF_WEIGHTS, wm}});
         }));
}

void all_matmuls(uint32_t threads) {
  for (int64_t n : {8, 32, 64, 128, 512, 1024, 2048}) {
    matmul("f32", TN_F32, TN_F32, TN_F32, n, threads);
    if (n != 32 && n < 512) continue;
    matmul("bf16", TN_BF16, TN_BF16, TN_BF16, n, threads);
    matmul("u8s8", TN_U8, TN_I8, TN_I32, n, threads);
  }
}

void all_convs(uint32_t threads) {
  const Shape shapes[] = {{64, 1, 28, 6, 5, 2}, {64, 6, 14, 16, 5, 0}, {128, 1, 28, 32, 3, 1}, {128, 32, 14, 64, 3, 1},
                          {1, 64, 56, 64, 3, 1}, {16, 256, 14, 256, 3, 1}};
  for (const Shape& s : shapes) {
    for (bool last : {false, true}) conv(s, last, TN_F32, threads);
  }
  conv({16, 64, 56, 64, 3, 1}, true, TN_BF16, threads);
  conv({16, 64, 56, 64, 3, 1}, false, TN_BF16, threads);
}

}  // namespace
}  // namespace onednn_test

int main(int argc, char** argv) {
  const uint32_t threads = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1;
  const char* what = argc > 2 ? argv[2] : "both";
  if (std::strcmp(what, "conv") != 0) onednn_test::all_matmuls(threads);
  if (std::strcmp(what, "matmul") != 0) onednn_test::all_convs(threads);
  return 0;
}
