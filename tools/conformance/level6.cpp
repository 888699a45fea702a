// tools/conformance/level6.cpp - faults and unload: bad arguments, memory that runs out, work that fails, and a hundred lives
// without growth.
#include <dirent.h>
#include <malloc.h>
#include <tenon/ops.h>

#include <algorithm>
#include <fstream>

#include "ops/cases.h"
#include "ops/emit.h"
#include "tools/conformance/subject.h"
#include "tools/conformance/trial.h"

// There in a process under a sanitizer, whose allocator mallinfo2 knows nothing of.
extern "C" __attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes();

namespace tenon::conformance {
namespace {

// ---- bad arguments -----------------------------------------------------------------------------------------------------

void refused(Trial& t, const std::string& what, tn_status status, const tn_diag& diag, std::initializer_list<tn_status> wanted) {
  t.count();
  if (status == TN_OK) return t.fail(what + " is not refused");
  t.need(std::find(wanted.begin(), wanted.end(), status) != wanted.end(), what + " gives \"" + tn_status_text(status) + "\"");
  const std::string fault = fault_of(status, diag);
  t.need(fault.empty(), what + " " + fault);
}

void bad_arguments(Session& session, Subject& s) {
  const tn_plugin& d = s.devices();
  session.check("6.bad_arguments", {"faults"}, [&](Trial& t) {
    tn_diag diag = empty_diag();
    tn_device* device = nullptr;
    refused(t, "device_open of device 1000", d.device_open(s.device_instance(), 1000, nullptr, &device, &diag), diag, {TN_E_NOT_FOUND, TN_E_ARG});
    const tn_ext unknown{sizeof unknown, TN_EXT_CRITICAL | 0x7ABCDEu, nullptr};
    diag = empty_diag();
    refused(t, "device_open with an unknown critical extension", d.device_open(s.device_instance(), session.options.device, &unknown, &device, &diag), diag, {TN_E_EXT});
    tn_buffer b{};
    diag = empty_diag();
    refused(t, "alloc in space 1000", d.alloc(s.device(), 1000, 64, 64, &b, &diag), diag, {TN_E_ARG, TN_E_NOT_FOUND});
    diag = empty_diag();
    refused(t, "alloc with an alignment of 3", d.alloc(s.device(), 0, 64, 3, &b, &diag), diag, {TN_E_ARG});
    for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 62}) {
      diag = empty_diag();
      refused(t, "alloc of " + std::to_string(bytes) + " bytes", d.alloc(s.device(), 0, bytes, 64, &b, &diag), diag, {TN_E_OOM, TN_E_LIMIT, TN_E_ARG});
    }
    tn_dev_timeline* line = nullptr;
    need(d.timeline_open(s.device(), 10, &line, &diag), diag, "timeline_open");
    diag = empty_diag();
    refused(t, "a signal with a smaller value", d.signal(nullptr, line, 5, &diag), diag, {TN_E_ARG, TN_E_STATE});
    uint64_t value = 0, failed = 0;
    need(d.query(line, 0, &value, &failed, &diag), diag, "query");
    t.need(value == 10, "a refused signal moved the timeline to " + std::to_string(value));
    d.timeline_close(line);
    // Without a diagnosis to fill.
    t.need(d.alloc(s.device(), 1000, 64, 64, &b, nullptr) != TN_OK && d.device_open(s.device_instance(), 1000, nullptr, &device, nullptr) != TN_OK, "a bad argument is not refused where no diagnosis is wanted");
  });
  session.check("6.outside_a_buffer", {"faults"}, [&](Trial& t) {
    Memory m = s.alloc(100);
    if (m.buffer.host != nullptr) return s.free(&m), t.skip("buffers have host addresses: their bounds are the core's to keep");
    char bytes[256] = {};
    const tn_view host{0, 0, 200, bytes};
    for (const tn_view& v : {tn_view{m.buffer.handle, 0, 200, m.buffer.host}, tn_view{m.buffer.handle, 90, 200, m.buffer.host}, tn_view{m.buffer.handle, 1000, 200, m.buffer.host}}) {
      tn_diag diag = empty_diag();
      refused(t, "a copy of 200 bytes into a buffer of 100", d.copy(s.queue(), &v, &host, &diag), diag, {TN_E_ARG, TN_E_LIMIT});
      diag = empty_diag();
      refused(t, "a copy of 200 bytes out of a buffer of 100", d.copy(s.queue(), &host, &v, &diag), diag, {TN_E_ARG, TN_E_LIMIT});
    }
    s.free(&m);
  });
}

