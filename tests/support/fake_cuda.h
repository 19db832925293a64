#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/cuda/api.h"

// The fake CUDA is a shared library that has the driver functions which tutti uses, and those declared below.
// Its path is in the macro TUTTI_FAKE_CUDA. It needs no GPU: a stream is a thread, and the memory of a device
// is memory of the host under a second address. A program that touches the address that it gets from
// cuMemAlloc is killed, as with a real device.
//
// These functions control the fake. Any thread may call them.
extern "C" {

struct FakeCudaCounts {
  int contexts;  // primary contexts that are retained
  int streams;
  int events;
  std::size_t pinned_bytes;
  std::size_t device_bytes;
  int copies;                 // that have been made, not only asked for
  int host_synchronisations;  // calls that made, or could have made, the calling thread wait for a device
  int waiting_for_room;       // threads that now wait for room in a stream
};
// Returns what exists now, and what has happened since the last reset.
FakeCudaCounts fake_cuda_counts();

// Puts the fake in the state of a new process with `devices` devices. Memory, streams and events continue to
// exist. A process that does not call this has two devices.
void fake_cuda_reset(int devices);
// Returns whether the process has called cuInit since the last reset.
bool fake_cuda_is_initialized();
// Sets the compute capability of all devices, such as 90 for 9.0. It is 90 after a reset.
void fake_cuda_set_capability(int capability);
// Makes all devices instances of one device (MIG), which has a single bus.
void fake_cuda_make_instances();
// Makes the n-th call of a function from now on fail with `error`, without any other effect. The function's
// name is the exported one, such as "cuMemAlloc_v2".
void fake_cuda_fail(const char* function, int n, tutti::cuda::Outcome error);
// Ends the work of all devices with `error`, as a kernel does that accesses a wrong address. From now on, all
// functions fail with that error.
void fake_cuda_break(tutti::cuda::Outcome error);
// Makes each copy of a stream take at least this long: the copy pauses half-way.
void fake_cuda_slow_copies(unsigned microseconds);
// Makes the copies of streams wait until this is called again with `false`, and so does cuMemFree.
void fake_cuda_hold_copies(bool hold);
// Gives each stream room for this many pieces of work that have not been done. A function that adds more work
// waits for room, as with a real device. 0, as after a reset: there is no limit.
void fake_cuda_limit_streams(int pieces);
// Returns where the host may access the memory at an address of a device, or null if `bytes` bytes have not
// been allocated there.
void* fake_cuda_host_address(tutti::cuda::Address address, std::size_t bytes);

// Tests and the fake NCCL call these functions of the driver. tutti itself does not use most of them.
struct CUgraph_st;
tutti::cuda::Outcome cuMemAlloc_v2(tutti::cuda::Address* address, std::size_t bytes);
tutti::cuda::Outcome cuMemFree_v2(tutti::cuda::Address address);
tutti::cuda::Outcome cuMemcpy(tutti::cuda::Address to, tutti::cuda::Address from, std::size_t bytes);
tutti::cuda::Outcome cuLaunchHostFunc(tutti::cuda::StreamHandle stream, void (*function)(void*), void* data);
tutti::cuda::Outcome cuCtxGetDevice(tutti::cuda::Ordinal* device);
tutti::cuda::Outcome cuStreamBeginCapture_v2(tutti::cuda::StreamHandle stream, int mode);
// The graph can only be destroyed.
tutti::cuda::Outcome cuStreamEndCapture(tutti::cuda::StreamHandle stream, CUgraph_st** graph);
tutti::cuda::Outcome cuGraphDestroy(CUgraph_st* graph);
}
