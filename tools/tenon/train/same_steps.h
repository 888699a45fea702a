// tools/tenon/train/same_steps.h - the same training steps on two devices, loss by loss.
#pragma once
#include <vector>

#include "tools/tenon/train/workshop.h"

namespace tenon::cli {

struct SameSteps {
  std::vector<double> a, b;       // losses
  double largest_difference = 0;  // relative, over all steps
};
// `steps` steps of a network on both devices, from one state and on the same batches. Blocks.
SameSteps compare_devices(const ModelCard& card, std::shared_ptr<const data::Dataset> dataset, Device a, Device b, int64_t steps, uint32_t batch, double lr);

}  // namespace tenon::cli
