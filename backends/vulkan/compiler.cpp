// backends/vulkan/compiler.cpp - see compiler.h.
#include "backends/vulkan/compiler.h"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
#include <glslang/build_info.h>

#include <algorithm>
#include <memory>

#include "backends/vulkan/status.h"

namespace tenon::vulkan {
namespace {

struct DropShader {
  void operator()(glslang_shader_t* s) const { glslang_shader_delete(s); }
};
struct DropProgram {
  void operator()(glslang_program_t* p) const { glslang_program_delete(p); }
};

constexpr int kMessages = GLSLANG_MSG_DEFAULT_BIT | GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT;

// The lines of glslang's log that say something, as many as an error can carry.
std::string first_lines(const char* log) {
  std::string all = log != nullptr ? log : "", out;
  for (size_t at = 0; at < all.size() && out.size() < 140;) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    if (!line.empty()) out += (out.empty() ? "" : "; ") + line;
    at = end + 1;
  }
  return out.empty() ? "glslang gives no reason" : out;
}

tn_status refuse(const std::string& name, const char* stage, const char* log, tn_diag* diag) {
  return fail(diag, TN_E_FAILED, kErrText, VK_SUCCESS, "vulkan: %.48s does not compile (%s)\nwhy: %.110s\ntry: report it with this text", name.c_str(), stage, first_lines(log).c_str());
}

}  // namespace

Compiler::Compiler() { glslang_initialize_process(); }
Compiler::~Compiler() { glslang_finalize_process(); }

std::string Compiler::version() {
  return "glslang " + std::to_string(GLSLANG_VERSION_MAJOR) + "." + std::to_string(GLSLANG_VERSION_MINOR) + "." + std::to_string(GLSLANG_VERSION_PATCH);
}

tn_status Compiler::compile(const std::string& name, const std::string& text, std::string* binary, tn_diag* diag) const {
  glslang_input_t input{};
  input.language = GLSLANG_SOURCE_GLSL;
  input.stage = GLSLANG_STAGE_COMPUTE;
  input.client = GLSLANG_CLIENT_VULKAN;
  input.client_version = GLSLANG_TARGET_VULKAN_1_2;
  input.target_language = GLSLANG_TARGET_SPV;
  input.target_language_version = GLSLANG_TARGET_SPV_1_5;
  input.code = text.c_str();
  input.default_version = 450;
  input.default_profile = GLSLANG_NO_PROFILE;
  input.messages = static_cast<glslang_messages_t>(kMessages);
  input.resource = glslang_default_resource();
  const std::unique_ptr<glslang_shader_t, DropShader> shader(glslang_shader_create(&input));
  if (shader == nullptr) return refuse(name, "start", nullptr, diag);
  if (glslang_shader_preprocess(shader.get(), &input) == 0) return refuse(name, "preprocessing", glslang_shader_get_info_log(shader.get()), diag);
  if (glslang_shader_parse(shader.get(), &input) == 0) return refuse(name, "parsing", glslang_shader_get_info_log(shader.get()), diag);
  const std::unique_ptr<glslang_program_t, DropProgram> program(glslang_program_create());
  glslang_program_add_shader(program.get(), shader.get());
  if (glslang_program_link(program.get(), kMessages) == 0) return refuse(name, "linking", glslang_program_get_info_log(program.get()), diag);
  glslang_program_SPIRV_generate(program.get(), GLSLANG_STAGE_COMPUTE);
  const size_t words = glslang_program_SPIRV_get_size(program.get());
  if (words == 0) return refuse(name, "code generation", glslang_program_SPIRV_get_messages(program.get()), diag);
  binary->assign(reinterpret_cast<const char*>(glslang_program_SPIRV_get_ptr(program.get())), words * 4);
  return TN_OK;
}

}  // namespace tenon::vulkan
