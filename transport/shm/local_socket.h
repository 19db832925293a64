#pragma once

#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "core/descriptor.h"
#include "transport/shm/note.h"

// Unix sockets in the abstract namespace carry notes and descriptors between processes of one host. Each
// network namespace has its own abstract namespace. The sockets leave no files behind, move whole packets,
// and never block. Errors are errno values; zero means none.
namespace tutti::shm {

// One packet can carry at most this many descriptors (the kernel's SCM_MAX_FD).
inline constexpr std::size_t max_descriptors = 253;

Result<Descriptor> listen_local(const std::string& name);
// Connects to a listener. EAGAIN means that too many connections wait to be accepted there, and ECONNREFUSED
// that no listener has that name.
Descriptor connect_local(const std::string& name, int& error);
// Accepts the next connection. EAGAIN means that there is none, and EACCES that the connection came from
// another user's process and has been closed.
Descriptor accept_local(int listener, int& error);

// Sends a note. EAGAIN (the queue is full) and ETOOMANYREFS (the user has too many descriptors on their way)
// mean that sending may succeed later.
[[nodiscard]] int send_note(int socket, const Note& note, std::span<const int> descriptors);
// Receives a note. EAGAIN means that there is none, EPIPE that the other side has closed, and
// EBADMSG that the packet is not a note. EMFILE means that this process has no room for the
// descriptors that the note carries.
[[nodiscard]] int receive_note(int socket, Note& note, std::vector<Descriptor>& descriptors);

}  // namespace tutti::shm
