#pragma once

#include <cstdint>

// What becomes of our descriptors in a child of fork(). A data loader's child must not keep a dead rank's
// sockets open (its peers would never see the end of file), nor share our epoll instance. So in the child
// every guarded descriptor is replaced by /dev/null: the socket is closed there, while the number stays
// taken, so that a destructor that the child runs later cannot close a stranger. Children that exec need none
// of this: all is CLOEXEC.
namespace tutti {

// From now on a forked child has /dev/null in this descriptor's place. Any thread.
void guard_descriptor(int descriptor);
// Call before closing it.
void release_descriptor(int descriptor);

// How many forks lie between the first program and this process. An object that notes it at creation knows
// from one load whether it lives in a child, where its threads do not exist.
std::uint32_t fork_generation();

}  // namespace tutti
