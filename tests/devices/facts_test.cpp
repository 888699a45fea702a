// What is said of a device obeys what must hold of every device (D01: 55 GB free on a card of 32).
#include "tests/devices/machine.h"
#include <tenon/caps.h>


TEST(Facts, memory_has_64_bits_and_no_more_is_free_than_there_is) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=192 u=2,p=6600,m=32,overfull");
  for (int start = 0; start < 2; ++start) {
    Tenon t(m);
    EXPECT_EQ(t.device("cuda:0").info.mem_total_bytes, uint64_t{192} << 30);
    EXPECT_EQ(t.find("cuda:0"), "cuda:0");
    EXPECT_EQ(t.device("cuda:0").info.mem_free_bytes, uint64_t{96} << 30);
    EXPECT_EQ(t.device("cuda:1").info.mem_total_bytes, uint64_t{32} << 30);
    EXPECT_EQ(t.device("cuda:1").info.mem_free_bytes, 0u);  // nonsense is "unknown"
    for (const tn_device_entry& e : t.devices()) EXPECT_LE(e.info.mem_free_bytes, e.info.mem_total_bytes) << e.name;
  }
}

TEST(Facts, types_that_are_computed_in_can_be_stored) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  Tenon t(m);
  for (const tn_device_entry& e : t.devices()) {
    EXPECT_EQ(e.info.dtype_compute & ~e.info.dtype_storage, 0u) << e.name;
    EXPECT_EQ(e.info.dtype_matrix & ~e.info.dtype_storage, 0u) << e.name;
  }
}

TEST(Facts, capabilities_that_cannot_be_are_left_out) {
  Machine m;
  m.add("cuda", "u=1,p=6500,m=8");
  Tenon t(m);
  tn_cap caps[32];
  uint32_t n = 0;
  ASSERT_EQ(tn_caps(t.rt, t.device("cuda:0").device, caps, 32, &n, &t.diag), TN_OK) << t.diag.msg;
  ASSERT_EQ(n, 3u);  // not: a second value, a negative or infinite rate, another type than the key's, no source, no text
  EXPECT_EQ(caps[0].key, uint32_t{TN_CAPKEY_BANDWIDTH});
  EXPECT_EQ(caps[0].v.f, 3e12);
  EXPECT_EQ(caps[1].key, 0x80000001u);  // a vendor's own may be anything
  EXPECT_EQ(caps[1].v.f, -7);
  EXPECT_EQ(caps[2].key, uint32_t{TN_CAPKEY_PAGE_BYTES});
}
