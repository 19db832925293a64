#pragma once

#include <atomic>

#include "transport/nccl/api.h"

// The fake NCCL is a shared library that has the functions of NCCL which tutti uses. Its path is in the macro
// TUTTI_FAKE_NCCL. It computes real results in the memory of the fake CUDA, in the order of streams, between
// threads of one process or between processes. Calls that differ hang, as with NCCL, but nobody notices if
// some ranks ask for a sum and others for a maximum. Using a communicator while it is in progress is an
// error, and so is using it while its device is not current.

// A `FakeNcclFault` happens on one rank, in one of its calls of collectives. Each communicator counts its
// calls from 0.
struct FakeNcclFault {
  std::atomic<int> rank{-1};  // -1: on no rank
  std::atomic<int> call{0};
  std::atomic<int> outcome{3};  // ncclInternalError
};

// These members control the fake. Any thread may set them.
struct FakeNccl {
  std::atomic<int> version{22705};
  std::atomic<int> init_queries{1};       // a communicator is in progress for at least this many queries
  std::atomic<int> launch_queries{0};     // a group is in progress for this many queries
  std::atomic<bool> abort_blocks{false};  // as long as this is true, ncclCommAbort does not return
  FakeNcclFault refusal;                  // the call returns the outcome
  FakeNcclFault failure;                  // the call never ends, and queries return the outcome
  FakeNcclFault hang;                     // the call never ends
  // These count.
  std::atomic<int> communicators{0};  // that exist
  std::atomic<int> initialized{0};    // communicators that were made
  std::atomic<int> aborting{0};       // calls of ncclCommAbort that have not returned
  std::atomic<int> calls{0};
  std::atomic<int> registrations{0};  // that exist
  std::atomic<int> operations{0};     // premultiplied sums that exist
};
FakeNccl& fake_nccl();
// Gives all members their initial values. No communicator may exist.
void fake_nccl_reset();
