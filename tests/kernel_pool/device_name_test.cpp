// What people write for devices, and which routes it means (D07).
#include "kernel/device_name.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace tenon::kernel;

namespace {

tn_device_info card(uint32_t domain, uint32_t bdf, uint8_t byte, uint32_t flags = TN_DEVICE_UUID_TRUSTED) {
  tn_device_info info{};
  info.flags = flags, info.pci_domain = domain, info.pci_bdf = bdf;
  for (uint8_t k = 0; k < 16; ++k) info.uuid[k] = static_cast<uint8_t>(byte + k);
  return info;
}

bool means(const char* text, const char* listed_as, const tn_device_info& info) {
  const auto name = parse_device_name(text);
  return name && names_device(*name, listed_as, info);
}

}  // namespace

TEST(DeviceName, is_a_place_in_the_list_with_or_without_a_number) {
  EXPECT_TRUE(means("cuda:1", "cuda:1", {}));
  EXPECT_FALSE(means("cuda:1", "cuda:10", {}));
  EXPECT_FALSE(means("cuda:1", "cuda:0", {}));
  EXPECT_TRUE(means("cuda", "cuda:0", {}));
  EXPECT_TRUE(means("cuda", "cuda:12", {}));
  EXPECT_FALSE(means("cuda", "cuda2:0", {}));
  EXPECT_FALSE(means("cud", "cuda:0", {}));
}

TEST(DeviceName, is_an_address_of_any_spelling) {
  const tn_device_info info = card(0, 0x6508, 1);  // bus 65, device 1, function 0
  for (const char* text : {"pci:0000:65:01.0", "pci:65:01.0", "pci:0:65:1.0"}) EXPECT_TRUE(means(text, "x:0", info)) << text;
  for (const char* text : {"pci:0001:65:01.0", "pci:65:00.0", "pci:65:01.1", "pci:66:01.0"}) EXPECT_FALSE(means(text, "x:0", info)) << text;
  EXPECT_TRUE(means("pci:10000:b3:1f.7", "x:0", card(0x10000, 0xb3 << 8 | 0x1f << 3 | 7, 1)));
  EXPECT_TRUE(means("pci:10000:B3:1F.7", "x:0", card(0x10000, 0xb3 << 8 | 0x1f << 3 | 7, 1)));
}

TEST(DeviceName, is_a_uuid_with_or_without_dashes) {
  const tn_device_info info = card(0, 0, 0xA0);
  for (const char* text : {"uuid:a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "uuid:a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "uuid:A0A1A2A3-A4A5-A6A7-A8A9-AAABACADAEAF"}) EXPECT_TRUE(means(text, "x:0", info)) << text;
  EXPECT_FALSE(means("uuid:a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00", "x:0", info));
  EXPECT_FALSE(means("uuid:a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "x:0", card(0, 0, 0xA0, 0)));  // not trusted
  tn_device_info zeros{};
  zeros.flags = TN_DEVICE_UUID_TRUSTED;
  EXPECT_FALSE(means("uuid:00000000000000000000000000000000", "x:0", zeros));  // some drivers' word for "none"
}

TEST(DeviceName, of_unknown_hardware_means_nothing) {
  EXPECT_FALSE(means("pci:0000:00:00.0", "x:0", {}));  // 0 is "unknown"
  EXPECT_FALSE(means("pci:0000:65:00.0", "x:0", card(0, 0x6500, 1, TN_DEVICE_PARTITION)));
}

TEST(DeviceName, that_is_none_is_refused) {
  for (const char* text : {"", ":", ":0", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:01", "cuda:99999999999", "cu da", "uuid:", "uuid:12", "uuid:g0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
                           "uuid:a0a1a2a3a-4a5-a6a7-a8a9-aaabacadaeaf", "uuid:a0a1a2a3a4a5a6a7a8a9aaabacadaeaf00", "uuid:+0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "pci:", "pci:65", "pci:65:00",
                           "pci:65.0:00", "pci:65:20.0", "pci:65:00.8", "pci:100:00.0", "pci:0:0:65:00.0", "pci:123456789:65:00.0", "pci::65:00.0", "pci:65:.0", "pci:65:00.", "pci:-1:00.0"})
    EXPECT_FALSE(parse_device_name(text)) << text;
}

TEST(DeviceName, is_written_as_it_is_read) {
  for (uint32_t bdf : {0x6508u, 0x0001u, 0xFFFFu, 0xb3ffu})
    for (uint32_t domain : {0u, 1u, 0x10000u}) {
      const tn_device_info info = card(domain, bdf, static_cast<uint8_t>(bdf));
      EXPECT_TRUE(means(address_text(info).c_str(), "x:0", info)) << address_text(info);
      EXPECT_TRUE(means(uuid_text(info).c_str(), "x:0", info)) << uuid_text(info);
    }
}
