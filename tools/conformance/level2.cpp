// tools/conformance/level2.cpp - memory and timelines of one queue. Nothing here depends on a kernel.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kSecond = 1000000000;

std::vector<unsigned char> pattern(size_t n, unsigned seed) {
  std::vector<unsigned char> bytes(n);
  uint32_t x = seed * 2654435761u + 1;
  for (unsigned char& b : bytes) x = x * 1664525u + 1013904223u, b = static_cast<unsigned char>(x >> 24);
  return bytes;
}

void round_trip(Session& session, Subject& s) {
  session.check("2.write_and_read", {"memory"}, [&](Trial& t) {
    for (const size_t n : {1u, 2u, 3u, 7u, 63u, 64u, 65u, 4095u, 4096u, 100003u, 1u << 20}) {
      Memory m = s.alloc(n);
      const auto data = pattern(n, static_cast<unsigned>(n));
      std::vector<unsigned char> back(n);
      s.write(m, 0, data.data(), n);
      s.read(m, 0, back.data(), n);
      t.count();
      t.need(back == data, std::to_string(n) + " bytes do not come back as they were written");
      s.free(&m);
    }
  });
  session.check("2.offsets", {"memory"}, [&](Trial& t) {
    Memory m = s.alloc(1000);
    std::vector<unsigned char> want(1000, 0x11), back(1000);
    s.write(m, 0, want.data(), want.size());
    for (const size_t at : {0u, 1u, 3u, 64u, 500u, 991u}) {
      const auto piece = pattern(9, static_cast<unsigned>(at));
      s.write(m, at, piece.data(), piece.size());
      std::copy(piece.begin(), piece.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
      s.read(m, 0, back.data(), back.size());
      t.count();
      t.need(back == want, "9 bytes written at offset " + std::to_string(at) + " change other bytes, or do not arrive");
    }
    s.free(&m);
  });
  session.check("2.copy_on_the_device", {"memory"}, [&](Trial& t) {
    Memory a = s.alloc(777), b = s.alloc(900);
    const auto data = pattern(777, 5);
    std::vector<unsigned char> want(900, 0x22), back(900);
    s.write(a, 0, data.data(), data.size());
    s.write(b, 0, want.data(), want.size());
    const tn_view src = a.view(7, 700), dst = b.view(13, 700);
    tn_diag d = empty_diag();
    need(s.devices().copy(s.queue(), &dst, &src, &d), d, "copy");
    need(s.finish(&d), d, "copy");
    std::copy_n(data.begin() + 7, 700, want.begin() + 13);
    s.read(b, 0, back.data(), back.size());
    t.count();
    t.need(back == want, "700 bytes from offset 7 to offset 13 of another buffer: not these bytes, or others too, changed");
    s.free(&a), s.free(&b);
  });
}

void allocation(Session& session, Subject& s) {
  session.check("2.buffers_are_apart", {"memory"}, [&](Trial& t) {
    std::vector<Memory> all;
    for (unsigned i = 0; i < 40; ++i) {
      all.push_back(s.alloc(1 + i * 97));
      const auto data = pattern(all.back().bytes, i);
      s.write(all.back(), 0, data.data(), data.size());
      t.need(all.back().buffer.handle != 0, "a buffer has handle 0, which stands for host memory");
      t.need(all.back().buffer.bytes >= all.back().bytes, "a buffer is smaller than what was asked for");
    }
    for (unsigned i = 0; i < 40; ++i) {
      std::vector<unsigned char> back(all[i].bytes);
      s.read(all[i], 0, back.data(), back.size());
      t.count();
      t.need(back == pattern(back.size(), i), "a buffer has changed while others were written");
    }
    for (Memory& m : all) s.free(&m);
  });
  session.check("2.alignment", {"memory"}, [&](Trial& t) {
    for (const uint64_t align : {1u, 64u, 256u, 4096u}) {
      tn_buffer b{};
      tn_diag d = empty_diag();
      const tn_status status = s.devices().alloc(s.device(), 0, 100, align, &b, &d);
      t.count();
      if (status != TN_OK) {
        t.fail("alignment of " + std::to_string(align) + ": " + text_of(status, d));
        continue;
      }
      t.need(b.host == nullptr || reinterpret_cast<uintptr_t>(b.host) % align == 0, "host address not aligned to " + std::to_string(align));
      t.need(b.dev_addr % align == 0, "device address not aligned to " + std::to_string(align));
      s.devices().free(s.device(), &b);
    }
  });
}

class Line {
 public:
  Line(Subject& s, uint64_t initial) : s_(s) {
    tn_diag d = empty_diag();
    need(s.devices().timeline_open(s.device(), initial, &line_, &d), d, "timeline_open");
  }
  ~Line() { s_.devices().timeline_close(line_); }
  tn_dev_timeline* get() const { return line_; }
  uint64_t value() const {
    uint64_t v = 0, failed = 0;
    tn_diag d = empty_diag();
    need(s_.devices().query(line_, 0, &v, &failed, &d), d, "query");
    return v;
  }

 private:
  Subject& s_;
  tn_dev_timeline* line_ = nullptr;
};

void timelines(Session& session, Subject& s) {
  session.check("2.timeline_values", {"timeline"}, [&](Trial& t) {
    Line line(s, 41);
    tn_diag d = empty_diag();
    t.count(3);
    t.need(line.value() == 41, "a timeline opened at 41 stands at " + std::to_string(line.value()));
    need(s.devices().signal(nullptr, line.get(), 50, &d), d, "signal by the host");
    t.need(line.value() == 50, "signalled with 50 by the host, it stands at " + std::to_string(line.value()));
    need(s.devices().signal(s.queue(), line.get(), 60, &d), d, "signal in the queue");
    need(s.devices().wait(nullptr, line.get(), 60, 10 * kSecond, &d), d, "wait");
    t.need(line.value() == 60, "after the wait for 60 it stands at " + std::to_string(line.value()));
    need(s.devices().wait(nullptr, line.get(), 7, 0, &d), d, "wait for a value that has passed, with no time");
    uint64_t v = 0, failed = 1;
    need(s.devices().query(line.get(), 0, &v, &failed, &d), d, "query");
    t.need(failed == 0, "query names a failed value, but nothing failed");
  });
  session.check("2.wait_ends_in_time", {"timeline"}, [&](Trial& t) {
    Line line(s, 0);
    for (const uint64_t ms : {0u, 1u, 50u}) {
      tn_diag d = empty_diag();
      const auto begin = Clock::now();
      const tn_status status = s.devices().wait(nullptr, line.get(), 1, ms * 1000000, &d);
      const double took = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      t.count();
      t.need(status == TN_E_TIMEOUT, "a wait for a value that nobody signals gives \"" + std::string(tn_status_text(status)) + "\" instead of a timeout");
      if (status == TN_E_TIMEOUT) t.need(fault_of(status, d).empty(), "wait: " + fault_of(status, d));
      t.need(took >= static_cast<double>(ms) * 0.9 && took < static_cast<double>(ms) + 2000, "a wait of " + std::to_string(ms) + " ms took " + std::to_string(took) + " ms");
    }
  });
  session.check("2.queue_order", {"timeline", "memory"}, [&](Trial& t) {
    Memory m = s.alloc(4096);
    Line line(s, 0);
    std::vector<std::vector<unsigned char>> sent, got(20, std::vector<unsigned char>(4096));
    tn_diag d = empty_diag();
    for (unsigned i = 0; i < 20; ++i) sent.push_back(pattern(4096, i));
    for (unsigned i = 0; i < 20; ++i) {  // nothing waits in between: the queue alone keeps the order
      const tn_view device = m.view(0, 4096), from{0, 0, 4096, sent[i].data()}, to{0, 0, 4096, got[i].data()};
      need(s.devices().copy(s.queue(), &device, &from, &d), d, "copy");
      need(s.devices().copy(s.queue(), &to, &device, &d), d, "copy");
      need(s.devices().signal(s.queue(), line.get(), i + 1, &d), d, "signal");
    }
    need(s.devices().wait(nullptr, line.get(), 20, 60 * kSecond, &d), d, "wait");
    t.count(20);
    t.need(sent == got, "20 pairs of copies in one queue did not run in order");
    s.free(&m);
  });
}

}  // namespace

void level2(Session& session) {
  const Library library(session.options.plugin);
  {
    Host host(session.options.config);
    if (const tn_plugin* given = library.query(TN_ABI_CURRENT, host.table()); given != nullptr && table_of(given).devices == nullptr)
      return session.check("2.memory", {"memory"}, [](Trial& t) { t.skip("a kernel pack: memory and timelines are those of cpu:0"); });
  }
  Subject s(library, session.options);
  round_trip(session, s);
  allocation(session, s);
  timelines(session, s);
}

}  // namespace tenon::conformance
