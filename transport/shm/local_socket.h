#pragma once

#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "core/descriptor.h"
#include "transport/shm/note.h"

// Unix sockets in the abstract namespace carry notes and descriptors between processes of one host. That
// namespace belongs to the network namespace, and nothing is left in any file system. They move packets and
// never block. Errors are errno values, zero for none.
namespace tutti::shm {

// The most descriptors that one packet can carry (the kernel's SCM_MAX_FD).
inline constexpr std::size_t max_descriptors = 253;

Result<Descriptor> listen_local(const std::string& name);
// EAGAIN: too many connections wait to be accepted there. ECONNREFUSED: no socket has that name.
Descriptor connect_local(const std::string& name, int& error);
// Accepts the next connection. EAGAIN: none. EACCES: it came from another user's process, and was closed.
Descriptor accept_local(int listener, int& error);

// EAGAIN, ETOOMANYREFS: later (the queue is full; the user has too many descriptors in flight).
[[nodiscard]] int send_note(int socket, const Note& note, std::span<const int> descriptors);
// EAGAIN: nothing there. EPIPE: the other side has closed. EBADMSG: something that is not a note of ours.
// EMFILE: this process lacks descriptors for those that the note carries.
[[nodiscard]] int receive_note(int socket, Note& note, std::vector<Descriptor>& descriptors);

}  // namespace tutti::shm