// ---- work that fails ----------------------------------------------------------------------------------------------------

void failing_work(Session& session, Subject& s) {
  session.check("6.failing_work", {"faults", "kernels"}, [&](Trial& t) {
    const auto call_with = [](Number index) {
      return Call{"gather", {ops::case_i64(TN_KEY_AXIS, 0)}, {array(TN_F32, {3}, {1, 2, 3}), array(TN_I64, {2}, {0, index})}, {}, TN_F32};
    };
    const Call bad = call_with(3), good = call_with(-1);
    Problem p, q;
    std::string why;
    need(make_problem(bad, &p, &why), empty_diag(), why);
    need(make_problem(good, &q, &why), empty_diag(), why);
    bool any = false;
    for (const tn_kernel_info* row : s.rows()) {
      if (row->op_id != TN_OPID_GATHER || s.asks(*row, p, &why) != Subject::Answer::Yes) continue;
      any = true;
      t.count(2);
      const Outcome o = s.run(*row, p);
      t.need(o.status == TN_E_FAILED, std::string(row->name) + ": an index outside its axis gives \"" + tn_status_text(o.status) + "\", not a failed value");
      const Outcome after = s.run(*row, q);
      t.need(after.ok() && after.out[0].v == std::vector<Number>{1, 3}, std::string(row->name) + ": after a failure, good work is not good again: " + after.message);
    }
    if (!any) t.skip("no kernel gathers f32 by i64");
  });
}

// ---- memory that runs out -------------------------------------------------------------------------------------------

void injected(Session& session, const Library& library) {
  session.check("6.allocation_fails", {"faults", "memory"}, [&](Trial& t) {
    uint64_t wanted = 0;
    {
      Host host(session.options.config);
      Instance i(library, host);
      wanted = host.allocations();
    }
    for (uint64_t n = 0; n < std::min<uint64_t>(wanted, 50); ++n) {
      Host host(session.options.config);
      host.fail_from(static_cast<int64_t>(n));
      t.count();
      try {
        Instance i(library, host);
        t.need(i.close() == 0, "opened without memory, the plugin cannot be closed");
      } catch (const std::runtime_error&) {
      }
      t.need(host.live_blocks() == 0, "when allocation " + std::to_string(n) + " of open fails, " + std::to_string(host.live_blocks()) + " blocks of the host stay behind");
    }
    if (wanted == 0) t.skip("open takes no memory of the host");
  });
  session.check("6.prepare_without_memory", {"faults", "memory", "kernels"}, [&](Trial& t) {
    Subject s(library, session.options);
    for (const tn_kernel_info* row : s.rows()) {
      const ops::OpDecl* decl = ops::find_op(row->op_id);
      if (decl == nullptr || decl->cases().empty()) continue;
      const ops::Case c = decl->cases()[0];
      const Call call = make_call(*decl, c, dtypes_of(*decl)[0], 0);
      Problem p;
      std::string why;
      if (make_problem(call, &p, &why) != TN_OK || s.asks(*row, p, &why) != Subject::Answer::Yes) continue;
      p = s.as_asked(*row, p);
      for (int64_t n = 0; n < 8; ++n) {
        const int64_t before = s.host().live_blocks();
        const uint64_t asked = s.host().allocations();
        s.host().fail_from(n);
        const tn_kernel_plan* plan = nullptr;
        tn_diag d = empty_diag();
        const tn_status status = row->prepare(s.self(), &s.ref(), &p.op(), &plan, &d);
        const bool hit = s.host().allocations() - asked > static_cast<uint64_t>(n);
        s.host().fail_from(-1);
        if (status == TN_OK) row->retire(s.self(), &s.ref(), plan);
        if (!hit) break;
        t.count();
        if (status != TN_OK) t.need(status == TN_E_OOM, std::string(row->name) + ": prepare without memory gives \"" + tn_status_text(status) + "\"");
        t.need(s.host().live_blocks() == before, std::string(row->name) + ": a prepare that failed keeps memory of the host");
      }
    }
  });
  session.check("6.device_memory_runs_out", {"faults", "memory"}, [&](Trial& t) {
    Subject s(library, session.options);
    if (s.pack()) return t.skip("a kernel pack: no memory of its own");
    if (s.info().kind == TN_KIND_CPU) return t.skip("the memory is the host's: running out of it would harm others");
    // Pieces of an eighth, so that a device with real memory is full after few of them.
    std::vector<tn_buffer> held;
    tn_status status = TN_OK;
    tn_diag d = empty_diag();
    const uint64_t piece = std::max<uint64_t>(s.info().mem_total_bytes / 8, 1);
    while (status == TN_OK && held.size() < 64) {
      held.emplace_back();
      status = s.devices().alloc(s.device(), 0, piece, 64, &held.back(), &d);
      t.count();
    }
    held.pop_back();
    t.need(status != TN_OK, "64 pieces of an eighth of the memory each could be had");
    if (status != TN_OK) t.need(status == TN_E_OOM && fault_of(status, d).empty(), "memory ran out with: " + text_of(status, d));
    for (const tn_buffer& b : held) s.devices().free(s.device(), &b);
    Memory again = s.alloc(4096);
    s.free(&again);
  });
}

