// The `tenon` command: reads the command line, runs one command, prints what went wrong.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <tenon/core/error.hpp>

#include "tools/tenon/commands.h"
#include "tools/tenon/common/args.h"
#include "tools/tenon/common/context.h"
#include "tools/tenon/common/failure.h"

namespace tenon::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 a device, driver, plugin or program that is required is absent.\n"
    "Colours are off when the output is no terminal or NO_COLOR is set.";

std::string indent(const std::string& lines) {
  std::string out = "  ";
  for (char c : lines) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

struct Entry {
  const Command* command;
  CLI::App* app;
  Run run;
};

Entry add(CLI::App& root, const Command& command, Context& context) {
  CLI::App* app = root.add_subcommand(command.name, command.summary);
  Args args(*app);
  Entry entry{&command, app, command.setup(args)};
  args.flag("--json", &context.json, "print JSON, one object a line");
  if (command.uses & kUsesDevice) {
    args.option("--device", &context.device_spec, "NAME:INDEX, auto, or a list in order of preference: sim:0,cpu:0");
    args.choice("--policy", &context.policy, {"prefer", "require", "no-expand"}, "prefer: may run elsewhere; require: else fail; no-expand: only a kernel made for the op");
    args.option("--threads", &context.threads, "threads of the CPU pool; 0: one a core", 0, 4096);
  }
  app->footer(std::string("Examples:\n") + indent(command.examples) + "\n" + kExitCodes);
  return entry;
}

ErrorText usage_text(const CLI::ParseError& error, const std::vector<Entry>& entries, int argc, char** argv) {
  std::vector<std::string> names;
  for (const Entry& e : entries) names.push_back(e.command->name);
  const std::string word = argc > 1 ? argv[1] : "";
  const bool known = std::find(names.begin(), names.end(), word) != names.end();
  if (!known && !word.empty() && word[0] != '-') {
    const std::string near = nearest_name(word, names.data(), names.size());
    return {"TN-CLI-001", "no command is called \"" + word + "\"", "", std::to_string(names.size()) + " commands are known",
            near.empty() ? "tenon --help" : "tenon " + near};
  }
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));
  return {"TN-CLI-002", "the command line is not understood", known ? "tenon " + word : "tenon", what,
          "tenon " + (known ? word + " " : std::string()) + "--help"};
}

// What was printed must have arrived: a full disk is a failure, a reader that went away is not.
int finish(const Context& context, int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  if (errno == EPIPE) return code;
  print_error(context, {"TN-CLI-010", "the output could not be written", "standard output", std::strerror(errno), "free space on the disk, or write elsewhere"});
  return code == kDone ? static_cast<int>(kFailed) : code;
}

int guarded_run(const Run& run, Context& context) {
  try {
    return run(context);
  } catch (const Failure& failure) {
    std::fflush(stdout);
    print_error(context, failure.text());
    return failure.exit_code();
  } catch (const Error& error) {
    std::fflush(stdout);
    print_error(context, text_of(error));
    return exit_code_of(error);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    print_error(context, {"TN-CLI-011", "an unexpected failure", "", error.what(), "run `tenon doctor`, and report this if it finds nothing"});
    return kFailed;
  }
}

int run_main(int argc, char** argv) {
  Context context;
  context.program = argv[0];
  CLI::App root("Tenon: finds what this machine can compute on, says why a kernel was chosen, trains and runs models.", "tenon");
  root.set_version_flag("--version", "tenon " TENON_VERSION);
  root.require_subcommand(1);
  root.footer(std::string("`tenon COMMAND --help` shows options and examples of one command.\n") + kExitCodes);
  std::vector<Entry> entries;
  for (const Command* command : commands()) entries.push_back(add(root, *command, context));
  // Known before parsing, so that errors of usage come in the form that was asked for.
  for (int i = 1; i < argc; ++i) context.json |= std::strcmp(argv[i], "--json") == 0;
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    return finish(context, root.exit(shown));
  } catch (const CLI::ParseError& error) {
    if (argc <= 1) {
      std::fputs(root.help().c_str(), stderr);
      return kUsage;
    }
    print_error(context, usage_text(error, entries, argc, argv));
    return kUsage;
  }
  for (const Entry& entry : entries)
    if (entry.app->parsed()) return finish(context, guarded_run(entry.run, context));
  return kUsage;
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return tenon::cli::run_main(argc, argv);
}
