// tests/doubles/memory.h - device and pinned memory with a faulting page behind each block and a watched border around it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon_double {

struct Block { uint64_t base = 0, bytes = 0; int device = 0; bool pinned = false; };

// 0, or the API's number: 2 out of memory (the device's bytes are used up, or OOM_AT). Fresh memory is full of 0xFF: NaN.
int allocate(int device, uint64_t bytes, bool pinned, uint64_t* out);
// 0; 1 unknown address or other kind; 719 when something wrote beyond the block, which is printed.
int release(uint64_t base, bool pinned);
// The block that holds the whole range; false if none does.
bool find(uint64_t address, uint64_t bytes, Block* out);
bool is_pinned(const void* address, uint64_t bytes);
uint64_t used_bytes(int device);
// "4 bytes behind a block of 256 bytes", for an address that faulted.
std::string describe(uint64_t address);
// True when the border of every block is whole; else says where it is not.
bool borders_whole(std::string* where);

}  // namespace tenon_double
