#include <tenon/data/dataset.hpp>
#include <tenon/data/idx.hpp>
#include <tenon/data/transforms.hpp>
#include <tenon/types.h>

#include "../io/temp_dir.hpp"

#include <openssl/evp.h>
#include <sys/wait.h>
#include <zlib.h>

using namespace tenon::data;
using namespace tenon::test;
using tenon::io::data_error;
using tenon::io::file_error;

namespace {

std::string be32(uint32_t v) { return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)}; }

// A file made by hand from the published layout.
std::string idx(uint8_t type, const std::vector<uint32_t>& dims, const std::string& data) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t d : dims) out += be32(d);
  return out + data;
}

std::string gz(const std::string& raw) {
  z_stream s{};
  deflateInit2(&s, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&s, raw.size()) + 64, '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data())), s.avail_in = static_cast<uInt>(raw.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data()), s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

const std::string kImages = idx(8, {3, 2, 2}, "abcdefghijkl"), kLabels = idx(8, {3}, std::string("\x02\x00\x01", 3));

}  // namespace

class Idx : public ::testing::Test {
 protected:
  uint32_t id(const std::string& bytes, const IdxLimits& limits = {}) {
    put(dir / "f", bytes);
    auto array = load_idx(dir / "f", limits);
    if (!array) {
      EXPECT_FALSE(array.status().what.empty() || array.status().why.empty() || array.status().fix.empty());
    }
    return array ? 0 : array.status().id;
  }
  TempDir dir;
};

TEST_F(Idx, reads_plain_and_packed_alike) {
  put(dir / "plain", kImages), put(dir / "packed", gz(kImages));
  auto plain = load_idx(dir / "plain"), packed = load_idx(dir / "packed");
  ASSERT_TRUE(plain && packed);
  EXPECT_EQ(plain->header.dims, (std::vector<uint32_t>{3, 2, 2}));
  EXPECT_EQ(std::string(plain->bytes.begin(), plain->bytes.end()), "abcdefghijkl");
  EXPECT_EQ(plain->bytes, packed->bytes);
  EXPECT_EQ(plain->sha256, packed->sha256);
  EXPECT_EQ(plain->sha256, tenon::io::sha256_hex(kImages.data(), kImages.size()));
  EXPECT_EQ(plain->known_as, "");
}

TEST_F(Idx, wider_elements_come_in_host_order) {
  put(dir / "i16", idx(0x0B, {2}, std::string("\x01\x02\xff\xfe", 4)));
  auto a = load_idx(dir / "i16");
  ASSERT_TRUE(a);
  EXPECT_EQ(reinterpret_cast<const int16_t*>(a->bytes.data())[0], 0x0102);
  EXPECT_EQ(reinterpret_cast<const int16_t*>(a->bytes.data())[1], -2);
  put(dir / "f64", idx(0x0E, {1}, std::string("\x3f\xf8\0\0\0\0\0\0", 8)));
  auto b = load_idx(dir / "f64");
  ASSERT_TRUE(b);
  EXPECT_EQ(*reinterpret_cast<const double*>(b->bytes.data()), 1.5);
}

