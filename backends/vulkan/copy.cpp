// backends/vulkan/copy.cpp - copies and fills of a stream; see stream.h.
#include <algorithm>
#include <cstring>

#include "backends/vulkan/host_import.h"
#include "backends/vulkan/status.h"
#include "backends/vulkan/stream.h"

namespace tenon::vulkan {
namespace {

constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kCopying = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr uint64_t kLeastPiece = 64 << 10;  // rather a new slab than a smaller piece of a large copy

unsigned long long ull(uint64_t n) { return n; }

// The block of a piece, or NULL with an error when the range leaves it.
const Block* block_of(const gpu::Stream::Piece& piece, uint64_t bytes, const char* side, tn_diag* diag) {
  const auto* block = reinterpret_cast<const Block*>(piece.handle);
  if (piece.offset <= block->bytes && bytes <= block->bytes - piece.offset) return block;
  fail(diag, TN_E_ARG, kErrArgument, VK_SUCCESS, "vulkan: copy: the %s leaves its memory\nwhy: %llu bytes from %llu on, of %llu\ntry: copy what is there", side, ull(bytes), ull(piece.offset), ull(block->bytes));
  return nullptr;
}

}  // namespace

// Until less staging memory is under way, or nothing more of this stream is: the only place where enqueuing waits.
tn_status Stream::make_space(tn_diag* diag) {
  while (gpu_->staging->full()) {
    if (recording_ != nullptr && recording_->n_commands != 0)
      if (tn_status s = submit(diag); s != TN_OK) return s;
    if (running_.empty()) return TN_OK;
    if (tn_status s = timeline_->wait(running_.front()->value, TN_FOREVER, diag); s != TN_OK) return s;
    if (tn_status s = reclaim(diag); s != TN_OK) return s;
  }
  return TN_OK;
}

// At most `at_most` bytes of mapped memory in one piece, less where a slab ends and the piece is still a fair one.
tn_status Stream::room(uint64_t at_most, uint64_t align, Room* out, tn_diag* diag) {
  const uint64_t fair = std::min(at_most, kLeastPiece);
  uint64_t at = slab_ == nullptr ? 0 : (slab_->used + align - 1) / align * align;
  if (slab_ == nullptr || at + fair > kSlabBytes) {
    slab_.reset();
    if (tn_status s = make_space(diag); s != TN_OK) return s;
    if (tn_status s = gpu_->staging->take(&slab_, diag); s != TN_OK) return s;
    at = 0;
  }
  out->slab = slab_, out->offset = at, out->bytes = std::min(at_most, kSlabBytes - at);
  slab_->used = at + out->bytes;
  return TN_OK;
}

tn_status Stream::copy_buffers(VkBuffer dst, uint64_t dst_offset, VkBuffer src, uint64_t src_offset, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = begin(diag); s != TN_OK) return s;
  barrier(kTransfer, kCopying);
  const VkBufferCopy region{src_offset, dst_offset, bytes};
  gpu_->fn.vkCmdCopyBuffer(recording_->commands, src, dst, 1, &region);
  ++recording_->n_commands;
  return TN_OK;
}

// Uploads through staging read their source when they are enqueued, and copies in place reach host memory before staged
// downloads of earlier have landed there: with a download into the same bytes still under way, both would be out of order.
tn_status Stream::await_host_writes(const void* host, uint64_t bytes, tn_diag* diag) {
  if (!gpu_->landings.writes(host, bytes)) return TN_OK;
  if (tn_status s = submit(diag); s != TN_OK) return s;
  return timeline_->wait(submitted_, TN_FOREVER, diag);
}

tn_status Stream::upload(const Block& dst, uint64_t offset, const char* host, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = await_host_writes(host, bytes, diag); s != TN_OK) return s;
  if (bytes >= kImportBytes)
    if (auto import = HostImport::make(gpu_.get(), const_cast<char*>(host), bytes); import != nullptr) {
      if (tn_status s = copy_buffers(dst.buffer, offset, import->buffer, import->offset, bytes, diag); s != TN_OK) return s;
      hold(std::move(import));
      return submit_if_long(diag);
    }
  for (uint64_t done = 0; done < bytes;) {
    Room room;
    if (tn_status s = this->room(bytes - done, 16, &room, diag); s != TN_OK) return s;
    std::memcpy(room.at(), host + done, room.bytes);
    if (tn_status s = copy_buffers(dst.buffer, offset + done, room.slab->block->buffer, room.offset, room.bytes, diag); s != TN_OK) return s;
    hold(room.slab);
    recording_->staged_bytes += room.bytes;
    done += room.bytes;
    if (tn_status s = submit_if_long(diag); s != TN_OK) return s;
  }
  return TN_OK;
}

