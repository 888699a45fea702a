#include <tenon/io/safetensors.hpp>

#include "temp_dir.hpp"

#include <cstring>
#include <sstream>

using namespace tenon::io;
using tenon::test::TempDir;

namespace {

// A file image made by hand, independent of the writer: length, header, data.
std::string image(const std::string& json, const std::string& data = "") {
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i) out[i] = static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i));
  return out + json + data;
}

uint32_t verdict(const std::string& bytes) {
  auto header = parse_safetensors(bytes, "x");
  return header ? 0 : header.status().id & 0xFFFF;
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST(Safetensors, reads_what_the_format_describes) {
  auto header = parse_safetensors(image(R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"a":{"shape":[2],"data_offsets":[0,8],"dtype":"F32"}}  )", std::string(11, 'x')), "x");
  ASSERT_TRUE(header) << header.status().text();
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].dtype, uint32_t{TN_F32});
  EXPECT_EQ(header->tensors[1].shape, std::vector<uint64_t>{3});
  EXPECT_EQ(header->metadata.at("k"), "v");
}

TEST(Safetensors, judges_every_file_of_the_malformed_set_as_listed) {
  TENON_NEED_DATA(root, "malformed");
  std::ifstream index(root + "/index.tsv");
  std::string line;
  int seen = 0;
  while (std::getline(index, line)) {
    std::istringstream fields(line);
    std::string file, expect;
    std::getline(fields, file, '\t'), std::getline(fields, expect, '\t');
    if (!file.starts_with("safetensors/")) continue;
    auto opened = SafetensorsFile::open(root + "/" + file);
    EXPECT_EQ(opened.ok(), expect == "accept") << line << "\n" << (opened ? "" : opened.status().text());
    const bool in_memory = verdict(tenon::test::get(root + "/" + file)) == 0;
    EXPECT_EQ(in_memory, opened.ok()) << line;
    if (!opened) {
      EXPECT_FALSE(opened.status().why.empty() || opened.status().fix.empty()) << line;
    }
    ++seen;
  }
  EXPECT_GE(seen, 27);
}

TEST(Safetensors, names_each_kind_of_damage_by_its_own_id) {
  EXPECT_EQ(verdict(""), 10u);
  EXPECT_EQ(verdict("1234567"), 10u);
  EXPECT_EQ(verdict(std::string(8, '\xff')), 11u);
  EXPECT_EQ(verdict(image("[]")), 12u);
  EXPECT_EQ(verdict(image("")), 12u);
  EXPECT_EQ(verdict(image("{\"t\":1}")), 12u);
  EXPECT_EQ(verdict(image("{\"a\":{}}")), 12u);
  EXPECT_EQ(verdict(image(one("F32", "[1]", "[0,4]"), "1234")), 0u);
  EXPECT_EQ(verdict(image(R"({"t":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", "1")), 13u);
  EXPECT_EQ(verdict(image(R"({"__metadata__":{"a":"1","a":"2"}})")), 13u);
  EXPECT_EQ(verdict(image(R"({"__metadata__":{},"__metadata__":{}})")), 13u);
  EXPECT_EQ(verdict(image(one("F31", "[1]", "[0,4]"), "1234")), 14u);
  EXPECT_EQ(verdict(image(one("F32", "[2]", "[0,4]"), "1234")), 15u);
  EXPECT_EQ(verdict(image(one("F32", "[4294967296,4294967296]", "[0,0]"))), 15u);
  EXPECT_EQ(verdict(image(one("F32", "[0,4294967296,4294967296]", "[0,0]"))), 15u) << "a zero hides no overflow";
  EXPECT_EQ(verdict(image(one("U8", "[1]", "[1,2]"), "12")), 16u);
  EXPECT_EQ(verdict(image(one("U8", "[2]", "[0,2]"), "1")), 17u);
  EXPECT_EQ(verdict(image(one("U8", "[1]", "[0,1]"), "12")), 17u);
  EXPECT_EQ(verdict(image(one("F4", "[2]", "[0,1]"), "1")), 18u);
}

TEST(Safetensors, takes_numbers_only_where_and_as_the_format_has_them) {
  for (const char* shape : {"[-1]", "[1.0]", "[1e0]", "[-0]", "[\"1\"]", "[true]", "[null]", "[[1]]", "{}", "1", "[18446744073709551616]"})
    EXPECT_EQ(verdict(image(one("U8", shape, "[0,1]"), "1")), 12u) << shape;
  for (const char* offsets : {"[0]", "[0,1,1]", "[]", "[0,1.0]", "[-0,1]", "[\"0\",1]"})
    EXPECT_EQ(verdict(image(one("U8", "[1]", offsets), "1")), 12u) << offsets;
  EXPECT_EQ(verdict(image(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":0}})", "1")), 12u);
  EXPECT_EQ(verdict(image(R"({"__metadata__":{"a":1}})")), 12u);
  EXPECT_EQ(verdict(image("{} x")), 12u);
  EXPECT_EQ(verdict(image(std::string("{}\0", 3))), 12u);
}

TEST(Safetensors, rejects_every_truncation_of_a_good_file) {
  const std::string good = image(one("F32", "[2]", "[0,8]"), "12345678");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(verdict(good.substr(0, n)), 0u) << n;
  EXPECT_NE(verdict(good + "x"), 0u);
}

