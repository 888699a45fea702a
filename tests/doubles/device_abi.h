// tests/doubles/device_abi.h - between a double and a kernel compiled for it. Included by both sides; needs no header.
#pragma once

struct TenonIndex { unsigned x, y, z; };
// What a kernel sees of its thread, and what it can ask the block's scheduler.
struct TenonDevice {
  TenonIndex thread, block, block_dim, grid_dim;
  unsigned lane, warp_size;
  // All threads of the block meet.
  void (*barrier)();
  // The lanes of a warp meet and show each other a value: *values holds warp_size of them, the result has a bit for each lane
  // that took part. Valid until the next meeting.
  unsigned long long (*exchange)(unsigned long long mine, const unsigned long long** values);
};
// One kernel of a compiled library: `tenon_kernel_<name>`.
struct TenonKernel {
  void (*call)(void** arguments);
  unsigned n_arguments, most_threads;
  const unsigned* argument_bytes;
  TenonDevice** device;          // the library's pointer to the running thread
  char *shared_begin, *shared_end;
};
