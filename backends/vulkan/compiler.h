// backends/vulkan/compiler.h - GLSL to SPIR-V by glslang, in process.
#pragma once
#include <tenon/types.h>

#include <string>

namespace tenon::vulkan {

// Holds glslang's process-wide tables; any number may live. Threads: any, several compile at once.
class Compiler {
 public:
  Compiler();
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // A compute shader for Vulkan 1.2 to a SPIR-V module. errors: TN_E_FAILED with glslang's first lines.
  tn_status compile(const std::string& name, const std::string& text, std::string* binary, tn_diag*) const;
  static std::string version();  // "glslang 12.0.0"
};

}  // namespace tenon::vulkan
