// backends/vulkan/landings.h - the last step of copies to host memory.
//
// The device copies into staging memory; from there the bytes must reach the caller's memory before anybody learns that the
// work is over. Nobody may be waiting when the device is done, so whoever looks at a fence does it (settle), once. A stream
// that waited on the device for another one carries the other's copies along: seeing its fence means seeing theirs.
//
// Knows no driver. Streams are numbers that are never used twice. Threads: any; one lock, held during the copies, since a
// second observer must not return before they are complete.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace tenon::vulkan {

class Landings {
 public:
  struct Landing {
    uint64_t value = 0;  // of the stream's timeline: the device's part is over when it is reached
    void* host = nullptr;
    uint64_t bytes = 0;
    const void* staged = nullptr;       // NULL: the device writes the host memory itself
    std::shared_ptr<const void> keep;   // what `staged` or the import stands on
  };

  void add(uint64_t stream, Landing);
  // Work of `stream` from `value` on runs after `other` reached `other_value`.
  void follow(uint64_t stream, uint64_t value, uint64_t other, uint64_t other_value);
  // `stream` has reached `value`: completes every copy that this implies. Fast when nothing is pending.
  void settle(uint64_t stream, uint64_t value);
  // Whether a copy still under way writes any of these bytes.
  bool writes(const void* host, uint64_t bytes);
  void drop(uint64_t stream);  // its work has ended or never will

 private:
  struct Link { uint64_t value, other, other_value; };
  struct Pending { std::deque<Landing> landings; std::deque<Link> links; };
  bool pending_locked(uint64_t stream, uint64_t value) const;
  void settle_locked(uint64_t stream, uint64_t value);

  std::mutex mutex_;
  std::unordered_map<uint64_t, Pending> streams_;
  std::atomic<uint64_t> n_{0};  // landings and links
};

}  // namespace tenon::vulkan
