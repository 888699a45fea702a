// loader/isolate/wire.h - what goes between a program and the worker process of an isolated plugin: numbers of calls, frames,
// and the data of the ABI written into bytes and read back.
//
//   Writer w;  w.put(queue.remote);  w.put_op(op);        // one side
//   Reader r(bytes);  auto queue = r.get<uint64_t>();     // the other; r.good() is false once anything was missing
//
// Both sides come from one build, so structs of the ABI travel as they are; what they point at follows them. Objects of the
// plugin are named by their addresses in the worker, which the program only hands back.
#pragma once
#include <tenon/plugin.h>

#include <cstring>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon::loader::isolate {

// X(name, text, patience): how long the program waits for the answer, see Patience.
#define TENON_WORKER_CALLS(X) \
  X(Load, "constructor or query", Computing) X(Open, "open", Computing) X(Quiesce, "quiesce", Beats) X(Close, "close", Computing) \
  X(Devices, "devices", Short) X(Caps, "caps", Short) X(DeviceOpen, "device_open", Computing) X(DeviceClose, "device_close", Computing) \
  X(Spaces, "spaces", Short) X(Alloc, "alloc", Short) X(Free, "free", Short) X(Map, "mapping of memory", Short) X(Unmap, "unmapping of memory", Short) \
  X(Copy, "copy", Computing) X(QueueOpen, "queue_open", Short) X(QueueClose, "queue_close", Computing) \
  X(TimelineOpen, "timeline_open", Short) X(TimelineClose, "timeline_close", Short) X(Signal, "signal", Short) X(Wait, "wait", Beats) X(Query, "query", Short) \
  X(Kernels, "kernels", Short) X(Supports, "supports", Short) X(Prepare, "prepare", Computing) X(Retire, "retire", Short) X(Launch, "launch", Computing) \
  X(PackedBytes, "bytes of a packed operand", Computing) X(Pack, "pack", Computing)

enum class Call : uint32_t {
#define X(name, text, patience) name,
  TENON_WORKER_CALLS(X)
#undef X
};

// Short: an answer must come within the limit. Computing: the limit starts again while the worker uses processor time, for
// kernels and compilers may run long. Beats: the worker says by itself that it is still waiting.
enum class Patience { Short, Computing, Beats };
const char* call_name(Call);
Patience patience_of(Call);

// Frames of a lane: a request is answered by one Answer, before which any number of Beats may come; one whose number has the
// bit Posted is not answered.
enum FrameKind : uint32_t { kAnswer = 1000, kBeat };
inline constexpr uint32_t kPosted = 0x80000000u;
// Frames of the event channel, which each worker has one of. To the program: Log, Ask (a key of the configuration), Cancelled.
// To the worker: Lane (with a descriptor) and Reply.
enum EventKind : uint32_t { kLog = 2000, kAsk, kCancelled, kLane, kReply };

// Descriptors of the worker.
inline constexpr int kEventChannel = 3, kPluginFile = 4;
inline constexpr uint32_t kMostFrameBytes = 64u << 20;
inline constexpr uint32_t kMostRows = 256;  // kernels of one isolated plugin

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* data, size_t n) {
    if (n != 0) bytes_.append(static_cast<const char*>(data), n);
  }
  void put_text(const char* text);  // NULL is kept apart from ""
  // TN_E_EXT when the op carries a critical extension, which cannot be sent.
  tn_status put_op(const tn_op&, tn_diag*);
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : at_(bytes.data()), left_(bytes.size()) {}
  template <class T>
  T get() {
    T value{};
    static_assert(std::is_trivially_copyable_v<T>);
    if (const char* from = take(sizeof value)) std::memcpy(static_cast<void*>(&value), from, sizeof value);
    return value;
  }
  const char* take(size_t n);  // NULL when so many are not there
  bool get_text(std::string* out);  // false: NULL was sent
  bool good() const { return good_; }

 private:
  const char* at_;
  size_t left_;
  bool good_ = true;
};

// An op that was sent, with memory for all it points at.
class OpCopy {
 public:
  bool read(Reader*);  // false: malformed
  const tn_op* get() const { return &op_; }

 private:
  bool read_payload(Reader*, tn_attr*);
  tn_op op_{};
  std::vector<tn_type> types_;
  std::vector<tn_attr> attrs_;
  std::deque<std::vector<uint64_t>> payloads_;
  std::deque<tn_program> programs_;
};

}  // namespace tenon::loader::isolate
