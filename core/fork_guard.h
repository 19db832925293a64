#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

// The fork guard keeps our descriptors, and memory shared with peers, from a child of fork(). A data loader's
// child must not keep a dead rank's sockets open (its peers would never see the end of file), nor share our
// epoll instance. So in the child every guarded descriptor is replaced by /dev/null: the socket is closed
// there, while the number stays taken, so that a destructor that the child runs later cannot close another
// file. Children that call exec() do not need this, since every descriptor is CLOEXEC.
namespace tutti {

// Gives forked children /dev/null in this descriptor's place from now on. Any thread may call it.
void guard_descriptor(int descriptor);
// Undoes `guard_descriptor`. It must be called before the descriptor is closed.
void release_descriptor(int descriptor);

// Gives forked children zeroed memory of their own in this place from now on, so that nothing that they write
// reaches the peers of their parent. The memory must consist of whole pages. Any thread may call it.
void guard_memory(void* start, std::size_t bytes);
// Undoes `guard_memory`. It must be called before the memory is unmapped.
void release_memory(void* start);

extern constinit std::atomic<std::uint32_t> forks_so_far;

// Returns the number of forks between the first process of the program and this one. An object that saves it
// at its creation can tell by one load whether it is in a forked child, where its threads do not exist.
inline std::uint32_t fork_generation() { return forks_so_far.load(std::memory_order_relaxed); }

// Drops, in a forked child, the handle of a thread of the parent, which does not exist here. The thread is
// neither joined nor detached, since a thread that the child started may have got the same handle from the C
// library.
inline void forget(std::thread& thread) { std::construct_at(&thread); }

}  // namespace tutti
