// tools/drivers/say.h - the records that the child writes (protocol.h).
#pragma once
#include <cstdint>
#include <string>

#include "tools/drivers/protocol.h"
#include "tools/tenon/common/json.h"

namespace tenon::drivers {

using cli::JsonRow;

void stage(const char* name);
void used_files();  // every shared library that is mapped by now and was not said before
void fault(const char* reason, const std::string& why, const JsonRow& more = {});
void done();
std::string text(const Version& version);  // "1.2"

struct DeviceFacts {
  std::string platform, name, type, version, driver, pci;  // type: "gpu", "cpu", "accelerator", "virtual gpu", "other"
  uint64_t memory_bytes = 0;                               // 0: unknown
  bool software = false;                                   // the processor does its work
  uint32_t vendor_id = 0, device_id = 0;
};
void device(const DeviceFacts& facts);

}  // namespace tenon::drivers
