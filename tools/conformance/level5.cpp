// tools/conformance/level5.cpp - threads and asynchrony: several queues, waits between them, work from several threads.
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <tenon/ops.h>

#include "ops/cases.h"
#include "ops/emit.h"
#include "tools/conformance/subject.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t kMinute = 60000000000;
using std::chrono::milliseconds;

// A queue with a timeline, of the subject's device.
class Lane {
 public:
  explicit Lane(Subject& s) : s_(s) {
    tn_diag d = empty_diag();
    need(s.devices().queue_open(s.device(), 0, 0, &queue, &d), d, "queue_open");
    need(s.devices().timeline_open(s.device(), 0, &line, &d), d, "timeline_open");
  }
  ~Lane() {
    s_.devices().queue_close(queue);
    s_.devices().timeline_close(line);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void copy(const tn_view& dst, const tn_view& src) {
    tn_diag d = empty_diag();
    need(s_.devices().copy(queue, &dst, &src, &d), d, "copy");
  }
  uint64_t signal() {
    tn_diag d = empty_diag();
    need(s_.devices().signal(queue, line, ++value, &d), d, "signal");
    return value;
  }
  void after(const Lane& other, uint64_t wanted) {
    tn_diag d = empty_diag();
    need(s_.devices().wait(queue, other.line, wanted, TN_FOREVER, &d), d, "wait in a queue");
  }
  void host_waits(uint64_t wanted) {
    tn_diag d = empty_diag();
    need(s_.devices().wait(nullptr, line, wanted, kMinute, &d), d, "wait by the host");
  }
  uint64_t reached() {
    uint64_t v = 0, failed = 0;
    tn_diag d = empty_diag();
    need(s_.devices().query(line, 0, &v, &failed, &d), d, "query");
    return v;
  }

  tn_dev_queue* queue = nullptr;
  tn_dev_timeline* line = nullptr;
  uint64_t value = 0;

 private:
  Subject& s_;
};

tn_view host_view(void* p, uint64_t bytes) { return {0, 0, bytes, p}; }

struct Relay {
  Memory memory;
  std::vector<unsigned char> fresh, got;
};

void write_behind(Relay& r, Lane& writer, const Lane& gate) {
  writer.after(gate, 1);
  writer.copy(r.memory.view(0, 4096), host_view(r.fresh.data(), 4096));
  writer.signal();
}

void read_behind(Relay& r, Lane& reader, const Lane& writer) {
  reader.after(writer, 1);
  reader.copy(host_view(r.got.data(), 4096), r.memory.view(0, 4096));
  reader.signal();
}

// The reader waits for the writer, the writer for the host, who lets go late. The reader's work is given first: a wait may
// stand in a queue before the value it waits for is on its way. Not so with inline queues, which wait on the calling
// thread: there another thread lets go.
void waits_between_queues(Session& session, Subject& s) {
  session.check("5.waits_between_queues", {"async"}, [&](Trial& t) {
    const bool is_inline = (s.info().flags & TN_DEVICE_INLINE) != 0;
    for (int round = 0; round < 5; ++round) {
      Relay r{s.alloc(4096), std::vector<unsigned char>(4096, 2), std::vector<unsigned char>(4096, 3)};
      const std::vector<unsigned char> old(4096, 1);
      s.write(r.memory, 0, old.data(), old.size());
      Lane gate(s), writer(s), reader(s);
      const auto open_gate = [&] {
        std::this_thread::sleep_for(milliseconds(20));
        if (!is_inline && (writer.reached() != 0 || reader.reached() != 0)) t.fail("work behind a wait ran before the value was signalled: the wait is no barrier");
        s.devices().signal(nullptr, gate.line, 1, nullptr);
      };
      std::thread opener;
      if (is_inline) opener = std::thread(open_gate);
      if (!is_inline) read_behind(r, reader, writer);
      write_behind(r, writer, gate);
      if (is_inline) read_behind(r, reader, writer);
      if (!is_inline) open_gate();
      reader.host_waits(1);
      writer.host_waits(1);
      if (is_inline) opener.join();
      t.count();
      t.need(r.got == r.fresh, r.got == old ? "a queue waited for a value of another queue, but its later work read what was there before: the wait is no barrier"
                                            : "work behind a wait for another queue read neither the old nor the new bytes");
      s.free(&r.memory);
    }
  });
}

void value_follows_work(Session& session, Subject& s) {
  session.check("5.values_follow_work", {"async"}, [&](Trial& t) {
    constexpr size_t kBytes = 1 << 20;
    Memory m = s.alloc(kBytes);
    Lane lane(s);
    std::vector<unsigned char> sent(kBytes), got(kBytes);
    for (int round = 0; round < 20; ++round) {
      std::memset(sent.data(), round + 1, kBytes);
      std::memset(got.data(), 0, kBytes);
      lane.copy(m.view(0, kBytes), host_view(sent.data(), kBytes));
      lane.copy(host_view(got.data(), kBytes), m.view(0, kBytes));
      const uint64_t v = lane.signal();
      while (lane.reached() < v) std::this_thread::yield();  // by looking, not by waiting
      t.count();
      t.need(got == sent, "the timeline shows a value before the work in front of its signal is done");
    }
    s.free(&m);
  });
}

// Random copies between buffers over several queues; a queue waits for the last writer and the last readers of what it touches.
void random_traffic(Session& session, Subject& s) {
  session.check("5.random_waits", {"async"}, [&](Trial& t) {
    constexpr size_t kBuffers = 6, kBytes = 2048;
    std::mt19937 random(static_cast<uint32_t>(session.options.seed));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < 3; ++i) lanes.push_back(std::make_unique<Lane>(s));
    std::vector<Memory> memory;
    std::vector<std::vector<unsigned char>> model(kBuffers, std::vector<unsigned char>(kBytes));
    struct Use { size_t lane; uint64_t value; };
    std::vector<std::vector<Use>> uses(kBuffers);
    for (size_t i = 0; i < kBuffers; ++i) {
      memory.push_back(s.alloc(kBytes));
      for (unsigned char& b : model[i]) b = static_cast<unsigned char>(random());
      s.write(memory[i], 0, model[i].data(), kBytes);
    }
    for (int step = 0; step < 400; ++step) {
      const size_t lane = random() % lanes.size(), from = random() % kBuffers, to = random() % kBuffers, n = 1 + random() % 512;
      const size_t at_from = random() % (kBytes - n), at_to = random() % (kBytes - n);
      if (from == to) continue;
      for (const size_t b : {from, to})
        for (const Use& u : uses[b])
          if (u.lane != lane) lanes[lane]->after(*lanes[u.lane], u.value);
      lanes[lane]->copy(memory[to].view(at_to, n), memory[from].view(at_from, n));
      const uint64_t v = lanes[lane]->signal();
      uses[to] = {{lane, v}};
      uses[from].push_back({lane, v});
      std::copy_n(model[from].begin() + static_cast<std::ptrdiff_t>(at_from), n, model[to].begin() + static_cast<std::ptrdiff_t>(at_to));
      t.count();
    }
    for (auto& lane : lanes) lane->host_waits(lane->value);
    for (size_t i = 0; i < kBuffers; ++i) {
      std::vector<unsigned char> got(kBytes);
      s.read(memory[i], 0, got.data(), kBytes);
      t.need(got == model[i], "400 copies over 3 queues with waits between them leave other bytes than in the order of their waits");
      s.free(&memory[i]);
    }
  });
}

