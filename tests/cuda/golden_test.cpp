// Every error of the shared host source says what its golden text says: tests/errors/golden/TN-DEVICE-<plugin>.txt, in the form of
// that folder. TENON_GOLDEN_UPDATE=1 writes the file.
#include <fstream>
#include <functional>
#include <set>

#include "backends/gpu_common/cu_like/errors.h"
#include "tests/cuda/route.h"

namespace tenon::gpu::test {
namespace {
using namespace cu_like;

class Golden : public Route {
 protected:
  Golden() : path_(std::string(TENON_GOLDEN_DIR "/TN-DEVICE-") + driver_name() + ".txt") {
    std::ifstream in(path_);
    std::string line, key;
    while (std::getline(in, line)) {
      if (line.rfind("[TN-", 0) == 0) key = line.substr(1, line.size() - 2);
      else if (!line.empty()) golden_[key] += line + "\n";
    }
  }

  // What failed, from a fresh driver with nothing set.
  void expect(uint32_t id, const std::string& label, const std::function<tn_status()>& provoke) {
    stream_.reset(), device_.reset(), driver_.reset();
    Double::get().reset();
    diag_ = {};
    const tn_status status = provoke();
    const std::string key = "TN-DEVICE-" + std::to_string(id & 0xFFFF) + (label.empty() ? "" : " " + label);
    EXPECT_EQ(diag_.id, id) << key << ": " << diag_.msg;
    EXPECT_EQ(diag_.status, status) << key;
    EXPECT_LT(diag_.len + 1, sizeof diag_.msg) << key << " is cut: " << diag_.msg;
    std::string text = "what: " + std::string(diag_.msg) + "\n";
    for (const std::string& folder : {std::string(TENON_BUILD_DIR)})
      for (size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "DIR");
    seen_[key] = text;
    Double::get().reset();
  }
  void finish_golden() {
    if (std::getenv("TENON_GOLDEN_UPDATE") != nullptr) {
      std::ofstream out(path_);
      for (const auto& [key, text] : seen_) out << "[" << key << "]\n" << text << "\n";
    }
    else
      EXPECT_EQ(seen_, golden_);
  }

  const std::string path_;
  std::map<std::string, std::string> golden_, seen_;
};

TEST_F(Golden, texts_are_said) {
  const auto with = [&](const char* cuda_key, const char* rocm_key, const char* value) {
    return [=, this] {
      const auto before = config_;
      config_[is_cuda() ? cuda_key : rocm_key] = value;
      const tn_status s = try_driver();
      config_ = before;
      return s;
    };
  };
  const auto starting = [&](int code) {
    return [=, this] {
      set("INIT", std::to_string(code));
      return try_driver();
    };
  };
  expect(kErrNoLibrary, "absent", with("cuda.libcuda", "rocm.libamdhip64", "/nowhere/libdriver.so"));
  expect(kErrNoLibrary, "old", with("cuda.libcuda", "rocm.libamdhip64", "libm.so.6"));
  expect(kErrNoStart, "old driver", starting(35));
  expect(kErrNoStart, "unknown", starting(999));
  if (is_cuda()) {
    expect(kErrNoStart, "stub", starting(34));
    expect(kErrNoStart, "not ready", starting(802));
  }
  expect(kErrNoDevice, "none", starting(100));
  expect(kErrNoDevice, "beyond the last", [&] {
    EXPECT_EQ(try_driver(), TN_OK);
    return driver_->open_device(3, &device_, &diag_);
  });
  expect(kErrNoCompiler, "absent", with("cuda.libnvrtc", "rocm.libhiprtc", "/nowhere/librtc.so"));
  expect(kErrNoCompiler, "other library", with("cuda.libnvrtc", "rocm.libhiprtc", "libm.so.6"));

  KernelSpec spec;
  spec.name = "one";
  std::string binary;
  expect(kErrCompile, "", [&] { return device().compile(spec, "#error planted", {}, &binary, &diag_); });
  expect(kErrArchitecture, "", [&] {
    set("ARCH", is_cuda() ? "sm_61" : "amd90");
    return device().compile(spec, "", {}, &binary, &diag_);
  });
  if (!is_cuda()) {
    expect(kErrCompilerProcess, "absent", with("", "rocm.hiprtc_helper", "/nowhere/tenon-hiprtc"));
    expect(kErrCompilerProcess, "bad time", with("", "rocm.compile_timeout_ms", "soon"));
    expect(kErrCompilerProcess, "abort", [&] {
      device();
      setenv("TENON_DOUBLE_COMPILER_FAULT", "abort", 1);
      const tn_status s = device().compile(spec, "", {}, &binary, &diag_);
      unsetenv("TENON_DOUBLE_COMPILER_FAULT");
      return s;
    });
  }
  expect(kErrDriverCall, "", [&] { return device().load(spec, {}, std::string(500, 'x'), nullptr, &diag_); });
  expect(kErrMemory, "device", [&] {
    Memory m;
    device();
    set("MEMORY", "1000");
    return device().alloc(2000, 64, false, &m, &diag_);
  });
  expect(kErrMemory, "pinned", [&] {
    Memory m;
    device();
    set("OOM_AT", "1");
    return device().alloc(2000, 64, true, &m, &diag_);
  });
  const char* const text = "extern \"C\" __global__ void __launch_bounds__(32) one() {}";
  expect(kErrLaunch, "", [&] {
    const auto k = kernel(spec, text);
    return launch(*k, {}, block(1u), 1, 32);
  });
  expect(kErrLost, "", [&] {
    const auto k = kernel(spec, text);
    set("LOST_AT", "1");
    EXPECT_EQ(launch(*k, {}, "", 1, 32), TN_OK);
    const tn_status s = finish();
    const tn_diag said = diag_;
    Double::get().reset();
    diag_ = said;
    return s;
  });
  expect(kErrNotDone, "", [&] {
    set("ASYNC", "20000");
    const Memory m = alloc(64);
    EXPECT_EQ(stream().fill_zero(m.handle, 0, 64, &diag_), TN_OK);
    const tn_status s = finish(1000);
    const tn_diag said = diag_;
    finish();
    diag_ = said;
    return s;
  });
  expect(kErrOtherDevice, "", [&]() -> tn_status {
    set("DEVICES", "2");
    std::unique_ptr<Device> other;
    std::unique_ptr<Stream> others;
    std::shared_ptr<Fence> fence;
    device();
    if (driver_->open_device(1, &other, &diag_) != TN_OK || other->open_stream(0, &others, &diag_) != TN_OK || others->fence(&fence, &diag_) != TN_OK) return TN_OK;
    return stream().wait(fence, &diag_);
  });
  finish_golden();
}

}  // namespace
}  // namespace tenon::gpu::test
