// ops/gpu/render.cpp - the frame of a kernel in each language; bodies are not touched.
#include "ops/gpu/render.h"

#include <tenon/types.h>

#include "ops/gpu/dialect/library.h"
#include "ops/gpu/dialect/texts.h"
#include "ops/gpu/text.h"

namespace tenon::gpu {
namespace {

// The type of a buffer's element. Narrow floats and bool lie there as their bits.
const char* stored_type(uint32_t dtype) {
  switch (dtype) {
    case TN_BOOL: case TN_U8: case TN_F8E4M3: case TN_F8E5M2: return "tn_u8";
    case TN_I8: return "tn_i8";
    case TN_U16: case TN_F16: case TN_BF16: return "tn_u16";
    case TN_I16: return "tn_i16";
    case TN_I32: return "int";
    case TN_U64: case TN_C64: return "tn_ulong";
    case TN_I64: return "tn_long";
    case TN_F32: return "float";
    case TN_F64: return "double";
    default: return "tn_uint";
  }
}

std::string lines_of_defines(const KernelSpec& spec) {
  std::string out;
  for (const Define& d : spec.defines) out += "#define " + d.name + " " + d.value + "\n";
  return out;
}

std::string product(const uint32_t g[3]) { return std::to_string(uint64_t{g[0]} * g[1] * g[2]); }

// ---- CUDA, HIP, OpenCL: C with a struct of parameters ----

std::string c_struct(const KernelSpec& spec) {
  std::string out = "typedef struct {";
  uint32_t end = 0;
  const ParamLayout layout = param_layout(spec);
  for (size_t i = 0; i < spec.scalars.size(); ++i) {
    out += std::string(" ") + stored_type(spec.scalars[i].dtype) + " " + spec.scalars[i].name + ";";
    end = layout.offset[i] + element_bytes(spec.scalars[i].dtype);
  }
  if (end != layout.bytes) out += " tn_uint tn_rest;";  // the block's size is a multiple of 8
  return out + " } tn_params;\n";
}

std::string c_arguments(const KernelSpec& spec, const RenderOptions& options, const std::string& global) {
  std::string out;
  auto add = [&out](const std::string& argument) { out += (out.empty() ? "" : ", ") + argument; };
  // Not restrict: an output may be the very view of an input.
  for (const BufferSpec& b : spec.buffers) add(global + (b.writable ? "" : "const ") + stored_type(b.dtype) + "* " + b.name);
  if (options.params_in_buffer && !spec.scalars.empty()) add(global + "const tn_params* tn_p");
  if (spec.can_fail) add(global + "tn_uint* tn_error");
  if (!options.params_in_buffer && !spec.scalars.empty()) add("const tn_params tn_p");
  return out;
}

std::string c_scalars(const KernelSpec& spec, const RenderOptions& options) {
  std::string out;
  for (const ScalarSpec& s : spec.scalars)
    out += std::string("  const ") + stored_type(s.dtype) + " " + s.name + " = tn_p" + (options.params_in_buffer ? "->" : ".") + s.name + ";\n";
  return out;
}

std::string c_locals(const KernelSpec& spec, const std::string& local) {
  std::string out;
  for (const LocalSpec& l : spec.locals) out += "  " + local + stored_type(l.dtype) + " " + l.name + "[" + l.count + "];\n";
  return out;
}

std::string render_c(const KernelSpec& spec, const RenderOptions& options) {
  const bool opencl = options.dialect == Dialect::OpenCl;
  std::string out;
  if (opencl && (spec.needs & kNeedF64) != 0) out += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  out += opencl ? kText_opencl : kText_cuda;
  if (options.dialect == Dialect::Hip) out = "#pragma clang fp contract(off)\n" + out;
  out += lines_of_defines(spec);
  out += without_f64_suffix(library_for(spec.helpers + spec.body) + spec.helpers);
  if (!spec.scalars.empty()) out += c_struct(spec);
  const std::string& n = spec.name;
  if (opencl) {
    out += "__kernel __attribute__((reqd_work_group_size(" + std::to_string(spec.group[0]) + ", " + std::to_string(spec.group[1]) + ", " +
           std::to_string(spec.group[2]) + "))) void " + n + "(" + c_arguments(spec, options, "__global ") + ") {\n";
  } else {
    out += "extern \"C\" __global__ void __launch_bounds__(" + product(spec.group) + ") " + n + "(" + c_arguments(spec, options, "") + ") {\n";
  }
  out += c_scalars(spec, options) + c_locals(spec, opencl ? "__local " : "__shared__ ") + without_f64_suffix(spec.body);
  return out + "}\n";
}

// ---- GLSL: bindings and push constants ----

bool stores_bytes_of(const KernelSpec& spec, uint32_t bytes) {
  for (const BufferSpec& b : spec.buffers)
    if (element_bytes(b.dtype) == bytes) return true;
  return false;
}

std::string glsl_extensions(const KernelSpec& spec, const std::string& text) {
  std::string out = "#version 450\n#extension GL_EXT_control_flow_attributes : require\n";
  auto need = [&out](const char* name) { out += std::string("#extension ") + name + " : require\n"; };
  bool wide = (spec.needs & kNeedI64) != 0 || text.find("tn_ulong") != std::string::npos || text.find("tn_long") != std::string::npos;
  for (const BufferSpec& b : spec.buffers) wide = wide || b.dtype == TN_U64 || b.dtype == TN_I64 || b.dtype == TN_C64;
  for (const ScalarSpec& s : spec.scalars) wide = wide || s.dtype == TN_U64 || s.dtype == TN_I64;
  if (wide || text.find("TN_U64") != std::string::npos || text.find("_F64(") != std::string::npos) need("GL_EXT_shader_explicit_arithmetic_types_int64");
  if (stores_bytes_of(spec, 1)) need("GL_EXT_shader_8bit_storage");
  if (stores_bytes_of(spec, 2)) need("GL_EXT_shader_16bit_storage");
  if ((spec.needs & kNeedSubgroup) != 0) need("GL_KHR_shader_subgroup_arithmetic"), need("GL_KHR_shader_subgroup_shuffle");
  if ((spec.needs & kNeedAtomicF32) != 0) need("GL_EXT_shader_atomic_float");
  return out;
}

std::string glsl_buffers(const KernelSpec& spec, const RenderOptions& options) {
  std::string out;
  uint32_t binding = 0;
  auto add = [&](const std::string& access, const std::string& members) {
    const std::string k = std::to_string(binding++);
    out += "layout(std430, set = 0, binding = " + k + ") " + access + "buffer TnBuffer" + k + " { " + members + " };\n";
  };
  for (const BufferSpec& b : spec.buffers) add(b.writable ? "" : "readonly ", std::string(stored_type(b.dtype)) + " " + b.name + "[];");
  std::string block;
  const ParamLayout layout = param_layout(spec);
  for (size_t i = 0; i < spec.scalars.size(); ++i)
    block += "layout(offset = " + std::to_string(layout.offset[i]) + ") " + stored_type(spec.scalars[i].dtype) + " " + spec.scalars[i].name + "; ";
  if (options.params_in_buffer && !block.empty()) add("readonly ", block);
  if (spec.can_fail) add("", "tn_uint tn_error[];");
  if (!options.params_in_buffer && !block.empty()) out += "layout(push_constant) uniform TnParams { " + block + "};\n";
  return out;
}

std::string render_glsl(const KernelSpec& spec, const RenderOptions& options) {
  const std::string functions = library_for(spec.helpers + spec.body) + spec.helpers;
  std::string out = glsl_extensions(spec, functions + spec.body) + kText_glsl + lines_of_defines(spec);
  out += "layout(local_size_x = " + std::to_string(spec.group[0]) + ", local_size_y = " + std::to_string(spec.group[1]) +
         ", local_size_z = " + std::to_string(spec.group[2]) + ") in;\n";
  out += glsl_buffers(spec, options);
  for (const LocalSpec& l : spec.locals) out += std::string("shared ") + stored_type(l.dtype) + " " + l.name + "[" + l.count + "];\n";
  return out + functions + "void main() {\n" + spec.body + "}\n";
}

// The first thread that sees word 0 empty owns the report.
const char kFail[] =
    "#define TN_FAIL(code, a, b, c) { if (TN_ATOMIC_CAS_U32(tn_error[0], 0u, code) == 0u) { tn_error[1] = a; tn_error[2] = b; tn_error[3] = c; } }\n";

}  // namespace

RenderOptions render_options(const KernelSpec& spec, const Caps& caps) {
  return {caps.dialect, param_layout(spec).bytes > caps.param_bytes};
}

std::string render(const KernelSpec& spec, const RenderOptions& options) {
  if (!spec.can_fail) return options.dialect == Dialect::Glsl ? render_glsl(spec, options) : render_c(spec, options);
  KernelSpec with_fail = spec;
  with_fail.helpers.insert(0, kFail);
  return options.dialect == Dialect::Glsl ? render_glsl(with_fail, options) : render_c(with_fail, options);
}

}  // namespace tenon::gpu
