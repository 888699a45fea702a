// backends/vulkan/landings.cpp - see landings.h.
#include "backends/vulkan/landings.h"

#include <cstring>
#include <utility>

namespace tenon::vulkan {

void Landings::add(uint64_t stream, Landing landing) {
  const std::lock_guard lock(mutex_);
  streams_[stream].landings.push_back(std::move(landing));
  n_.fetch_add(1, std::memory_order_relaxed);
}

bool Landings::pending_locked(uint64_t stream, uint64_t value) const {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return false;
  const Pending& p = it->second;
  return (!p.landings.empty() && p.landings.front().value <= value) || (!p.links.empty() && p.links.front().value <= value);
}

void Landings::follow(uint64_t stream, uint64_t value, uint64_t other, uint64_t other_value) {
  if (n_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  if (!pending_locked(other, other_value)) return;
  streams_[stream].links.push_back({value, other, other_value});
  n_.fetch_add(1, std::memory_order_relaxed);
}

void Landings::settle(uint64_t stream, uint64_t value) {
  // Whoever added something for this fence did so before the fence was made, so zero is not too early; and the count
  // falls only after the bytes are in place.
  if (n_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  settle_locked(stream, value);
}

void Landings::settle_locked(uint64_t stream, uint64_t value) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  Pending& p = it->second;  // stays where it is: the map is a node-based one
  while (!p.links.empty() && p.links.front().value <= value) {
    const Link link = p.links.front();
    p.links.pop_front();
    settle_locked(link.other, link.other_value);
    n_.fetch_sub(1, std::memory_order_release);
  }
  while (!p.landings.empty() && p.landings.front().value <= value) {
    const Landing& l = p.landings.front();
    if (l.staged != nullptr) std::memcpy(l.host, l.staged, l.bytes);
    p.landings.pop_front();
    n_.fetch_sub(1, std::memory_order_release);
  }
}

bool Landings::writes(const void* host, uint64_t bytes) {
  if (n_.load(std::memory_order_acquire) == 0) return false;
  const auto begin = reinterpret_cast<uintptr_t>(host);
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, p] : streams_)
    for (const Landing& l : p.landings) {
      const auto to = reinterpret_cast<uintptr_t>(l.host);
      if (begin < to + l.bytes && to < begin + bytes) return true;
    }
  return false;
}

void Landings::drop(uint64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  n_.fetch_sub(it->second.landings.size() + it->second.links.size(), std::memory_order_release);
  streams_.erase(it);
}

}  // namespace tenon::vulkan
