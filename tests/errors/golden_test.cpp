// Every error says what its golden text says: id, what, why, try and where. One table of cases for each family.
#include <gtest/gtest.h>

#include "tests/errors/golden.h"
#include "tests/errors/tables.h"

namespace tenon::errors {
namespace {

void check(const std::string& family, Table table) {
  for (Case& c : packed_cases())
    if (std::string(c.id).starts_with(family + "-")) table.push_back(std::move(c));
  Golden golden(family);
  for (const Case& c : table) {
    Said s;
    try {
      s = c.provoke();
    } catch (const std::exception& e) {
      s = {"an exception", e.what(), "", "", ""};
    }
    EXPECT_EQ(golden.compare(c, s), "");
  }
  if (golden.updating()) return golden.write();
  EXPECT_EQ(golden.left_over(), std::vector<std::string>{}) << "golden texts of " << family << " that no case provokes";
}

TEST(Errors, of_abi_say_their_golden_texts) { check("TN-ABI", abi_cases()); }
TEST(Errors, of_arg_say_their_golden_texts) { check("TN-ARG", arg_cases()); }
TEST(Errors, of_conf_say_their_golden_texts) { check("TN-CONF", conf_cases()); }
TEST(Errors, of_data_say_their_golden_texts) { check("TN-DATA", data_cases()); }
TEST(Errors, of_device_say_their_golden_texts) { check("TN-DEVICE", device_cases()); }
TEST(Errors, of_dtype_say_their_golden_texts) { check("TN-DTYPE", dtype_cases()); }
TEST(Errors, of_file_say_their_golden_texts) { check("TN-FILE", file_cases()); }
TEST(Errors, of_grad_say_their_golden_texts) { check("TN-GRAD", grad_cases()); }
TEST(Errors, of_load_say_their_golden_texts) { check("TN-LOAD", load_cases()); }
TEST(Errors, of_mem_say_their_golden_texts) { check("TN-MEM", mem_cases()); }
TEST(Errors, of_op_say_their_golden_texts) { check("TN-OP", op_cases()); }
TEST(Errors, of_shape_say_their_golden_texts) { check("TN-SHAPE", shape_cases()); }
TEST(Errors, of_state_say_their_golden_texts) { check("TN-STATE", state_cases()); }
TEST(Errors, of_train_say_their_golden_texts) { check("TN-TRAIN", train_cases()); }

}  // namespace
}  // namespace tenon::errors
