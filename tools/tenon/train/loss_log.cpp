#include "tools/tenon/train/loss_log.h"

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <tenon/io/file.hpp>
#include <tenon/io/tensors.hpp>

namespace tenon::cli {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

std::string lines_up_to(const std::string& path, int64_t step) {
  const auto text = io::read_file(path, kMostBytes);
  std::string kept, line;
  if (!text) return kept;
  std::istringstream in(*text);
  while (std::getline(in, line)) {
    long long number = 0;
    if (std::sscanf(line.c_str(), "{\"step\":%lld", &number) == 1 && number <= step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

LossLog::LossLog(const std::string& path, int64_t first) {
  if (path.empty()) return;
  const std::string kept = first > 0 ? lines_up_to(path, first) : "";
  throw_if_failed(io::write_file(path, kept), Where{"", 0});
  file_.reset(std::fopen(path.c_str(), "ae"));
  if (!file_) throw_if_failed(io::errno_status(path, "open", errno), Where{"", 0});
}

void LossLog::on_losses(std::span<const train::StepLoss> losses) {
  if (!file_) return;
  for (const train::StepLoss& s : losses)
    std::fprintf(file_.get(), "{\"step\":%lld,\"loss\":%.17g,\"valid\":%lld}\n", static_cast<long long>(s.step), s.loss, static_cast<long long>(s.valid));
  std::fflush(file_.get());
}

}  // namespace tenon::cli
