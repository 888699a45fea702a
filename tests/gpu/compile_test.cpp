// tests/gpu/compile_test.cpp - every dialect's text of many programs is accepted by that language's own compiler.
#include <gtest/gtest.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ops/gpu/recipe.h"
#include "ops/gpu/render.h"
#include "tests/reference/helpers.h"

namespace tenon::gpu {
namespace {

using reference::testing::attr_of;
using reference::testing::op_of;
using reference::testing::ProgramText;
using reference::testing::type_of;

constexpr uint8_t kTypes[] = {TN_BOOL, TN_U8, TN_I8, TN_U16, TN_I16, TN_U32, TN_I32, TN_U64, TN_I64, TN_F8E4M3, TN_F8E5M2, TN_F16, TN_BF16, TN_F32, TN_F64};
bool is_storage_only(uint32_t d) { return reference::is_narrow_float(d); }

// All opcodes that exist for a type, in one program: one kernel per type keeps compilers' time low.
ProgramText everything(uint8_t t) {
  ProgramText p;
  p.n_in = 3;
  for (uint16_t k = 0; k < 3; ++k) p.inst.push_back({TN_OP_INPUT, t, k, 0, 0});
  auto add = [&p](uint8_t op, uint8_t type, uint16_t a, uint16_t b, uint16_t c) { p.inst.push_back({op, type, a, b, c}); return static_cast<uint16_t>(p.inst.size() - 1); };
  const bool real = t == TN_F32 || t == TN_F64, integer = !real && t != TN_BOOL;
  uint16_t last = 0;
  auto chain = [&](uint8_t op, uint16_t b) { last = add(op, t, last, b, 2); };
  if (real) for (uint8_t op = TN_OP_NEG; op <= TN_OP_ERF; ++op) chain(op, 0);
  if (real) for (uint8_t op = TN_OP_ADD; op <= TN_OP_FMA; ++op) chain(op, 1);
  if (integer) for (uint8_t op : {TN_OP_NEG, TN_OP_ABS, TN_OP_SIGN, TN_OP_NOT, TN_OP_FLOOR}) chain(op, 0);
  if (integer) for (uint8_t op : {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_REM, TN_OP_POW, TN_OP_MIN, TN_OP_MAX, TN_OP_FMA, TN_OP_SHL, TN_OP_SHR}) chain(op, 1);
  if (!real) for (uint8_t op : {TN_OP_AND, TN_OP_OR, TN_OP_XOR}) chain(op, 1);
  uint16_t truth = add(TN_OP_ISNAN, TN_BOOL, last, 0, 0);
  for (uint8_t op : {TN_OP_LT, TN_OP_LE, TN_OP_EQ, TN_OP_NE}) {
    const uint16_t one = add(op, TN_BOOL, last, 1, 0);
    truth = add(TN_OP_XOR, TN_BOOL, truth, one, 0);
  }
  last = add(TN_OP_SELECT, t, truth, last, 1);
  if (t != TN_BOOL) {
    const uint16_t constant = add(TN_OP_CONST, t, 0, 0, 0);
    last = add(real ? TN_OP_MUL : TN_OP_XOR, t, last, constant, 0);
  }
  if (integer) last = add(TN_OP_XOR, t, last, add(TN_OP_INDEX, t, 1, 0, 0), 0);
  if (t == TN_U64) last = add(TN_OP_CAST, t, add(TN_OP_PHILOX, TN_U32, last, 1, 2), 0, 0);
  p.n_slots = 1;
  p.out = {last};
  return p;
}

ProgramText cast(uint8_t from, uint8_t to) {
  ProgramText p;
  p.inst = {{TN_OP_INPUT, from, 0, 0, 0}, {TN_OP_CAST, to, 0, 0, 0}};
  p.out = {1};
  return p;
}

struct Text { std::string name, text; };

// Texts of all programs over a strided operand, as one recipe each.
std::vector<Text> texts(Dialect dialect) {
  Caps caps;
  caps.dialect = dialect, caps.storage = caps.arithmetic = ~uint64_t{0}, caps.index64 = dialect != Dialect::Glsl;
  std::vector<Text> all;
  auto add = [&](const std::string& name, const ProgramText& p, uint8_t from, uint8_t to) {
    const tn_program view = p.view();
    std::vector<tn_type> types(static_cast<size_t>(p.n_in), type_of(from, {3, 5}, {1, -3}));
    types.push_back(type_of(to, {3, 5}));
    const std::vector<tn_attr> attrs = {attr_of(TN_KEY_PROGRAM, view)};
    Recipe recipe;
    tn_diag diag{};
    const tn_status status = make_recipe(caps, 0, op_of(TN_OPID_POINTWISE, types, 1, attrs, 8), &recipe, &diag);
    ASSERT_EQ(status, TN_OK) << name << ": " << diag.msg;
    all.push_back({name, render(*recipe.steps.at(0).spec, render_options(*recipe.steps[0].spec, caps))});
  };
  for (uint8_t t : kTypes) {
    if (!is_storage_only(t)) add("all_" + std::to_string(t), everything(t), t, t);
    for (uint8_t to : kTypes) add("cast_" + std::to_string(t) + "_" + std::to_string(to), cast(t, to), t, to);
  }
  return all;
}

std::filesystem::path folder() {
  const std::filesystem::path f = std::filesystem::temp_directory_path() / ("tenon_gpu_texts_" + std::to_string(::getpid()));
  std::filesystem::create_directories(f);
  return f;
}
bool have(const char* program) { return std::system((std::string("command -v ") + program + " >/dev/null 2>&1").c_str()) == 0; }
int quiet(const std::string& command, std::string* said) {
  FILE* f = popen((command + " 2>&1").c_str(), "r");
  char line[256];
  while (std::fgets(line, sizeof line, f) != nullptr) *said += line;
  return pclose(f);
}

TEST(GpuTexts, glsl_becomes_valid_spirv) {
  if (!have("glslangValidator") || !have("spirv-val")) GTEST_SKIP() << "glslang-tools and spirv-tools are not installed";
  const auto dir = folder();
  for (const Text& t : texts(Dialect::Glsl)) {
    const std::string source = dir / (t.name + ".comp"), spirv = dir / "k.spv";
    std::ofstream(source) << t.text;
    std::string said;
    ASSERT_EQ(quiet("glslangValidator -V --target-env vulkan1.2 -o " + spirv + " " + source, &said), 0) << t.name << "\n" << said << t.text;
    ASSERT_EQ(quiet("spirv-val --target-env vulkan1.2 " + spirv, &said), 0) << t.name << "\n" << said;
  }
  std::filesystem::remove_all(dir);
}

TEST(GpuTexts, cuda_compiles_to_device_programs) {
  void* lib = dlopen("libnvrtc.so.13", RTLD_NOW);
  for (const char* name : {"libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
    if (lib == nullptr) lib = dlopen(name, RTLD_NOW);
  if (lib == nullptr) GTEST_SKIP() << "NVRTC is not installed";
  using Program = void*;
  auto create = reinterpret_cast<int (*)(Program*, const char*, const char*, int, const char* const*, const char* const*)>(dlsym(lib, "nvrtcCreateProgram"));
  auto compile = reinterpret_cast<int (*)(Program, int, const char* const*)>(dlsym(lib, "nvrtcCompileProgram"));
  auto log_size = reinterpret_cast<int (*)(Program, size_t*)>(dlsym(lib, "nvrtcGetProgramLogSize"));
  auto log = reinterpret_cast<int (*)(Program, char*)>(dlsym(lib, "nvrtcGetProgramLog"));
  auto destroy = reinterpret_cast<int (*)(Program*)>(dlsym(lib, "nvrtcDestroyProgram"));
  const char* architectures[] = {"-arch=sm_80", "-arch=sm_90", "-arch=sm_90a", "-arch=sm_100"};
  size_t k = 0;
  for (const Text& t : texts(Dialect::Cuda)) {
    if (t.name.starts_with("cast_") && k % 5 != 0) { ++k; continue; }  // pairs of types are sampled: each costs a tenth of a second
    const char* options[] = {architectures[k++ % 4], "--fmad=false"};
    Program p = nullptr;
    ASSERT_EQ(create(&p, t.text.c_str(), "k.cu", 0, nullptr, nullptr), 0);
    const int status = compile(p, 2, options);
    size_t n = 0;
    log_size(p, &n);
    std::string said(n, 0);
    log(p, said.data());
    ASSERT_EQ(status, 0) << t.name << "\n" << said << t.text;
    destroy(&p);
  }
}

}  // namespace
}  // namespace tenon::gpu