// ---- growth ------------------------------------------------------------------------------------------------------------------

size_t entries_of(const char* folder) {
  size_t n = 0;
  if (DIR* d = opendir(folder)) {
    while (readdir(d) != nullptr) ++n;
    closedir(d);
  }
  return n;
}

size_t lines_of(const char* file) {
  std::ifstream in(file);
  size_t n = 0;
  for (std::string line; std::getline(in, line);) ++n;
  return n;
}

struct Held {
  size_t heap_bytes = 0, files = 0, threads = 0, maps = 0;
};

Held held_now() {
  Held h;
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    h.heap_bytes = __sanitizer_get_current_allocated_bytes();
  } else {
    malloc_trim(0);
    const struct mallinfo2 m = mallinfo2();
    h.heap_bytes = m.uordblks + m.hblkhd;
  }
  h.files = entries_of("/proc/self/fd"), h.threads = entries_of("/proc/self/task"), h.maps = lines_of("/proc/self/maps");
  return h;
}

void add_inputs(ops::ProgramBuilder& b) { b.output(b.op(TN_OP_ADD, b.input(0), b.input(1))); }

// One whole life: open, a device, memory, a launch, close. Returns live objects at the end.
uint32_t life(const Library& library, Host& host) {
  Instance i(library, host);
  if (i.table.devices != nullptr) {
    tn_device* device = nullptr;
    tn_dev_queue* queue = nullptr;
    tn_dev_timeline* line = nullptr;
    tn_diag d = empty_diag();
    need(i.table.device_open(i.self, 0, nullptr, &device, &d), d, "device_open");
    need(i.table.queue_open(device, 0, 0, &queue, &d), d, "queue_open");
    need(i.table.timeline_open(device, 0, &line, &d), d, "timeline_open");
    std::vector<tn_buffer> buffers(4);
    std::vector<char> bytes(100000, 7);
    for (tn_buffer& b : buffers) {
      need(i.table.alloc(device, 0, bytes.size(), 64, &b, &d), d, "alloc");
      const tn_view dst{b.handle, 0, bytes.size(), b.host}, src{0, 0, bytes.size(), bytes.data()};
      need(i.table.copy(queue, &dst, &src, &d), d, "copy");
    }
    need(i.table.signal(queue, line, 1, &d), d, "signal");
    need(i.table.wait(nullptr, line, 1, 60000000000, &d), d, "wait");
    for (const tn_buffer& b : buffers) i.table.free(device, &b);
    i.table.timeline_close(line);
    i.table.queue_close(queue);
    i.table.device_close(device);
  }
  return i.close();
}

