// Machine files: what the reader takes and what it refuses.
#include <gtest/gtest.h>

#include <string>

#include "tools/tenon/look/machine_file.h"

namespace tenon::cli {
namespace {

const std::string kSystem = R"("system":{"kernel":"6.1","machine":"x86_64","libc":"2.36","distribution":"Debian"})";
const std::string kPlugin = R"({"id":"org.example.gpu","version":"1.0","build_id":"ab","path":"~/gpu.so","code":0,"verdict":"in-use","stage":9,"native_code":0,"abi":1,"flags":0,"cause":""})";
const std::string kDevice =
    R"({"name":"gpu:0","plugin":0,"physical":1,"verdict":0,"cause":"","kind":2,"kind_name":"cuda","flags":0,"hardware":"Example","driver":"5","vendor_id":1,"device_id":2,"pci_domain":0,"pci_bdf":3,)"
    R"("memory_bytes":18446744073709551615,"memory_free_bytes":0,"dtypes_stored":"0x140000","dtypes_computed":"0x0","dtypes_of_matrices":"0x40000",)"
    R"("caps":[{"key":16,"name":"architecture","type":"text","unit":"text","value":"sm_90","source":"driver"}],"spaces":[],"rates":{"state":0,"when":"","note":"","figures":[]}})";
const std::string kKernel =
    R"({"name":"gpu.matmul","plugin":0,"op":"matmul","op_id":"0x8000000000000001","op_min":1,"op_max":2,"tier":-5,"flags":1,"inplace_mask":0,"refines":true,)"
    R"("needs":[{"kind":"dtype","operand":1,"mask":"0xffffffffffffffff"},{"kind":"dim","arg":2,"lo":-9223372036854775808,"hi":9223372036854775807},{"kind":77}]})";

std::string file(const std::string& plugins, const std::string& devices, const std::string& kernels, const std::string& version = "1") {
  return R"({"format":"tenon-machine","version":)" + version + R"(,"tenon":"0.1.0","abi":"0.1",)" + kSystem + R"(,"plugins":[)" + plugins + R"(],"devices":[)" + devices + R"(],"links":[],"kernels":[)" + kernels + "]}";
}
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
const std::string kGood = file(kPlugin, kDevice, kKernel);

// The id of the refusal; "" when the text is taken.
std::string refusal(const std::string& text, std::string* why = nullptr) {
  const auto read = parse_machine(text, "m.json");
  if (read) return "";
  if (why) *why = read.status().why;
  EXPECT_FALSE(read.status().fix.empty());
  return read.status().id_text();
}

TEST(MachineFile, keeps_all_bits) {
  const auto m = parse_machine(kGood, "m.json");
  ASSERT_TRUE(m.ok()) << m.status().text();
  EXPECT_EQ(m->devices[0].info.mem_total_bytes, UINT64_MAX);
  EXPECT_EQ(m->devices[0].info.dtype_storage, 0x140000u);
  EXPECT_EQ(m->devices[0].caps[0].text, "sm_90");
  const KernelRecord& k = m->kernels[0];
  EXPECT_EQ(k.op_id, 0x8000000000000001u);
  EXPECT_EQ(k.tier, -5);
  EXPECT_EQ(k.needs[0].mask, UINT64_MAX);
  EXPECT_EQ(k.needs[0].operand, 1);
  EXPECT_EQ(k.needs[1].operand, TN_ANY_OPERAND);
  EXPECT_EQ(k.needs[1].lo, INT64_MIN);
  EXPECT_EQ(k.needs[1].hi, INT64_MAX);
  EXPECT_EQ(k.needs[2].kind, 77);  // of a later version: the core says that it does not know it
}

TEST(MachineFile, refuses_what_is_none) {
  for (const std::string text : {"", "{", "[]", "3", "{}", R"({"format":"other","version":1})", R"({"format":"tenon-machine","format":"tenon-machine"})", "\xff"}) EXPECT_EQ(refusal(text), "TN-FILE-031") << text;
  EXPECT_EQ(refusal(std::string(100000, '[')), "TN-FILE-031");
  EXPECT_EQ(refusal(changed(kGood, "\"cause\":\"\"", "\"cause\":\"\",\"cause\":\"\"")), "TN-FILE-031");
}

TEST(MachineFile, refuses_other_versions) {
  for (const char* version : {"0", "2", "\"1\"", "1.5", "null"}) EXPECT_EQ(refusal(file("", "", "", version)), "TN-FILE-032") << version;
  EXPECT_EQ(refusal(R"({"format":"tenon-machine"})"), "TN-FILE-032");
}

TEST(MachineFile, names_the_entry_that_it_refuses) {
  const struct { const char *from, *to, *place; } kCases[] = {
      {"\"tenon\":\"0.1.0\"", "\"tenon\":1", "tenon"},
      {"\"abi\":\"0.1\",", "", "key \"abi\" is missing"},
      {"\"links\":[]", "\"links\":[],\"more\":1", "unknown key"},
      {"\"links\":[]", "\"links\":[{\"from\":\"host\",\"to\":\"gpu:0\",\"bytes_per_s\":-1,\"latency_ns\":0,\"source\":\"measured\"}]", "links[0]"},
      {"\"native_code\":0", "\"native_code\":9223372036854775808", "plugins[0].native_code"},
      {"\"code\":0", "\"code\":4294967296", "plugins[0].code"},
      {"\"name\":\"gpu:0\"", "\"name\":\"a name with spaces\"", "devices[0].name"},
      {"\"name\":\"gpu:0\",\"plugin\":0", "\"name\":\"gpu:0\",\"plugin\":1", "devices[0].plugin"},
      {"\"driver\":\"5\"", "\"driver\":\"a\\nb\"", "devices[0].driver"},
      {"\"0x140000\"", "\"140000\"", "devices[0].dtypes_stored"},
      {"\"0x140000\"", "\"0x\"", "devices[0].dtypes_stored"},
      {"\"0x140000\"", "\"0x11111111111111111\"", "devices[0].dtypes_stored"},
      {"\"type\":\"text\"", "\"type\":\"words\"", "devices[0].caps[0].type"},
      {"\"source\":\"driver\"", "\"source\":\"rumour\"", "devices[0].caps[0].source"},
      {"\"refines\":true", "\"refines\":1", "kernels[0].refines"},
      {"\"kind\":\"dtype\"", "\"kind\":\"dtypes\"", "kernels[0].needs[0].kind"},
      {"\"operand\":1", "\"operand\":65536", "kernels[0].needs[0].operand"},
      {"\"tier\":-5", "\"tier\":2147483648", "kernels[0].tier"},
      {"\"needs\":[", "\"packed\":{\"operand\":1,\"layout\":\"\"},\"needs\":[", "kernels[0].packed.layout"},
  };
  for (const auto& c : kCases) {
    std::string why;
    EXPECT_EQ(refusal(changed(kGood, c.from, c.to), &why), "TN-FILE-033") << c.to;
    EXPECT_NE(why.find(c.place), std::string::npos) << why << "\n" << c.to;
  }
}

TEST(MachineFile, is_bounded) {
  std::string many = kPlugin;
  for (int i = 0; i < 1024; ++i) many += "," + kPlugin;
  std::string why;
  EXPECT_EQ(refusal(file(many, "", ""), &why), "TN-FILE-033");
  EXPECT_NE(why.find("1025 entries, at most 1024"), std::string::npos) << why;
  EXPECT_EQ(refusal(changed(kGood, "\"cause\":\"\"", "\"cause\":\"" + std::string(1025, 'x') + "\"")), "TN-FILE-033");
  EXPECT_EQ(refusal(file(kPlugin, kDevice + "," + kDevice, "")), "TN-FILE-033");  // one name, two devices
}

}  // namespace
}  // namespace tenon::cli
