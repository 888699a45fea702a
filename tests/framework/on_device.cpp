// TENON_TEST_DEVICE=sim:0 makes another device the default of every test of the executable: the same expectations then hold
// where work is asynchronous and memory has no host address.
#include "tests/framework/on_device.h"

#include <gtest/gtest.h>
#include <tenon/tenon.hpp>

#include <cstdlib>

namespace tenon::test {

const char* other_device() {
  const char* name = std::getenv("TENON_TEST_DEVICE");
  return name != nullptr && *name != 0 ? name : nullptr;
}

void use_test_device() {
  if (other_device() != nullptr) set_default_device(default_runtime().device(other_device(), TN_POLICY_REQUIRE));
}

namespace {

class OnDevice final : public testing::Environment {
  void SetUp() override { use_test_device(); }
};
[[maybe_unused]] testing::Environment* const registered = testing::AddGlobalTestEnvironment(new OnDevice);

}  // namespace
}  // namespace tenon::test
