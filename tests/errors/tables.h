// tests/errors/tables.h - the tables of cases, one for each family.
#pragma once
#include "tests/errors/said.h"

namespace tenon::errors {

Table abi_cases();
Table arg_cases();
Table conf_cases();
Table data_cases();
Table device_cases();
Table dtype_cases();
Table file_cases();
Table grad_cases();
Table load_cases();
Table mem_cases();
Table op_cases();
Table packed_cases();  // of packed operands: ids of several families
Table shape_cases();
Table state_cases();
Table train_cases();

}  // namespace tenon::errors