TEST_F(Idx, names_every_kind_of_damage) {
  EXPECT_EQ(id(""), data_error(4));                                              // empty file
  EXPECT_EQ(id(std::string(3, '\0')), data_error(4));                            // shorter than the magic
  EXPECT_EQ(id("PK\3\4 zip"), data_error(1));                                    // another format
  EXPECT_EQ(id(std::string("\0\1\x08\1\0\0\0\0", 8)), data_error(1));            // wrong second byte
  EXPECT_EQ(id(idx(0x0A, {1}, "x")), data_error(2));                             // unknown type
  EXPECT_EQ(id(idx(0x00, {1}, "x")), data_error(2));
  EXPECT_EQ(id(idx(8, {}, "x")), data_error(3));                                 // rank 0
  EXPECT_EQ(id(std::string("\0\0\x08\xff", 4) + std::string(2000, '\0')), data_error(3));  // rank 255
  EXPECT_EQ(id(std::string("\0\0\x08\3\0\0\0\1\0\0", 10)), data_error(4));       // counts cut short
  EXPECT_EQ(id(kImages.substr(0, kImages.size() - 1)), data_error(6));           // one byte short
  EXPECT_EQ(id(kImages + "x"), data_error(7));                                   // one byte over
  EXPECT_EQ(id(idx(8, {0xFFFFFFFF}, "x")), data_error(6));                       // 4 GiB claimed
  EXPECT_EQ(id(idx(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x")), data_error(5));  // product overflows
  EXPECT_EQ(id(idx(0x0E, {1u << 31, 1u << 31}, "")), data_error(5));             // x 8 bytes = 2^65
  EXPECT_EQ(id(idx(8, {0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")), data_error(5)) << "a zero hides no overflow";
  EXPECT_EQ(id(kImages, {11, 8}), data_error(5));                                // over a lowered limit
  EXPECT_EQ(id(kImages, {12, 2}), data_error(3));
  EXPECT_EQ(id(kImages, {12, 3}), 0u);
  EXPECT_EQ(id(idx(8, {0}, "")), 0u) << "no elements is no damage";
}

TEST_F(Idx, names_every_kind_of_packed_damage) {
  const std::string packed = gz(kImages);
  EXPECT_EQ(id(packed.substr(0, packed.size() - 1)), data_error(8));             // sum cut off
  EXPECT_EQ(id(packed.substr(0, packed.size() / 2)), data_error(8));
  EXPECT_EQ(id("\x1f\x8b"), data_error(8));
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;                                               // the stored CRC
  EXPECT_EQ(id(flipped), data_error(8));
  EXPECT_EQ(id(packed + "tail"), data_error(8));
  EXPECT_EQ(id(gz(kImages + "x")), data_error(7));
  EXPECT_EQ(id(gz(kImages.substr(0, kImages.size() - 1))), data_error(6));
  EXPECT_EQ(id(gz("")), data_error(4));
  EXPECT_EQ(id(gz("hello world")), data_error(1));
  EXPECT_EQ(id(gz(kImages.substr(0, 7)) + gz(kImages.substr(7))), 0u) << "joined gzip files are one";
}

TEST_F(Idx, any_cut_of_a_packed_file_is_noticed) {
  const std::string packed = gz(kImages);
  for (size_t n = 0; n < packed.size(); ++n) EXPECT_NE(id(packed.substr(0, n)), 0u) << n;
}

TEST_F(Idx, a_small_packed_file_cannot_claim_much_memory) {
  // 20 bytes of gzip claim 4 GiB: refused by the best ratio deflate can reach, before any allocation.
  EXPECT_EQ(id(gz(idx(8, {0xFFFFFFFF}, ""))), data_error(6));
  // 64 MiB of zeros in 64 KiB, while the counts say 10: the rest is not unpacked.
  EXPECT_EQ(id(gz(idx(8, {10}, std::string(64 << 20, '\0')))), data_error(7));
}

TEST_F(Idx, says_what_is_wrong_with_the_path) {
  EXPECT_EQ(load_idx(dir / "none").status().id, file_error(1));
  EXPECT_EQ(load_idx(dir.path()).status().id, file_error(3));
  put(dir / "secret", kImages);
  std::filesystem::permissions(dir / "secret", std::filesystem::perms::none);
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    ::_exit(load_idx(dir / "secret").status().id == file_error(2) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Idx, streams_in_pieces_of_any_size) {
  std::string data(100000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7);
  put(dir / "f", gz(idx(8, {100, 1000}, data)));
  for (size_t piece : {1u, 7u, 4096u, 100000u}) {
    auto reader = IdxReader::open(dir / "f");
    ASSERT_TRUE(reader);
    std::string back;
    while (reader->remaining_bytes() > 0) {
      std::string part(std::min<uint64_t>(piece, reader->remaining_bytes()), '\0');
      ASSERT_TRUE(reader->read(part.data(), part.size()).ok());
      back += part;
    }
    EXPECT_TRUE(reader->finish());
    EXPECT_EQ(back, data);
  }
}

TEST_F(Idx, error_text_has_what_where_why_and_try) {
  put(dir / "f", kImages.substr(0, 20));
  auto bad = load_idx(dir / "f");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.status().text(), "error[TN-DATA-006]: " + (dir / "f") + ": fewer bytes than its counts say\n  where: " + (dir / "f") +
                                     "\n  why:   the counts need 12 bytes of data; the file has 4\n  try:   copy or download it again\n");
}

TEST(IdxDataset, a_pair_must_fit_together) {
  TempDir dir;
  const auto id = [&](const std::string& images, const std::string& labels) {
    put(dir / "i", images), put(dir / "l", labels);
    auto pair = load_idx_pair(dir / "i", dir / "l");
    put(dir / "i", images), put(dir / "l", labels);
    auto streamed = StreamingIdxDataset::open(dir / "i", dir / "l");
    EXPECT_EQ(pair.ok(), streamed.ok());
    if (!pair && !streamed) {
      EXPECT_EQ(pair.status().id, streamed.status().id);
    }
    return pair ? 0u : pair.status().id;
  };
  EXPECT_EQ(id(kImages, kLabels), 0u);
  EXPECT_EQ(id(kImages, idx(8, {2}, "\1\1")), data_error(10));
  EXPECT_EQ(id(kLabels, kLabels), data_error(9));
  EXPECT_EQ(id(kImages, kImages), data_error(9));
  EXPECT_EQ(id(idx(9, {3, 2, 2}, "abcdefghijkl"), kLabels), data_error(9));
  EXPECT_EQ(id(idx(8, {0, 2, 2}, ""), idx(8, {0}, "")), data_error(13));
  EXPECT_EQ(id(idx(8, {3, 0, 2}, ""), kLabels), data_error(13));
}

TEST(IdxDataset, a_label_beyond_the_classes_is_named) {
  auto bad = MemoryDataset::create({1, 1, 1}, {1, 2, 3}, {0, 5, 1}, 3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.status().id, data_error(12));
  EXPECT_NE(bad.status().why.find("sample 1 has label 5"), std::string::npos);
  EXPECT_EQ(MemoryDataset::create({1, 1, 1}, {1}, {-1}).status().id, data_error(12));
  EXPECT_EQ(MemoryDataset::create({1, 1, 1}, {}, {}).status().id, data_error(13));
  EXPECT_EQ(MemoryDataset::create({1, 1, 2}, {1, 2, 3}, {0, 1}).status().id, data_error(10));
}

TEST(IdxDataset, a_folder_is_searched_for_every_spelling_and_missing_files_are_named) {
  TempDir dir;
  put(dir / "train-images-idx3-ubyte.gz", gz(kImages)), put(dir / "train-labels.idx1-ubyte", kLabels), put(dir / "t10k-images.idx3-ubyte.gz", gz(kImages));
  auto incomplete = load_idx_dataset(dir.path());
  ASSERT_FALSE(incomplete);
  EXPECT_EQ(incomplete.status().id, data_error(11));
  EXPECT_NE(incomplete.status().why.find("not found: t10k-labels-idx1-ubyte[.gz]; the folder has \"t10k-images.idx3-ubyte.gz\""), std::string::npos) << incomplete.status().why;
  put(dir / "t10k-labels-idx1-ubyte", kLabels);
  auto data = load_idx_dataset(dir.path());
  ASSERT_TRUE(data) << data.status().text();
  EXPECT_EQ(data->train->size(), 3u);
  EXPECT_EQ(data->train->classes(), 3u);
  EXPECT_FALSE(data->verified());
  EXPECT_EQ(load_idx_dataset(dir / "none").status().id, file_error(1));
  EXPECT_EQ(load_idx_dataset(dir / "t10k-labels-idx1-ubyte").status().id, data_error(11));
}

TEST(IdxDataset, the_real_mnist_is_recognised) {
  TENON_NEED_DATA(path, "images/mnist");
  auto data = load_idx_dataset(path);
  ASSERT_TRUE(data) << data.status().text();
  EXPECT_TRUE(data->verified());
  EXPECT_EQ(data->train_images_known_as, "MNIST train images");
  EXPECT_EQ(data->train->size(), 60000u);
  EXPECT_EQ(data->test->size(), 10000u);
  EXPECT_EQ(data->train->classes(), 10u);
  EXPECT_EQ(data->train->labels()[0], 5) << "the first training digit is a five";
  // The published md5 of the unpacked training images, header put back by hand.
  const std::string header = idx(8, {60000, 28, 28}, "");
  EVP_MD_CTX* md5 = EVP_MD_CTX_new();
  unsigned char sum[16];
  EVP_DigestInit_ex(md5, EVP_md5(), nullptr);
  EVP_DigestUpdate(md5, header.data(), header.size());
  EVP_DigestUpdate(md5, data->train->pixels().data(), data->train->pixels().size());
  EVP_DigestFinal_ex(md5, sum, nullptr);
  EVP_MD_CTX_free(md5);
  std::string hex;
  for (unsigned char b : sum) hex += "0123456789abcdef"[b >> 4], hex += "0123456789abcdef"[b & 15];
  EXPECT_EQ(hex, "6bbc9ace898e44ae57da46a324031adb");
}

TEST(IdxDataset, the_real_fashion_mnist_is_recognised) {
  const std::string path = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  auto data = load_idx_dataset(path);
  ASSERT_TRUE(data) << data.status().text();
  EXPECT_TRUE(data->verified());
  EXPECT_EQ(data->test_labels_known_as, "Fashion-MNIST test labels");
  const Normalise n = measure_normalisation(*data->train);
  EXPECT_NEAR(n.mean[0], 0.2860, 1e-4) << "the published mean";
  EXPECT_NEAR(n.stddev[0], 0.3530, 1e-4) << "the published deviation";
}

TEST(StreamingIdxDataset, gives_the_same_samples_as_memory_in_any_order) {
  TempDir dir;
  std::string pixels(50 * 6, '\0'), labels(50, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i);
  for (size_t i = 0; i < 50; ++i) labels[i] = static_cast<char>(i % 10);
  put(dir / "i", idx(8, {50, 2, 3}, pixels)), put(dir / "l", gz(idx(8, {50}, labels)));
  auto memory = load_idx_pair(dir / "i", dir / "l");
  auto stream = StreamingIdxDataset::open(dir / "i", dir / "l");
  ASSERT_TRUE(memory && stream);
  const std::vector<uint64_t> order{49, 0, 1, 2, 3, 7, 7, 8, 30, 29};
  std::vector<uint8_t> a(60), b(60);
  std::vector<int64_t> la(10), lb(10);
  ASSERT_TRUE((*memory)->read(order, a.data(), la.data()).ok());
  ASSERT_TRUE((*stream)->read(order, b.data(), lb.data()).ok());
  EXPECT_EQ(a, b);
  EXPECT_EQ(la, lb);
  const std::vector<uint64_t> outside{48, 49, 50};
  EXPECT_EQ((*stream)->read(outside, b.data(), lb.data()).id, data_error(14));
  EXPECT_EQ((*memory)->read(outside, b.data(), lb.data()).id, data_error(14));
  put(dir / "gz", gz(idx(8, {50, 2, 3}, pixels)));
  EXPECT_EQ(StreamingIdxDataset::open(dir / "gz", dir / "l").status().id, data_error(15));
}

TEST(FirstSamples, cuts_a_dataset_without_copying) {
  auto all = MemoryDataset::create({1, 1, 1}, {1, 2, 3}, {0, 1, 2});
  ASSERT_TRUE(all);
  auto two = first_samples(*all, 2);
  EXPECT_EQ(two->size(), 2u);
  uint8_t p;
  int64_t l;
  const uint64_t third = 2;
  EXPECT_EQ(two->read({&third, 1}, &p, &l).id, data_error(14));
  EXPECT_EQ(first_samples(*all, 0)->size(), 3u);
  EXPECT_EQ(first_samples(*all, 9)->size(), 3u);
}
