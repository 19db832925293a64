#pragma once

#include <cstdint>
#include <string>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <tutti/status.h>

// What our TCP sockets need that Asio does not do without running its reactor, or not without a moment in
// which a forked child inherits the socket (close-on-exec). Asio gives us addresses, options, buffers and
// error codes; sockets stay in non-blocking mode, and its reactor is never run: readiness comes from the
// Driver.
namespace tutti::tcp {

using Socket = asio::ip::tcp::socket;
using Acceptor = asio::ip::tcp::acceptor;
using Endpoint = asio::ip::tcp::endpoint;

// `SocketSetup` is what must be known before there is a connection.
struct SocketSetup {
  int buffer = 0;          // per direction; zero leaves it to the kernel
  std::string congestion;  // empty leaves it to the kernel
  // Where to connect from; not at all important: what the kernel refuses, it chooses itself.
  asio::ip::address local = {};
};

// A listener on exactly that address; the first free port of the range, or any if `first_port` is zero. What
// it is set to, connections inherit.
Result<Acceptor> listen(asio::io_context& io, const asio::ip::address& address, std::uint16_t first_port,
                        std::uint16_t last_port, const SocketSetup& setup);
// The next connection; would_block if there is none.
Socket accept(asio::io_context& io, Acceptor& acceptor, asio::error_code& error);
// Begins to connect; in_progress until it is writable, then `connect_result` tells.
Socket begin_connect(asio::io_context& io, const Endpoint& endpoint, const SocketSetup& setup,
                     asio::error_code& error);
asio::error_code connect_result(Socket& socket);
// Options of every connection, once it exists: no delay, and dead hosts are noticed in the end.
void tune(Socket& socket);
// Whether small writes wait in the kernel, gathering, while an earlier one is not acknowledged; false: what
// waits is sent.
void set_nagle(int descriptor, bool on);
// Acknowledges what has been read, rather than wait for something to send along with that.
void acknowledge(int descriptor);
// The congestion control of a connection, or of a socket that is about to become one. Without effect if the
// name is empty or the kernel refuses it.
void set_congestion(int descriptor, const std::string& name);
// Empty if the kernel does not say.
std::string congestion_of(int descriptor);

// In the words of error_text(), where it is an error of the system.
std::string text_of(const asio::error_code& error);
// Whether we lack descriptors or memory: worth another try a little later.
bool is_scarcity(const asio::error_code& error);

}  // namespace tutti::tcp
