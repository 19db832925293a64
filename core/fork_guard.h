#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

// The fork guard hides our descriptors, and the memory that we share with peers, from children of fork(). A
// child, such as a worker process of a data loader, must not keep the sockets of a dead parent open.
// Otherwise the parent's peers would never see the end of file. A child must not share our epoll instance
// either. So /dev/null replaces every guarded descriptor in the child. This closes the socket there but keeps
// its number in use, so that a destructor that the child runs later cannot close another file. Children that
// call exec() do not need this, since every descriptor is CLOEXEC.
namespace tutti {

// From now on, gives forked children /dev/null in place of this descriptor. Any thread may call it.
void guard_descriptor(int descriptor);
// Undoes `guard_descriptor`. It must be called before the descriptor is closed.
void release_descriptor(int descriptor);

// From now on, gives each forked child separate, zeroed memory at this address, so that nothing the child
// writes reaches the peers of its parent. The memory must consist of whole pages. Any thread may call it.
void guard_memory(void* start, std::size_t bytes);
// Undoes `guard_memory`. It must be called before the memory is unmapped.
void release_memory(void* start);

extern constinit std::atomic<std::uint32_t> forks_so_far;

// Returns the number of forks between the first process of the program and this one. An object can save this
// number when it is created. If `fork_generation` later returns another number, the object is in a forked
// child, where its threads do not exist.
inline std::uint32_t fork_generation() { return forks_so_far.load(std::memory_order_relaxed); }

// Drops the handle of a thread that exists only in the parent of this forked child. The thread is neither
// joined nor detached, since a thread that the child started may have got the same handle from the C library.
inline void forget(std::thread& thread) { std::construct_at(&thread); }

}  // namespace tutti
