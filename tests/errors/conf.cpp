// TN-CONF: settings of a run.
#include "tests/errors/tables.h"
#include "tools/config/config.h"

namespace tenon::errors {
namespace {

Said flags(const std::vector<std::string>& words) { return said(config::load({}, words)); }
Said toml(const std::string& text) {
  config::TrainConfig c;
  auto entries = config::read_toml(text, "run.toml");
  return entries ? said(config::apply_entries(*entries, &c)) : said(entries);
}

}  // namespace

Table conf_cases() {
  return {
      {"TN-CONF-001", "in a file", [] { return toml("[optimiser]\nlr = 0.1\n"); }},
      {"TN-CONF-001", "of a flag", [] { return flags({"--optimiser.lr=0.1"}); }},
      {"TN-CONF-001", "near nothing", [] { return flags({"--qqqqqqqqqq=1"}); }},
      {"TN-CONF-002", "in a file", [] { return toml("epochs = \"2\"\n"); }},
      {"TN-CONF-002", "of a flag", [] { return flags({"--epochs=two"}); }},
      {"TN-CONF-002", "of a table", [] { return toml("optimizer = 3\n"); }},
      {"TN-CONF-003", "", [] { return flags({"--epochs=0"}); }},
      {"TN-CONF-003", "of a text", [] { return flags({"--out=\xff"}); }},
      {"TN-CONF-004", "", [] { return flags({"--optimizer.name=addam"}); }},
      {"TN-CONF-004", "of networks", [] { return flags({"--model.preset=lennet"}); }},
      {"TN-CONF-005", "TOML", [] { return toml("epochs =\n"); }},
      {"TN-CONF-005", "JSON", [] { return said(config::read_json("{\"epochs\": }", "run.json")); }},
      {"TN-CONF-006", "", [] { return flags({"--epochs=1", "--epochs=2"}); }},
      {"TN-CONF-007", "two networks", [] { return flags({"--model.preset=cnn", "--model.layers=flatten,linear 10"}); }},
      {"TN-CONF-007", "no network", [] { return flags({"--model.preset="}); }},
      {"TN-CONF-007", "no data", [] { return flags({"--data.dir="}); }},
      {"TN-CONF-007", "no folder", [] { return flags({"--checkpoint.every=5"}); }},
      {"TN-CONF-008", "", [] { return flags({"--epochs"}); }},
      {"TN-CONF-008", "two files", [] { return said(config::load({"a.toml", "b.toml"}, {})); }},
  };
}

}  // namespace tenon::errors
