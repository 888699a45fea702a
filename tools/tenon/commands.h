// tools/tenon/commands.h - how a command of `tenon` is added: one file, one object, one line.
//
//   // tools/tenon/look/devices.cpp
//   namespace tenon::cli {
//   static Run setup(Args& args) {
//     auto all = std::make_shared<bool>(false);
//     args.flag("--all", all.get(), "emulated devices too");
//     return [all](Context& context) { ...; return kDone; };
//   }
//   extern const Command command_devices{"devices", "List the devices of this machine.", "tenon devices --json", 0, setup};
//   }
//
// and the line X(devices) in tools/tenon/commands.def. Sources are found by a glob of tools/tenon/*/*.cpp. A name in
// commands.def whose object is not linked is left out, so that a line may stand before its file does.
// Run returns an ExitCode, or throws tenon::Error or cli::Failure, which main prints.
#pragma once
#include <functional>
#include <vector>

namespace tenon::cli {

class Args;
class Context;

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,   // what was asked for could not be done; the error says why
  kUsage = 2,    // the command line is not understood
  kMissing = 3,  // a device, driver, plugin or program that is required is absent
};

using Run = std::function<int(Context&)>;

// Common options that a command takes beside --json, which all have.
enum Uses : unsigned { kUsesNothing = 0, kUsesDevice = 1 /* --device, --policy, --threads */ };

struct Command {
  const char* name;
  const char* summary;   // one sentence, shown by `tenon --help`
  const char* examples;  // command lines, one a line, shown below the options
  unsigned uses;         // Uses
  Run (*setup)(Args& args);  // declares options; called for every command before the command line is read: make nothing
};

// The linked ones, in the order of commands.def.
std::vector<const Command*> commands();

}  // namespace tenon::cli