void waiters(Session& session, Subject& s) {
  session.check("5.all_waiters_wake", {"async"}, [&](Trial& t) {
    for (int round = 0; round < 50; ++round) {
      Lane lane(s);
      std::atomic<int> woken{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
          if (s.devices().wait(nullptr, lane.line, 3, kMinute / 2, nullptr) == TN_OK) woken.fetch_add(1);
        });
      for (uint64_t v = 1; v <= 3; ++v) s.devices().signal(nullptr, lane.line, v, nullptr);
      for (std::thread& thread : threads) thread.join();
      t.count();
      t.need(woken.load() == 4, std::to_string(woken.load()) + " of 4 threads that waited for one value woke");
    }
  });
  session.check("5.values_only_grow", {"async"}, [&](Trial& t) {
    Lane lane(s);
    std::atomic<bool> over{false}, fell{false};
    std::thread looker([&] {
      uint64_t last = 0;
      while (!over.load()) {
        uint64_t v = 0, failed = 0;
        s.devices().query(lane.line, last, &v, &failed, nullptr);
        if (v < last) fell.store(true);
        last = v;
      }
    });
    for (int i = 0; i < 20000; ++i) lane.signal();
    lane.host_waits(lane.value);
    over.store(true);
    looker.join();
    t.count(20000);
    t.need(!fell.load(), "a timeline went backwards while another thread looked");
  });
}