tn_status Stream::download(char* host, const Block& src, uint64_t offset, uint64_t bytes, tn_diag* diag) {
  if (bytes >= kImportBytes)
    if (auto import = HostImport::make(gpu_.get(), host, bytes); import != nullptr) {
      if (tn_status s = await_host_writes(host, bytes, diag); s != TN_OK) return s;
      if (tn_status s = copy_buffers(import->buffer, import->offset, src.buffer, offset, bytes, diag); s != TN_OK) return s;
      gpu_->landings.add(timeline_->stream, {submitted_ + 1, host, bytes, nullptr, import});
      return submit_if_long(diag);
    }
  for (uint64_t done = 0; done < bytes;) {
    Room room;
    if (tn_status s = this->room(bytes - done, 16, &room, diag); s != TN_OK) return s;
    if (tn_status s = copy_buffers(room.slab->block->buffer, room.offset, src.buffer, offset + done, room.bytes, diag); s != TN_OK) return s;
    recording_->staged_bytes += room.bytes;
    gpu_->landings.add(timeline_->stream, {submitted_ + 1, host + done, room.bytes, room.at(), room.slab});
    done += room.bytes;
    if (tn_status s = submit_if_long(diag); s != TN_OK) return s;
  }
  return TN_OK;
}

tn_status Stream::copy(const Piece& dst, const Piece& src, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
  if (bytes == 0) return TN_OK;
  const Block* to = dst.handle != 0 ? block_of(dst, bytes, "destination", diag) : nullptr;
  const Block* from = src.handle != 0 ? block_of(src, bytes, "source", diag) : nullptr;
  if ((dst.handle != 0 && to == nullptr) || (src.handle != 0 && from == nullptr)) return TN_E_ARG;
  if (from == nullptr) return upload(*to, dst.offset, static_cast<const char*>(src.host), bytes, diag);
  if (to == nullptr) return download(static_cast<char*>(dst.host), *from, src.offset, bytes, diag);
  if (to == from && dst.offset == src.offset) return TN_OK;
  if (to == from && dst.offset < src.offset + bytes && src.offset < dst.offset + bytes)
    return fail(diag, TN_E_ARG, kErrArgument, VK_SUCCESS, "vulkan: copy: source and destination overlap\nwhy: %llu bytes from %llu to %llu of one buffer\ntry: copy through another buffer", ull(bytes), ull(src.offset), ull(dst.offset));
  if (tn_status s = copy_buffers(to->buffer, dst.offset, from->buffer, src.offset, bytes, diag); s != TN_OK) return s;
  return submit_if_long(diag);
}

tn_status Stream::fill_zero(uint64_t handle, uint64_t offset, uint64_t bytes, tn_diag* diag) {
  if (tn_status s = gpu_->alive(diag); s != TN_OK) return s;
  const auto* block = reinterpret_cast<const Block*>(handle);
  if (offset % 4 != 0 || bytes % 4 != 0 || offset > block->bytes || bytes > block->bytes - offset)
    return fail(diag, TN_E_ARG, kErrArgument, VK_SUCCESS, "vulkan: fill: not a range of words of the memory\nwhy: %llu bytes from %llu on, of %llu\ntry: multiples of 4, inside", ull(bytes), ull(offset), ull(block->bytes));
  if (bytes == 0) return TN_OK;
  if (tn_status s = begin(diag); s != TN_OK) return s;
  barrier(kTransfer, kCopying);
  gpu_->fn.vkCmdFillBuffer(recording_->commands, block->buffer, offset, bytes, 0);
  ++recording_->n_commands;
  return submit_if_long(diag);
}

}  // namespace tenon::vulkan
