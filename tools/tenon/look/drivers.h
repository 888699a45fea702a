// tools/tenon/look/drivers.h - the drivers of this machine: what lies there, what each says when it is started, and why one
// cannot be used. Nothing here loads a driver into this process: survey() reads files, ask_drivers() starts children.
//
//   const Survey seen = survey({});                                   // files of "/", variables of this process
//   const std::vector<DriverAnswer> said = ask_drivers(jobs_of(seen), {});
//   explain_drivers(seen, said, person_of({}), &findings);            // pure: what to show, and what to type
//
// One thread. Errors are findings; nothing throws.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/tenon/look/checks.h"

namespace tenon::cli {

// ---- what lies on the machine ---------------------------------------------------------------------------------------
// Where to look. `root` stands before every path of the system; tests give a folder of their own.
struct Place {
  std::string root;
  std::map<std::string, std::string> variables;
  static Place here();  // "/" and this process's variables; none of them where it runs with raised rights
};

// A node of /dev, or a file: who may open it.
struct DeviceNode {
  std::string path, owner, group;  // names, or numbers where no name is known
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  dev_t number = 0;
};

// A file that names a driver: FILE.icd of OpenCL, a JSON manifest of Vulkan.
struct VendorFile {
  std::string interface;       // "opencl", "vulkan"
  std::string path, library;   // library: as a program would open it; empty when the file is of no use
  std::string fault;           // why not
  int error = 0;               // errno when the file itself could not be read
  std::optional<DeviceNode> refused;  // whose it is, where that was the cause
};

struct PciDevice {
  std::string address;             // "0000:65:00.0"
  uint32_t vendor = 0, device = 0, kind = 0;  // kind: class code, 0x030000
  std::string driver;              // of the kernel; empty: none is bound
};

struct Survey {
  std::vector<VendorFile> vendor_files;
  std::vector<std::string> opencl_places, vulkan_places;  // folders and files that were looked at, there or not
  std::vector<DeviceNode> nodes;                          // of /dev: nvidia*, kfd, dri/renderD*
  std::vector<PciDevice> hardware;                        // displays and accelerators of makers of whom backends are known
  std::string nvidia_version;                             // of the kernel's driver; empty: not loaded
  std::string nvidia_library_version;                     // "535.129.03" of libcuda.so.1's file; empty: unknown
  std::optional<DeviceNode> pocl_blocked;                 // PoCL cannot make its cache below this folder, and offers no device then
  std::map<std::string, std::string> filters;             // interface -> name of a variable that limits what it shows
  std::string identity;                                   // all that an answer depends on beside the libraries themselves
};
Survey survey(const Place& place);

// ---- what the drivers say -------------------------------------------------------------------------------------------
struct DriverDevice {
  std::string platform, name, type, version, driver, pci;
  uint64_t memory_bytes = 0;
  bool software = false;
};

struct Fault {
  Reason reason = Reason::none;
  std::string why;
  std::map<std::string, std::string> more;  // library, needed_by, path, code, have, need, signal, stage
};

struct DriverJob {
  std::string kind;                    // of tools/drivers/protocol.h
  std::vector<std::string> names;
  std::string source;                  // the vendor file, or empty
};
std::vector<DriverJob> jobs_of(const Survey& survey);

struct DriverAnswer {
  DriverJob job;
  std::vector<DriverDevice> devices;
  std::vector<Fault> faults;
  std::string rows;      // as the child wrote them
  bool kept = false;     // from an earlier run: nothing was started
};

struct AskOptions {
  std::string program;            // tenon-drivers
  std::string folder;             // of kept answers; empty: none
  std::string identity;           // Survey::identity
  uint32_t timeout_ms = 10000;    // of each stage of each driver
  bool again = false;             // kept answers are not used
  bool bare = false;              // raised rights: children get no variable of the user
  std::vector<std::string> variables;  // "NAME=value", for children that do not have them yet
};
// All at once; blocks no longer than three times the time limit. The answers are in the order of the jobs.
std::vector<DriverAnswer> ask_drivers(const std::vector<DriverJob>& jobs, const AskOptions& options);
DriverAnswer read_answer(const DriverJob& job, const std::string& rows);

std::string kept_answer(const AskOptions& options, const DriverJob& job);  // rows, or empty
void keep_answer(const AskOptions& options, const DriverAnswer& answer);

// ---- what to show ---------------------------------------------------------------------------------------------------
// Who runs the command: whose rights are in question.
struct Person {
  std::string name;
  uid_t uid = 0;
  std::vector<gid_t> groups;         // of this process
  std::vector<gid_t> member_of;      // as the list of groups says: may be newer than this process
  static Person here();
};

struct Shown {
  std::vector<std::string> used;      // names of Tenon's devices: "cpu:0"
  std::vector<std::string> required;  // interfaces whose driver must work: "opencl"
};
void explain_drivers(const Survey& seen, const std::vector<DriverAnswer>& said, const Person& person, const Shown& shown, Findings* out);

// Parts of it.
void explain_hardware(const Survey& seen, Findings* out);
void explain_nodes(const Survey& seen, const std::vector<DriverAnswer>& said, const Person& person, Findings* out);

// Why this person may not open that node, and what to type.
Finding refused_node(const DeviceNode& node, const std::string& code, const Person& person);

}  // namespace tenon::cli