void add_one(ops::ProgramBuilder& b) { b.output(b.op(TN_OP_ADD, b.input(0), b.slot(0))); }

// Each thread: an own queue, a chain of launches of one shared plan on own buffers.
void launches_from_threads(Session& session, Subject& s) {
  session.check("5.launches_from_threads", {"async", "kernels"}, [&](Trial& t) {
    const Call call{"pointwise", {ops::case_program(TN_KEY_PROGRAM, add_one)}, {array(TN_F32, {1000}, std::vector<Number>(1000, 0))}, {0x3F800000u /* 1.0f */}, TN_F32};
    Problem p;
    std::string why;
    need(make_problem(call, &p, &why), empty_diag(), why);
    const tn_kernel_info* chosen = nullptr;
    for (const tn_kernel_info* row : s.rows())
      if (chosen == nullptr && row->op_id == TN_OPID_POINTWISE && s.asks(*row, p, &why) == Subject::Answer::Yes) chosen = row;
    if (chosen == nullptr) return t.skip("no kernel adds a number to f32[1000]");
    const tn_kernel_plan* plan = nullptr;
    tn_diag d = empty_diag();
    need(chosen->prepare(s.self(), &s.ref(), &p.op(), &plan, &d), d, "prepare");
    if (plan->workspace_bytes != 0) return chosen->retire(s.self(), &s.ref(), plan), t.skip("the kernel wants workspace");
    std::atomic<int> wrong{0};
    const auto work = [&](int number) {
      Lane lane(s);
      Memory a = s.alloc(4000), b = s.alloc(4000);
      std::vector<float> values(1000, static_cast<float>(number));
      lane.copy(a.view(0, 4000), host_view(values.data(), 4000));
      for (int i = 0; i < 100; ++i) {
        const tn_view views[] = {(i % 2 == 0 ? a : b).view(0, 4000), (i % 2 == 0 ? b : a).view(0, 4000)};
        const uint64_t one = 0x3F800000u;
        const tn_launch launch{views, 2, 8, &one, lane.queue, nullptr, nullptr};
        if (plan->launch(plan, &launch) != TN_OK) wrong.fetch_add(1);
      }
      std::vector<float> got(1000);
      lane.copy(host_view(got.data(), 4000), a.view(0, 4000));
      const uint64_t v = lane.signal();
      lane.host_waits(v);
      for (float x : got) wrong.fetch_add(x == static_cast<float>(number + 100) ? 0 : 1);
      s.free(&a), s.free(&b);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { try { work(i * 10); } catch (const std::exception&) { wrong.fetch_add(1000); } });
    for (std::thread& thread : threads) thread.join();
    t.count(400);
    t.need(wrong.load() == 0, "chains of 100 launches of one plan on 4 queues by 4 threads: " + std::to_string(wrong.load()) + " wrong elements or refused launches");
    chosen->retire(s.self(), &s.ref(), plan);
  });
}

}  // namespace

void level5(Session& session) {
  const Library library(session.options.plugin);
  Subject s(library, session.options);
  if (!s.pack()) {
    waits_between_queues(session, s);
    value_follows_work(session, s);
    random_traffic(session, s);
    waiters(session, s);
  }
  launches_from_threads(session, s);
}

}  // namespace tenon::conformance
