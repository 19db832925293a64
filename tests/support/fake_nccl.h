#pragma once

#include <atomic>

#include "transport/nccl/api.h"

// The fake NCCL is a shared library with the functions of NCCL that tutti uses. The macro TUTTI_FAKE_NCCL
// holds its path. The fake computes real results in the memory of the fake CUDA, in the order of streams. The
// ranks are threads of one process, or separate processes. Calls that differ between ranks hang, as with
// NCCL. But the fake does not notice if some ranks call a sum and others a maximum. The fake refuses a call
// on a communicator that is in progress or whose device is not current. It also refuses to register the same
// memory with a communicator twice.

// A `FakeNcclFault` happens on one rank, in one of its collective calls. Each communicator counts these calls
// from 0.
struct FakeNcclFault {
  std::atomic<int> rank{-1};  // -1 means no rank
  std::atomic<int> call{0};
  std::atomic<int> outcome{3};  // ncclInternalError
};

// These members control the fake. Any thread may set them.
struct FakeNccl {
  std::atomic<int> version{22705};
  std::atomic<int> init_queries{1};       // a new communicator is in progress for at least this many queries
  std::atomic<int> launch_queries{1};     // a group is in progress for this many queries
  std::atomic<bool> abort_blocks{false};  // as long as this is true, ncclCommAbort does not return
  // If this is true, a device carries out one group at a time, in the order in which the groups were put into
  // streams. So groups of two communicators never end if two ranks put them into streams in different orders.
  std::atomic<bool> takes_turns{false};
  std::atomic<bool> lacks_memory{false};  // ncclMemAlloc fails, although the device may have memory
  FakeNcclFault refusal;                  // the call returns the outcome
  FakeNcclFault failure;                  // the call never ends, and queries return the outcome
  FakeNcclFault hang;                     // the call never ends
  // These members are counters.
  std::atomic<int> communicators{0};  // existing communicators
  std::atomic<int> initialized{0};    // communicators that have been made, destroyed ones included
  std::atomic<int> aborting{0};       // calls of ncclCommAbort that have not returned
  std::atomic<int> calls{0};
  std::atomic<int> registrations{0};          // existing registrations
  std::atomic<int> foreign_registrations{0};  // registrations of another device's memory
  std::atomic<int> memories{0};               // existing allocations of ncclMemAlloc
  std::atomic<int> operations{0};             // existing premultiplied sums
};
FakeNccl& fake_nccl();
// Gives all members their initial values. No communicator may exist.
void fake_nccl_reset();
