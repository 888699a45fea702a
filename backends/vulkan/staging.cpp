// backends/vulkan/staging.cpp - see staging.h.
#include "backends/vulkan/staging.h"

namespace tenon::vulkan {
namespace {

constexpr size_t kMostIdle = 16;  // slabs kept for the next copies: 64 MiB

}  // namespace

tn_status Staging::take(std::shared_ptr<Slab>* out, tn_diag* diag) {
  std::unique_ptr<Slab> slab;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      slab = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (slab == nullptr) {
    slab = std::make_unique<Slab>();
    if (tn_status s = memory_->alloc(kSlabBytes, 4096, MemoryKind::Host, &slab->block, diag); s != TN_OK) return s;
  }
  slab->used = 0;
  out_.fetch_add(1);
  *out = std::shared_ptr<Slab>(slab.release(), [this](Slab* s) { give(s); });
  return TN_OK;
}

void Staging::give(Slab* slab) {
  out_.fetch_sub(1);
  std::unique_ptr<Slab> own(slab);
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostIdle) {
      idle_.push_back(std::move(own));
      return;
    }
  }
  memory_->free(own->block);
}

Staging::~Staging() {
  for (const auto& slab : idle_) memory_->free(slab->block);
}

}  // namespace tenon::vulkan
