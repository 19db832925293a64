#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/cuda/api.h"

// The fake CUDA is a shared library. It has the functions below, and the driver functions that
// tutti uses. The macro TUTTI_FAKE_CUDA holds its path. The fake needs no GPU: a stream is a
// thread, and the memory of a device is memory of the host with a second address. A program that
// accesses an address from cuMemAlloc is killed, as with a real device.
//
// These functions control the fake. Any thread may call them.
extern "C" {

struct FakeCudaCounts {
  int contexts;  // retained primary contexts
  int streams;
  int events;
  std::size_t pinned_bytes;
  std::size_t device_bytes;
  int copies;  // copies that have been made; a requested copy does not count yet
  // This counts the calls in which the calling thread waited for a device, or could have waited.
  int host_synchronisations;
  int waiting_for_room;  // threads that are waiting for room in a stream
};
// Returns the current numbers of objects, bytes and waiting threads. Also returns how many copies and
// synchronisations there have been since the last reset.
FakeCudaCounts fake_cuda_counts();

// Resets the fake to the state of a new process with `devices` devices. Memory, streams and events
// continue to exist. A process has two devices by default.
void fake_cuda_reset(int devices);
// Returns whether the process has called cuInit since the last reset.
bool fake_cuda_is_initialized();
// Sets the compute capability of all devices, such as 90 for 9.0. It is 90 after a reset.
void fake_cuda_set_capability(int capability);
// Turns all devices into instances of one device (MIG), which share one bus id.
void fake_cuda_make_instances();
// Makes the n-th later call of a function fail with `error`, without any other effect. `function`
// is its exported name, such as "cuMemAlloc_v2".
void fake_cuda_fail(const char* function, int n, tutti::cuda::Outcome error);
// Ends the work of all devices with `error`, like a kernel that accesses a wrong address. Most
// functions fail with that error afterwards.
void fake_cuda_break(tutti::cuda::Outcome error);
// Makes each copy of a stream take at least this long. Each copy pauses half-way.
void fake_cuda_slow_copies(unsigned microseconds);
// Makes the copies of streams, and cuMemFree, wait until this function is called with `false`.
void fake_cuda_hold_copies(bool hold);
// Gives each stream room for this many unfinished pieces of work. A function that adds more work waits for
// room, as with a real device. 0 means no limit, and a reset sets it to 0.
void fake_cuda_limit_streams(int pieces);
// Returns the address at which the host may access the memory at a device's address. Returns null
// if `bytes` bytes have not been allocated there.
void* fake_cuda_host_address(tutti::cuda::Address address, std::size_t bytes);

// Tests and the fake NCCL call these functions of the driver. tutti itself does not use most of them.
struct CUgraph_st;
// Makes a context of a device that is not the device's primary context, and makes it current.
tutti::cuda::Outcome cuCtxCreate_v2(tutti::cuda::Context* context, unsigned flags,
                                    tutti::cuda::Ordinal device);
// All streams of the context must have been destroyed.
tutti::cuda::Outcome cuCtxDestroy_v2(tutti::cuda::Context context);
tutti::cuda::Outcome cuMemAlloc_v2(tutti::cuda::Address* address, std::size_t bytes);
tutti::cuda::Outcome cuMemFree_v2(tutti::cuda::Address address);
tutti::cuda::Outcome cuMemcpy(tutti::cuda::Address to, tutti::cuda::Address from, std::size_t bytes);
tutti::cuda::Outcome cuLaunchHostFunc(tutti::cuda::StreamHandle stream, void (*function)(void*), void* data);
tutti::cuda::Outcome cuCtxGetDevice(tutti::cuda::Ordinal* device);
tutti::cuda::Outcome cuPointerGetAttribute(void* value, int attribute, tutti::cuda::Address address);
tutti::cuda::Outcome cuStreamBeginCapture_v2(tutti::cuda::StreamHandle stream, int mode);
// Sets *graph to a graph that cannot be launched, only destroyed.
tutti::cuda::Outcome cuStreamEndCapture(tutti::cuda::StreamHandle stream, CUgraph_st** graph);
tutti::cuda::Outcome cuGraphDestroy(CUgraph_st* graph);
}
