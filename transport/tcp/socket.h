#pragma once

#include <cstdint>
#include <string>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <tutti/status.h>

// These functions replace those of Asio that need its reactor, or that leave a moment in which a forked child
// inherits the socket (close-on-exec). Asio gives us addresses, options, buffers and error codes; sockets
// stay in non-blocking mode, and its reactor is never run: readiness comes from the Driver.
namespace tutti::tcp {

using Socket = asio::ip::tcp::socket;
using Acceptor = asio::ip::tcp::acceptor;
using Endpoint = asio::ip::tcp::endpoint;

// `SocketSetup` is what must be known before a connection is made.
struct SocketSetup {
  int buffer = 0;          // per direction; zero leaves it to the kernel
  std::string congestion;  // empty leaves it to the kernel
  // The address to connect from. Only a wish: if the kernel refuses it, it chooses one itself.
  asio::ip::address local = {};
};

// A listener on exactly that address; the first free port of the range, or any if `first_port` is zero.
// Connections inherit its options.
Result<Acceptor> listen(asio::io_context& io, const asio::ip::address& address, std::uint16_t first_port,
                        std::uint16_t last_port, const SocketSetup& setup);
// Accepts the next connection; would_block if there is none.
Socket accept(asio::io_context& io, Acceptor& acceptor, asio::error_code& error);
// Begins to connect. The error is in_progress until the socket is writable; then `connect_result` says how it
// ended.
Socket begin_connect(asio::io_context& io, const Endpoint& endpoint, const SocketSetup& setup,
                     asio::error_code& error);
asio::error_code connect_result(Socket& socket);
// Sets the options of every connection, once it exists: small writes leave at once, and dead hosts are
// noticed eventually.
void tune(Socket& socket);
// Says whether small writes wait in the kernel while an earlier one is not acknowledged. `false` also sends
// those that wait.
void set_nagle(int descriptor, bool on);
// Acknowledges the bytes that have been read at once, instead of together with the next bytes that are sent.
void acknowledge(int descriptor);
// The congestion control of a connection, or of a socket that is about to become one. Has no effect if the
// name is empty or the kernel refuses it.
void set_congestion(int descriptor, const std::string& name);
// Empty if the kernel does not say.
std::string congestion_of(int descriptor);

// The text of an error; for an error of the system, that of error_text().
std::string text_of(const asio::error_code& error);
// Returns whether the error is a lack of descriptors or memory, so that another attempt a little later may
// succeed.
bool is_scarcity(const asio::error_code& error);

}  // namespace tutti::tcp
