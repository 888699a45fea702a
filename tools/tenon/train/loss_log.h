// tools/tenon/train/loss_log.h - the loss of every step in a file, one JSON object a line: {"step":137,"loss":0.41...}.
// Numbers are written with as many digits as reading them back exactly takes.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <tenon/train/trainer.hpp>

namespace tenon::cli {

class LossLog final : public train::Callback {
 public:
  // path "": nothing is written. A run that goes on behind step `first` keeps the lines up to it and drops the rest.
  LossLog(const std::string& path, int64_t first);
  void on_losses(std::span<const train::StepLoss> losses) override;

 private:
  struct Close { void operator()(std::FILE* f) const { std::fclose(f); } };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tenon::cli
