#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

// The fork guard keeps our descriptors, and memory shared with peers, from a child of fork(). A data loader's
// child must not keep a dead rank's sockets open (its peers would never see the end of file), nor share our
// epoll instance. So in the child every guarded descriptor is replaced by /dev/null: the socket is closed
// there, while the number stays taken, so that a destructor that the child runs later cannot close an
// unrelated file. Children that exec need none of this: all is CLOEXEC.
namespace tutti {

// Gives forked children /dev/null in this descriptor's place from now on. Any thread may call it.
void guard_descriptor(int descriptor);
// Ends that. Call it before the descriptor is closed.
void release_descriptor(int descriptor);

// Gives forked children zeroed memory of their own there from now on, so that nothing they write reaches the
// peers of their parent. Whole pages. Any thread may call it.
void guard_memory(void* start, std::size_t bytes);
// Ends that. Call it before the memory is unmapped.
void release_memory(void* start);

extern constinit std::atomic<std::uint32_t> forks_so_far;

// The number of forks between the first program and this process. An object that keeps it from its creation
// can tell by one load whether it lives in a child, where its threads do not exist.
inline std::uint32_t fork_generation() { return forks_so_far.load(std::memory_order_relaxed); }

// Drops the handle of a thread of the parent, in a child, where the thread does not exist. It is neither
// joined nor detached: the C library may have given its handle to a thread that the child started, and would
// affect that thread instead.
inline void forget(std::thread& thread) { std::construct_at(&thread); }

}  // namespace tutti
