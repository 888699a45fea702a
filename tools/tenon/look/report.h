// tools/tenon/look/report.h - one file to attach to a bug report.
#pragma once
#include <string>

#include "tools/tenon/common/context.h"
#include "tools/tenon/look/checks.h"

namespace tenon::cli {

// JSON, one object a line: versions, findings, every plugin file's verdict, devices with their capabilities, and the
// environment variables that steer Tenon and drivers. Holds no user, host or home folder name: a path below the home folder
// begins with "~". Throws Failure or Error when the file cannot be written.
void write_report(Context& context, const Findings& findings, const std::string& path);

// The text without what names a person or a machine: "~", "(host)" and "(user)" stand in their places.
std::string discreet(const std::string& text);
std::string distribution_name();  // "Debian GNU/Linux 12 (bookworm)"

}  // namespace tenon::cli
