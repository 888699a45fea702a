// tenon/train/metrics.hpp - results as numerator and denominator, so that parts of any size add up exactly.
//
//   Ratio accuracy;  accuracy += {57, 64};  accuracy += {12, 16};   accuracy.value();   // 69 / 80, not the mean of means
//
// Rows whose label is ignored count in neither part.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace tenon::train {

struct Ratio {
  double numerator = 0, denominator = 0;
  Ratio& operator+=(const Ratio& o) {
    numerator += o.numerator;
    denominator += o.denominator;
    return *this;
  }
  double value() const { return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN(); }
  bool operator==(const Ratio&) const = default;
};

// One class of a classification: how many samples have it, how many of those were found, how often it was answered.
struct ClassCount {
  int64_t samples = 0, correct = 0, predicted = 0;
  Ratio recall() const { return {static_cast<double>(correct), static_cast<double>(samples)}; }
  Ratio precision() const { return {static_cast<double>(correct), static_cast<double>(predicted)}; }
  bool operator==(const ClassCount&) const = default;
};

// What evaluate() found.
struct Evaluation {
  Ratio loss, accuracy;
  std::vector<ClassCount> classes;
  double seconds = 0, images_per_s = 0;
};

}  // namespace tenon::train
