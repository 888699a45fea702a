// Progress in text.
#include <sys/ioctl.h>
#include <tenon/train/progress.hpp>
#include <unistd.h>

#include "framework/core/state.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tenon::train {
namespace {

using detail::format;

std::string grouped(double value) {
  std::string digits = format("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string bytes_text(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 1048576;
  return mib < 1024 ? format("%.0f MiB", mib) : format("%.1f GiB", mib / 1024);
}

std::string bar(double share, int cells) {
  const int full = std::clamp(static_cast<int>(share * cells), 0, cells);
  std::string text(static_cast<size_t>(full), '=');
  if (full < cells) text += '>';
  text.resize(static_cast<size_t>(cells), ' ');
  return "[" + text + "]";
}

}  // namespace

ProgressStyle style_of(std::FILE* stream) {
  ProgressStyle style;
  const char* terminal = std::getenv("TERM");
  const char* off = std::getenv("NO_COLOR");
  const bool dumb = terminal == nullptr || std::string(terminal) == "dumb";
  style.redraw = isatty(fileno(stream)) && !dumb;
  style.color = style.redraw && (off == nullptr || *off == 0);
  winsize size{};
  if (style.redraw && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const long long s = std::llround(seconds);
  return s < 3600 ? format("%lld:%02lld", s / 60, s % 60) : format("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

std::string progress_line(const Progress& p, const ProgressStyle& style) {
  const double share = p.total_steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.total_steps) : 0;
  std::vector<std::string> parts = {
      format("epoch %lld/%lld", static_cast<long long>(std::min(p.epoch + 1, p.epochs)), static_cast<long long>(p.epochs)),
      bar(share, 16) + format(" %3.0f%%", 100 * share), format("loss %.4f", p.loss)};
  if (p.epoch_accuracy.denominator > 0) parts.push_back(format("acc %.1f%%", 100 * p.epoch_accuracy.value()));
  if (p.eta_s >= 0) parts.push_back("eta " + duration_text(p.eta_s));
  if (p.images_per_s > 0) parts.push_back(grouped(p.images_per_s) + " img/s");
  if (p.busy_share >= 0) parts.push_back(format("busy %.0f%%", 100 * p.busy_share));
  if (p.memory_bytes > 0) parts.push_back("mem " + bytes_text(p.memory_bytes));
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 2 + part.size() > static_cast<size_t>(style.width) - 1) break;
    line += (line.empty() ? "" : "  ") + part;
  }
  return line;
}

void ProgressBar::clear() {
  if (drawn_) std::fputs("\r\033[K", stream_);
  drawn_ = false;
}

void ProgressBar::print(const std::string& line) {
  clear();
  std::fprintf(stream_, "%s\n", line.c_str());
  std::fflush(stream_);
}

void ProgressBar::on_progress(const Progress& p) {
  constexpr double kQuietSeconds = 10;  // between two lines of a log
  if (!style_.redraw) {
    if (p.elapsed_s - last_s_ < kQuietSeconds) return;
    last_s_ = p.elapsed_s;
    print(progress_line(p, style_));
    return;
  }
  const std::string line = progress_line(p, style_);
  std::fprintf(stream_, style_.color ? "\r\033[K\033[36m%s\033[0m" : "\r\033[K%s", line.c_str());
  std::fflush(stream_);
  drawn_ = true;
}

void ProgressBar::on_epoch(const EpochReport& e) {
  print(format("epoch %lld: loss %.4f, accuracy %.2f %%, %s", static_cast<long long>(e.epoch), e.loss.value(), 100 * e.accuracy.value(),
               duration_text(e.seconds).c_str()));
}

void ProgressBar::on_checkpoint(int64_t step, const std::string& directory) {
  print(format("step %lld: checkpoint %s", static_cast<long long>(step), directory.c_str()));
}

void ProgressBar::on_end(const FitReport&) { clear(); }

}  // namespace tenon::train