TEST(Safetensors, round_trip_is_identity_for_every_dtype_and_shape) {
  TempDir dir;
  std::vector<uint32_t> dtypes{TN_BOOL, TN_U8, TN_I8, TN_F8E5M2, TN_F8E4M3, TN_I16, TN_U16, TN_F16, TN_BF16, TN_I32, TN_U32, TN_F32, TN_F64, TN_I64, TN_U64, TN_C64};
  std::vector<std::vector<uint64_t>> shapes{{}, {0}, {1}, {3, 5}, {2, 0, 7}, {1, 1, 1, 1}};
  std::vector<std::string> bytes;
  std::vector<SafetensorsView> views;
  for (uint32_t dtype : dtypes)
    for (const auto& shape : shapes) {
      uint64_t size = 0;
      ASSERT_TRUE(checked_size_bytes(shape, safetensors_element_bytes(dtype), &size));
      std::string content(size, '\0');
      for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 37 + dtype + bytes.size());
      bytes.push_back(content);
      views.push_back({"t" + std::to_string(bytes.size()), dtype, shape, nullptr, size});
    }
  for (size_t i = 0; i < views.size(); ++i) views[i].data = bytes[i].data();
  ASSERT_TRUE(write_safetensors(dir / "a", views, {{"who", "ünï\n\"x\""}}).ok());
  auto file = SafetensorsFile::open(dir / "a");
  ASSERT_TRUE(file) << file.status().text();
  EXPECT_EQ(file->metadata().at("who"), "ünï\n\"x\"");
  for (size_t i = 0; i < views.size(); ++i) {
    const SafetensorsEntry* t = file->find(views[i].name);
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(t->shape, views[i].shape);
    EXPECT_EQ(t->begin % safetensors_element_bytes(t->dtype), 0u) << "aligned to its element";
    std::string back(t->size_bytes(), '\0');
    ASSERT_TRUE(file->read(*t, back.data(), back.size()).ok());
    EXPECT_EQ(back, bytes[i]);
  }
}

TEST(Safetensors, same_input_gives_same_bytes_in_any_order_and_data_is_aligned) {
  TempDir dir;
  const float w[3] = {1, 2, 3};
  const uint8_t m[2] = {7, 8};
  const SafetensorsView a{"w", TN_F32, {3}, w, 12}, b{"m", TN_U8, {2}, m, 2};
  ASSERT_TRUE(write_safetensors(dir / "1", {a, b}).ok());
  ASSERT_TRUE(write_safetensors(dir / "2", {b, a}).ok());
  const std::string bytes = tenon::test::get(dir / "1");
  EXPECT_EQ(bytes, tenon::test::get(dir / "2"));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ((8 + header) % 64, 0u);
  EXPECT_EQ(bytes.size(), 8 + header + 14);
}

TEST(Safetensors, reads_a_file_written_by_someone_else) {
  TENON_NEED_DATA(path, "models/safetensors/silero_vad_16k.safetensors");
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.status().text();
  EXPECT_EQ(file->tensors().size(), 15u);
}

TEST(Safetensors, refuses_to_write_what_the_format_cannot_hold) {
  TempDir dir;
  const uint8_t byte = 1;
  const SafetensorsView good{"a", TN_U8, {1}, &byte, 1};
  const auto id = [&](std::vector<SafetensorsView> views, std::map<std::string, std::string> meta = {}) { return write_safetensors(dir / "x", views, meta).id & 0xFFFF; };
  EXPECT_EQ(id({good, good}), 19u);
  EXPECT_EQ(id({{"__metadata__", TN_U8, {1}, &byte, 1}}), 19u);
  EXPECT_EQ(id({{"a", TN_U4, {1}, &byte, 1}}), 19u);
  EXPECT_EQ(id({{"a", TN_U8, {2}, &byte, 1}}), 19u);
  EXPECT_EQ(id({{"\xff", TN_U8, {1}, &byte, 1}}), 19u);
  EXPECT_EQ(id({good}, {{"k", "\xc3"}}), 19u);
  EXPECT_EQ(id({{"a", TN_U8, {1}, nullptr, 1}}), 19u);
  EXPECT_EQ(tenon::test::count_files(dir.path()), 0u) << "nothing may be left behind";
}

TEST(Safetensors, partial_reads_stay_inside_the_tensor) {
  TempDir dir;
  const std::string data = "0123456789";
  ASSERT_TRUE(write_safetensors(dir / "x", {{"t", TN_U8, {10}, data.data(), 10}}).ok());
  auto file = SafetensorsFile::open(dir / "x");
  ASSERT_TRUE(file);
  char out[4] = {};
  EXPECT_TRUE(file->read_range(*file->find("t"), 3, out, 4).ok());
  EXPECT_EQ(std::string(out, 4), "3456");
  EXPECT_EQ(file->read_range(*file->find("t"), 8, out, 4).id, file_error(15));
  EXPECT_EQ(file->read_range(*file->find("t"), UINT64_MAX, out, 4).id, file_error(15));
  EXPECT_EQ(file->read(*file->find("t"), out, 4).id, file_error(15));
  EXPECT_EQ(file->find("u"), nullptr);
}

TEST(Safetensors, error_text_has_what_where_why_and_try) {
  auto bad = parse_safetensors(image(one("F32", "[2]", "[0,4]"), "1234"), "model.safetensors");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.status().text(),
            "error[TN-FILE-015]: model.safetensors: shape and byte range differ\n"
            "  where: model.safetensors\n"
            "  why:   \"t\" needs 8 bytes by its shape; data_offsets [0, 4) give 4\n"
            "  try:   save the file again\n");
}
