#include "tools/tenon/train/results.h"

#include <cstdio>

namespace tenon::cli {

std::string percent(double share, int digits) {
  char text[32];
  if (!(share == share)) return "-";
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

std::string count_text(double n) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", n);
  std::string digits = text;
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

void print_class_table(const Context& context, const train::Evaluation& e, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows = {{"class", "name", "samples", "right", "recall", "precision"}};
  for (size_t i = 0; i < e.classes.size(); ++i) {
    const train::ClassCount& c = e.classes[i];
    rows.push_back({std::to_string(i), i < names.size() ? names[i] : "-", count_text(static_cast<double>(c.samples)),
                    count_text(static_cast<double>(c.correct)), percent(c.recall().value(), 1), percent(c.precision().value(), 1)});
  }
  print_table(context, rows);
}

JsonRow evaluation_json(const train::Evaluation& e, const std::vector<std::string>& names) {
  std::vector<JsonRow> classes;
  for (size_t i = 0; i < e.classes.size(); ++i) {
    JsonRow row;
    row.add("class", i);
    if (i < names.size()) row.add("name", names[i]);
    row.add("samples", e.classes[i].samples).add("correct", e.classes[i].correct).add("predicted", e.classes[i].predicted);
    classes.push_back(row);
  }
  JsonRow row;
  row.add("accuracy", e.accuracy.value()).add("correct", static_cast<int64_t>(e.accuracy.numerator));
  row.add("samples", static_cast<int64_t>(e.accuracy.denominator)).add("loss", e.loss.value());
  row.add("seconds", e.seconds).add("images_per_s", e.images_per_s).add("classes", classes);
  return row;
}

}  // namespace tenon::cli
