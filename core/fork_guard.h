#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

// The fork guard keeps our descriptors, and memory shared with peers, from a child of fork(). A data loader's
// child must not keep a dead rank's sockets open (its peers would never see the end of file), nor share our
// epoll instance. So in the child every guarded descriptor is replaced by /dev/null: the socket is closed
// there, while the number stays taken, so that a destructor that the child runs later cannot close a
// stranger. Children that exec need none of this: all is CLOEXEC.
namespace tutti {

// From now on a forked child has /dev/null in this descriptor's place. Any thread.
void guard_descriptor(int descriptor);
// Call before closing it.
void release_descriptor(int descriptor);

// From now on a forked child has zeroed memory of its own there: what it writes must not reach the peers of
// its parent. Whole pages. Any thread.
void guard_memory(void* start, std::size_t bytes);
// Call before unmapping it.
void release_memory(void* start);

extern constinit std::atomic<std::uint32_t> forks_so_far;

// How many forks lie between the first program and this process. An object that notes it at creation knows
// from one load whether it lives in a child, where its threads do not exist.
inline std::uint32_t fork_generation() { return forks_so_far.load(std::memory_order_relaxed); }

// For a thread of the parent, in a child, where it does not exist. It is neither joined nor detached: the C
// library may have given its handle to a thread that the child started, and would take that for it.
inline void forget(std::thread& thread) { std::construct_at(&thread); }

}  // namespace tutti