void lives(Session& session, const Library& library) {
  session.check("6.hundred_lives", {"unload"}, [&](Trial& t) {
    constexpr int kLives = 100;
    uint32_t live = 0;
    int64_t blocks = 0;
    const auto one = [&] {
      Host host(session.options.config);
      live = std::max(live, life(library, host));
      blocks = std::max(blocks, host.live_blocks());
      for (const std::string& fault : host.faults()) t.fail(fault);
    };
    for (int i = 0; i < 10; ++i) one();  // what is made once and kept
    const Held before = held_now();
    for (int i = 0; i < kLives && !t.failed(); ++i) one();
    const Held after = held_now();
    t.count(kLives);
    t.need(live == 0, "everything was given back, but quiesce counts " + std::to_string(live) + " live objects");
    t.need(blocks == 0, std::to_string(blocks) + " blocks of host->alloc were not freed by close");
    // A loop that keeps one 100 kB buffer a life is far above this; the allocator's own bookkeeping is below.
    t.need(after.heap_bytes < before.heap_bytes + 200000, "open to close " + std::to_string(kLives) + " times: the heap grew by " + std::to_string(after.heap_bytes - before.heap_bytes) + " bytes");
    t.need(after.files <= before.files, "open files grew from " + std::to_string(before.files) + " to " + std::to_string(after.files));
    t.need(after.threads <= before.threads, "threads grew from " + std::to_string(before.threads) + " to " + std::to_string(after.threads));
    // A sanitizer's own allocator maps as it likes.
    if (__sanitizer_get_current_allocated_bytes == nullptr) t.need(after.maps <= before.maps + 8, "mappings grew from " + std::to_string(before.maps) + " to " + std::to_string(after.maps));
  });
  session.check("6.live_objects_are_counted", {"unload"}, [&](Trial& t) {
    Host host(session.options.config);
    Instance i(library, host);
    if (i.table.devices == nullptr) return t.skip("a kernel pack: no devices");
    tn_device* device = nullptr;
    tn_buffer b{};
    tn_diag d = empty_diag();
    need(i.table.device_open(i.self, 0, nullptr, &device, &d), d, "device_open");
    need(i.table.alloc(device, 0, 4096, 64, &b, &d), d, "alloc");
    uint32_t live = 0;
    i.table.quiesce(i.self, 0, &live, &d);
    t.count();
    t.need(live != 0, "a device and a buffer live, but quiesce counts nothing: the library would be unmapped under them");
    i.table.free(device, &b);
    i.table.device_close(device);
    i.table.quiesce(i.self, 1000000000, &live, &d);
    t.need(live == 0, "all is given back, but quiesce counts " + std::to_string(live));
  });
}

void plans(Session& session, const Library& library) {
  session.check("6.plans_are_given_back", {"unload", "kernels"}, [&](Trial& t) {
    Subject s(library, session.options);
    const Call call{"pointwise", {ops::case_program(TN_KEY_PROGRAM, add_inputs)}, {array(TN_F32, {4}, {1, 2, 3, 4}), array(TN_F32, {4}, {1, 2, 3, 4})}, {}, TN_F32};
    Problem p;
    std::string why;
    need(make_problem(call, &p, &why), empty_diag(), why);
    bool any = false;
    for (const tn_kernel_info* row : s.rows()) {
      if (row->op_id != TN_OPID_POINTWISE || s.asks(*row, p, &why) != Subject::Answer::Yes) continue;
      any = true;
      for (int i = 0; i < 20; ++i) need(s.run(*row, p).status, empty_diag(), "run");
      const int64_t blocks = s.host().live_blocks();
      const size_t heap = held_now().heap_bytes;
      for (int i = 0; i < 500; ++i) need(s.run(*row, p).status, empty_diag(), "run");
      t.count(500);
      t.need(s.host().live_blocks() <= blocks, std::string(row->name) + ": 500 plans made and retired keep blocks of the host");
      t.need(held_now().heap_bytes < heap + 20000, std::string(row->name) + ": 500 plans made and retired: the heap grew by " + std::to_string(held_now().heap_bytes - heap) + " bytes");
    }
    if (!any) t.skip("no kernel adds two f32[4]");
  });
}

}  // namespace

void level6(Session& session) {
  const Library library(session.options.plugin);
  {
    Subject s(library, session.options);
    if (!s.pack()) bad_arguments(session, s);
    failing_work(session, s);
  }
  injected(session, library);
  lives(session, library);
  plans(session, library);
}

}  // namespace tenon::conformance
