// tools/tenon/train/settings.h - the settings of a run, from a file, flags and the common options.
#pragma once
#include <memory>
#include <string>
#include <tenon/train/trainer.hpp>
#include <vector>

#include "tools/config/config.h"
#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"

namespace tenon::cli {

// What the command line gave. Everything that is no option of the command is a setting: "--optimizer.lr=0.1".
struct SettingsArgs {
  std::string data, config_file;
  std::vector<std::string> rest;
  CLI::App* app = nullptr;  // tells options that were given from defaults

  void declare(Args& args);
  // Flags in the form that tools/config reads, common options among them.
  std::vector<std::string> flags(const Context& context) const;
};

// "fashion-mnist" is Debian's dataset; anything else is a folder.
std::string data_folder(const std::string& name);
// Defaults, then the settings of a checkpoint (TOML text, "" none), then file and flags. Throws tenon::Error.
config::TrainConfig resolve(const SettingsArgs& args, const Context& context, const std::string& checkpoint_config);

}  // namespace tenon::cli
