// loader/verdict.h - the end of one file's way through the handshake: where it ended, how, and why.
//
//   Verdict v = verdict(Code::CpuNeed, "needs avx512f; this processor and system have sse4_2 avx avx2");
//   code_name(v.code) -> "cpu-need"; written TN-LOAD-008 in messages, explained in docs/errors/TN-LOAD.md
//
// `cause` holds values of both sides. Codes and their numbers: verdicts.def.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <string>

namespace tenon::loader {

// The steps of the handshake, in order; tn_plugin_entry.stage. Trust and Probe belong to policies that a runtime may be
// asked for.
enum class Stage : uint32_t { Find = 1, Trust, Dedupe, Cold, Probe, Open, Query, Validate, Start };

enum class Code : uint32_t {
#define X(code, name, text, stage, title) name = code,
#include "loader/verdicts.def"
#undef X
};

struct Verdict {
  Code code = Code::InUse;
  Stage stage = Stage::Start;
  std::string cause;           // empty when in use
  int64_t native_code = 0;     // errno or a driver's number, where one is behind it

  bool good() const { return code == Code::InUse; }
};

// A verdict at the stage that verdicts.def gives for the code.
Verdict verdict(Code code, std::string cause = {}, int64_t native_code = 0);

const char* code_name(Code code);    // "abi-range"
const char* code_title(Code code);   // "plugin and host share no ABI version"
const char* stage_name(Stage stage); // "cold"

// What a call that asked for exactly this file returns.
tn_status status_of(Code code);

// What to do about it, as one imperative sentence.
const char* advice(Code code);

}  // namespace tenon::loader
