#include "tools/tenon/train/settings.h"

#include <CLI/CLI.hpp>
#include <tenon/io/tensors.hpp>

namespace tenon::cli {

void SettingsArgs::declare(Args& args) {
  app = &args.app();
  args.option("--data", &data, "folder of IDX files, or fashion-mnist; default: the configuration's");
  args.option("--config", &config_file, "TOML or JSON file with settings");
  args.pass_through(&rest);
}

std::vector<std::string> SettingsArgs::flags(const Context& context) const {
  std::vector<std::string> out;
  if (!data.empty()) out.push_back("--data.dir=" + data_folder(data));
  const auto given = [&](const char* name) { return app != nullptr && app->count(name) > 0; };
  if (given("--device")) out.push_back("--device=" + context.device_spec);
  if (given("--policy")) out.push_back("--policy=" + context.policy);
  if (given("--threads")) out.push_back("--threads=" + std::to_string(context.threads));
  for (size_t i = 0; i < rest.size(); ++i) {
    std::string flag = rest[i];  // "--epochs 2" is "--epochs=2"
    const bool has_value = flag.find('=') != std::string::npos;
    if (flag.starts_with("--") && !has_value && i + 1 < rest.size() && !rest[i + 1].starts_with("--")) flag += "=" + rest[++i];
    out.push_back(flag);
  }
  return out;
}

std::string data_folder(const std::string& name) { return name == "fashion-mnist" ? "/usr/share/datasets/fashion-mnist" : name; }

config::TrainConfig resolve(const SettingsArgs& args, const Context& context, const std::string& checkpoint_config) {
  const std::vector<std::string> flags = args.flags(context);
  config::TrainConfig settings;
  if (checkpoint_config.empty()) {
    settings = value_or_throw(config::load(args.config_file.empty() ? std::vector<std::string>{} : std::vector<std::string>{args.config_file}, flags), Where{"", 0});
  } else {
    throw_if_failed(config::apply_entries(value_or_throw(config::read_toml(checkpoint_config, "checkpoint"), Where{"", 0}), &settings), Where{"", 0});
    throw_if_failed(config::apply_entries(value_or_throw(config::read_flags(flags), Where{"", 0}), &settings), Where{"", 0});
    throw_if_failed(config::check(settings), Where{"", 0});
  }
  settings.data.dir = data_folder(settings.data.dir);
  return settings;
}

}  // namespace tenon::cli
