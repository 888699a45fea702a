// Which device the tests of an executable run on; see on_device.cpp.
#pragma once

namespace tenon::test {

const char* other_device();  // TENON_TEST_DEVICE; NULL = cpu:0, as always
void use_test_device();      // makes it the default device of the default runtime

}  // namespace tenon::test
