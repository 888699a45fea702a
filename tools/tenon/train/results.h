// tools/tenon/train/results.h - results of training and evaluation as text and JSON.
#pragma once
#include <string>
#include <tenon/train/trainer.hpp>
#include <vector>

#include "tools/tenon/common/context.h"
#include "tools/tenon/common/json.h"

namespace tenon::cli {

std::string percent(double share, int digits = 2);  // 0.9231 -> "92.31 %"
std::string count_text(double n);                   // "60,000"
void print_class_table(const Context& context, const train::Evaluation& e, const std::vector<std::string>& names);
JsonRow evaluation_json(const train::Evaluation& e, const std::vector<std::string>& names);

}  // namespace tenon::cli
