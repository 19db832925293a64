#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <asio/ip/tcp.hpp>

#include <tutti/status.h>

#include "core/descriptor.h"

// These functions create and connect sockets, and set their options. They set close-on-exec when they make a
// socket, so that no program that the process starts inherits it. Asio cannot do that, so it only provides
// addresses and error codes. Sockets never block, and the Driver reports when they are ready.
namespace tutti::tcp {

using Endpoint = asio::ip::tcp::endpoint;

// `SocketSetup` is what must be set before a socket connects.
struct SocketSetup {
  int buffer = 0;          // buffer size per direction; zero leaves it to the kernel
  std::string congestion;  // empty leaves it to the kernel
  // This is the preferred address to connect from. If the kernel refuses it, the kernel chooses another.
  asio::ip::address local = {};
};

// Makes a listener on exactly that address, at the first free port of the range, or at any port if
// `first_port` is zero. Connections inherit its options.
Result<Descriptor> listen(const asio::ip::address& address, std::uint16_t first_port, std::uint16_t last_port,
                          const SocketSetup& setup);
// Starts connecting. If the error is in_progress, the attempt ends when the socket becomes writable, and
// `connect_result` then returns the outcome.
Descriptor begin_connect(const Endpoint& endpoint, const SocketSetup& setup, asio::error_code& error);
asio::error_code connect_result(int descriptor);
// These return the address of one end of a socket, or nothing if it has none.
std::optional<Endpoint> local_endpoint(int descriptor);
std::optional<Endpoint> remote_endpoint(int descriptor);
// Sets the options of an established connection: small writes leave at once, and dead hosts are noticed
// eventually.
void tune(int descriptor);
// Chooses whether small writes wait in the kernel until the earlier ones are acknowledged. If `on` is false,
// the kernel also sends the waiting ones at once.
void set_nagle(int descriptor, bool on);
// Makes the kernel acknowledge the bytes that have been read. The acknowledgement leaves at once, and does
// not wait for bytes that this side sends.
void acknowledge(int descriptor);
// Sets the congestion control of a socket, before or after it connects. An empty name changes nothing.
// Returns false, and changes nothing, if the kernel refuses the name; then errno says why.
bool set_congestion(int descriptor, const std::string& name);
// Returns the name of the congestion control, or an empty text if the kernel does not say.
std::string congestion_of(int descriptor);

// Returns the error for an errno value.
asio::error_code system_error(int error);
// Returns the text of an error. System errors get the text that error_text() returns.
std::string text_of(const asio::error_code& error);
// Returns whether the error is a lack of descriptors or memory, so that another attempt a little later may
// succeed.
bool is_scarcity(const asio::error_code& error);

}  // namespace tutti::tcp
