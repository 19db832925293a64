#pragma once

#include <string>

// These functions set options of TCP sockets, in addition to `meeting::tune`. Unless a comment says
// otherwise, a refusal by the kernel is ignored, since none of these options is needed for correctness.
namespace tutti::tcp {

// Sets the options of an established connection, as meeting::tune does. A peer that acknowledges nothing for
// a long time counts as gone.
void tune(int descriptor);
// Sets the size of the kernel's buffer for each direction. Zero leaves it to the kernel.
void set_buffers(int descriptor, int bytes);
// Chooses whether small writes wait in the kernel until earlier writes are acknowledged. If `on` is
// false, the kernel also sends the waiting writes at once.
void set_nagle(int descriptor, bool on);
// Makes the kernel acknowledge the bytes that have been read. The acknowledgement leaves at once, and does
// not wait for bytes that this side sends.
void acknowledge(int descriptor);
// Sets the congestion control of a socket, before or after it connects. An empty name changes nothing.
// Returns false, and changes nothing, if the kernel refuses the name; then errno says why.
bool set_congestion(int descriptor, const std::string& name);
// Returns the name of the congestion control, or an empty text if the kernel does not say.
std::string congestion_of(int descriptor);

}  // namespace tutti::tcp
