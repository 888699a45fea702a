// tenon/train/progress.hpp - progress for people: one line that is redrawn on a terminal, a line now and then elsewhere.
//
//   train::ProgressBar bar(stderr);   trainer.add(bar);
//
//   epoch 2/4 [========>       ]  55%  loss 0.2871  acc 89.4%  8,431 img/s  busy 93%  mem 38 MiB  eta 0:21
#pragma once
#include <tenon/train/trainer.hpp>

#include <cstdio>

namespace tenon::train {

struct ProgressStyle {
  bool redraw = false;      // the stream is a terminal
  bool color = false;
  int width = 80;           // columns; the line never takes more
};
// What suits a stream: a terminal is redrawn, NO_COLOR and TERM=dumb are honoured, the width is asked for.
ProgressStyle style_of(std::FILE* stream);
// The line, without its end. Pure. Parts are left out from the right until it fits.
std::string progress_line(const Progress& progress, const ProgressStyle& style);
std::string duration_text(double seconds);  // "0:07", "1:02:03"

class ProgressBar final : public Callback {
 public:
  explicit ProgressBar(std::FILE* stream = stderr) : ProgressBar(stream, style_of(stream)) {}
  ProgressBar(std::FILE* stream, ProgressStyle style) : stream_(stream), style_(style) {}
  ~ProgressBar() override { clear(); }
  void on_progress(const Progress& progress) override;
  void on_epoch(const EpochReport& report) override;
  void on_checkpoint(int64_t step, const std::string& directory) override;
  void on_end(const FitReport& report) override;

 private:
  void clear();
  void print(const std::string& line);
  std::FILE* stream_;
  ProgressStyle style_;
  bool drawn_ = false;
  double last_s_ = 0;
};

}  // namespace tenon::train
