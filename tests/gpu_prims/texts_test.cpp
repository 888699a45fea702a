// Every form of every kernel in a few types: Texts writes them in four languages for check_texts.py to compile, Races runs them at
// small sizes for oclgrind to watch.
#include <cstdlib>
#include <fstream>

#include "ops/gpu/render.h"
#include "tests/gpu_prims/case.h"

namespace tenon::test {
namespace {

struct Job { const char* row; std::unique_ptr<Case> c; };

Operand random_operand(uint32_t dtype, const Dims& dims, Layout layout = Layout::Dense) {
  static std::mt19937 g{3};
  Operand o = make_operand(dtype, dims, layout);
  fill_random(&o, g, dtype == TN_U8 || dtype == TN_BOOL ? 0 : -1, 1);
  return o;
}

std::vector<Job> jobs(int64_t size) {
  std::vector<Job> all;
  auto add = [&](const char* row, uint64_t op, uint32_t n_in, std::vector<Operand> operands) -> Case& {
    all.push_back({row, std::make_unique<Case>(op, n_in)});
    all.back().c->operand = std::move(operands);
    return *all.back().c;
  };
  for (uint32_t dtype : {TN_BOOL, TN_I8, TN_I32, TN_F16, TN_F32, TN_I64, TN_F64})
    for (int64_t monoid : {TN_MONOID_SUM, TN_MONOID_PROD, TN_MONOID_MAX, TN_MONOID_ARGMIN})
      for (int64_t axis : {0, 1}) {
        const uint32_t out = monoid == TN_MONOID_ARGMIN ? uint32_t{TN_I64} : dtype;
        Case& c = add("reduce", TN_OPID_REDUCE, 1, {random_operand(dtype, {3, size * 7}), make_operand(out, {axis == 0 ? size * 7 : 3}, Layout::Dense)});
        c.attr_ints(TN_KEY_AXES, {axis}), c.attr_int(TN_KEY_MONOID, monoid);
      }
  for (const char* row : {"matmul.block", "matmul.tiled", "matmul.direct"})
    for (uint32_t dtype : {TN_F32, TN_BF16, TN_I8, TN_F64, TN_I64}) {
      const uint32_t out = dtype == TN_I8 ? uint32_t{TN_I32} : dtype;
      add(row, TN_OPID_MATMUL, 2, {random_operand(dtype, {2, size, size + 3}), random_operand(dtype, {size + 3, size + 1}, Layout::Transposed), make_operand(out, {2, size, size + 1}, Layout::Dense)});
    }
  for (uint32_t dtype : {TN_U8, TN_F16, TN_F32, TN_F64, TN_C128})
    for (uint32_t index : {TN_I32, TN_I64}) {
      add("gather", TN_OPID_GATHER, 2, {make_operand(dtype, {size, 5}, Layout::Dense), make_operand(index, {4, 1}, Layout::Dense), make_operand(dtype, {4, 5}, Layout::Dense)}).attr_int(TN_KEY_AXIS, 0);
      for (int64_t updates : {4, 70})
        for (int64_t mode : {TN_SCATTER_SET, TN_SCATTER_ADD, TN_SCATTER_MAX}) {
          if (dtype == TN_C128 && mode != TN_SCATTER_SET) continue;
          Case& c = add("scatter", TN_OPID_SCATTER, 3, {make_operand(dtype, {5, size}, Layout::Dense), make_operand(index, {1, updates}, Layout::Dense), make_operand(dtype, {5, updates}, Layout::Dense), make_operand(dtype, {5, size}, Layout::Dense)});
          c.attr_int(TN_KEY_AXIS, 1), c.attr_int(TN_KEY_MODE, mode);
        }
    }
  return all;
}

gpu::Caps any_device() {
  gpu::Caps c;
  c.storage = c.arithmetic = ~uint64_t{0};
  return c;
}

TEST(Texts, are_made_for_every_language_and_class) {
  const char* folder = std::getenv("TENON_DUMP_TEXTS");
  size_t n = 0;
  const std::pair<gpu::Dialect, const char*> dialects[] = {{gpu::Dialect::Cuda, "cu"}, {gpu::Dialect::Hip, "hip"}, {gpu::Dialect::OpenCl, "cl"}, {gpu::Dialect::Glsl, "comp"}};
  for (const Job& job : jobs(40))
    for (auto [dialect, ending] : dialects)
      for (bool processor : {false, true})
        for (bool low : {false, true}) {
          gpu::Caps caps = low ? lowered(any_device()) : any_device();
          caps.dialect = dialect, caps.device_class = processor ? gpu::DeviceClass::Processor : gpu::DeviceClass::Gpu;
          const uint32_t row = row_named(job.row);
          gpu::Recipe recipe;
          tn_diag diag{};
          const tn_op op = job.c->op();
          if (gpu::row_constraints(row, caps).empty()) continue;
          if (std::string(job.row) == "matmul.block" && (op.type[0].dtype == TN_F64 || op.type[0].dtype == TN_I8 || op.type[0].dtype == TN_I64)) continue;
          ASSERT_EQ(gpu::make_recipe(caps, row, op, &recipe, &diag), TN_OK) << diag.msg;
          for (const gpu::Step& step : recipe.steps) {
            const std::string text = gpu::render(*step.spec, gpu::render_options(*step.spec, caps));
            ++n;
            if (folder != nullptr) std::ofstream(std::string(folder) + "/" + step.spec->name + "_" + std::to_string(std::hash<std::string>()(text)) + "." + ending) << text;
          }
        }
  EXPECT_GT(n, 1000u);
}

TEST(Races, small_cases_of_every_form) {
  if (ClMachine::get() == nullptr) GTEST_SKIP() << "no OpenCL device";
  for (const Job& job : jobs(12))
    for (bool processor : {false, true}) {
      gpu::Caps caps = lowered(ClMachine::get()->caps());
      caps.device_class = processor ? gpu::DeviceClass::Processor : gpu::DeviceClass::Gpu;
      const tn_op op = job.c->op();
      if (gpu::row_constraints(row_named(job.row), caps).empty()) continue;
      if (std::string(job.row) == "matmul.block" && (op.type[0].dtype == TN_F64 || op.type[0].dtype == TN_I8 || op.type[0].dtype == TN_I64)) continue;
      std::vector<Operand> got;
      EXPECT_EQ(job.c->run(job.row, caps, &got).value_or(99), 0u) << job.row << " " << job.c->refusal;
    }
}

}  // namespace
}  // namespace tenon::test
