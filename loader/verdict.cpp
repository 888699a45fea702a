#include "loader/verdict.h"

#include <utility>

#include "kernel/absent.h"

namespace tenon::loader {
namespace {

static_assert(uint32_t(Code::MissingDependency) == kernel::verdicts::kMissingDependency && uint32_t(Code::OpenUnavailable) == kernel::verdicts::kOpenUnavailable &&
              uint32_t(Code::DuplicateOf) == kernel::verdicts::kDuplicateOf && uint32_t(Code::Unloaded) == kernel::verdicts::kUnloaded);

struct Row {
  Code code;
  const char* name;
  Stage stage;
  const char* title;
};

constexpr Row kRows[] = {
#define X(code, name, text, stage, title) {Code::name, text, Stage::stage, title},
#include "loader/verdicts.def"
#undef X
};

const Row& row(Code code) {
  for (const Row& r : kRows) {
    if (r.code == code) return r;
  }
  return kRows[0];
}

}  // namespace

Verdict verdict(Code code, std::string cause, int64_t native_code) {
  return {code, row(code).stage, std::move(cause), native_code};
}

const char* code_name(Code code) { return row(code).name; }
const char* code_title(Code code) { return row(code).title; }

const char* stage_name(Stage stage) {
  constexpr const char* kNames[] = {"", "find", "trust", "dedupe", "cold", "probe", "open", "query", "validate", "start"};
  const auto at = static_cast<uint32_t>(stage);
  return at < std::size(kNames) ? kNames[at] : "";
}

tn_status status_of(Code code) {
  switch (code) {
    case Code::InUse: return TN_OK;
    case Code::NotFound: return TN_E_NOT_FOUND;
    case Code::Unreadable: case Code::NotAllowed: return TN_E_DENIED;
    case Code::AbiRange: case Code::BadTable: case Code::QueryRefused: case Code::BadRecord: return TN_E_ABI;
    case Code::CpuNeed: case Code::MissingDependency: case Code::OpenUnavailable: case Code::WrongTarget: return TN_E_UNAVAILABLE;
    case Code::DuplicateOf: return TN_E_EXISTS;
    case Code::OpenError: case Code::CrashedInProbe: return TN_E_FAILED;
    case Code::ProbeTimeout: return TN_E_TIMEOUT;
    case Code::Unloaded: return TN_E_STATE;
    case Code::RelativePath: return TN_E_ARG;
    case Code::ProbeFailed: return TN_E_UNAVAILABLE;
    case Code::CannotIsolate: return TN_E_UNSUPPORTED;
    default: return TN_E_IO;
  }
}

const char* advice(Code code) {
  switch (code) {
    case Code::NotAPlugin: case Code::BadElf: case Code::EmptyFile: case Code::NotRegularFile:
      return "remove it from the plugin folder, or install the plugin again";
    case Code::Unreadable: return "give the user who runs the program read permission";
    case Code::WrongTarget: return "install the plugin's build for this machine";
    case Code::AbiRange: return "update the older of the two, or remove the plugin";
    case Code::CpuNeed: return "install a build of the plugin for an older processor";
    case Code::MissingDependency: return "install the library named above";
    case Code::OpenFailed: return "run ldd -r on the file and install what it misses";
    case Code::DuplicateOf: return "remove one of the two files";
    case Code::Untrusted: return "make it writable by its owner alone";
    case Code::NotAllowed: return "add the plugin's id or checksum to the allow list";
    case Code::CrashedInProbe: case Code::ProbeTimeout: return "update it or its driver; `tenon plugins --forget ID` tries it again";
    case Code::ProbeFailed: return "repair the installation, or set loader.probe=on";
    case Code::CannotIsolate: return "take it out of loader.isolate and TENON_ISOLATE, or repair the installation";
    case Code::RelativePath: return "write the folder with its full path, or take the entry out";
    case Code::OpenUnavailable: return "install the driver named above, or run on another device";
    case Code::NotFound: return "correct the path";
    case Code::Unloaded: return "load it again";
    case Code::InUse: return "";
    default: return "report this to the plugin's author";
  }
}

}  // namespace tenon::loader
