#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/socket.h>

#include <tutti/deadline.h>
#include <tutti/export.h>
#include <tutti/status.h>

namespace tutti {

// A `SocketAddress` is an IPv4 or IPv6 address with a port, in the form that socket calls take.
struct TUTTI_API SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // Returns the address without the port: "10.0.0.1", "fe80::1%eth0".
  std::string host() const;
  // Returns address and port: "10.0.0.1:29500", "[::1]:29500".
  std::string text() const;
  bool is_loopback() const;
};

// Parses a literal address ("10.0.0.1", "::1", "[::1]", "fe80::1%eth0"). Returns nothing for a name.
TUTTI_API std::optional<SocketAddress> parse_address(const std::string& literal, std::uint16_t port);

// A `Resolution` looks up a name on a separate thread, so that no caller has to wait for the answer. The
// answer for a literal address is there at once. The answer lists the addresses in the order of
// getaddrinfo(). An `unreachable` error names the host and says why the name service found no address. Any
// thread may use it.
class TUTTI_API Resolution {
 public:
  using Answer = Result<std::vector<SocketAddress>>;

  Resolution(std::string host, std::uint16_t port);
  // Returns the answer, or nothing if the name service has not answered yet.
  std::optional<Answer> answer() const;
  // Blocks until there is an answer. Returns `unreachable` if there is none by the deadline.
  Answer wait(Deadline deadline) const;

 private:
  struct Lookup;
  Answer judge() const;

  std::string host_;
  std::uint16_t port_;
  std::shared_ptr<Lookup> lookup_;
};

// Returns the addresses of a literal or of a name. It never blocks beyond the deadline, even if the
// name service is slow. Order and errors are as in `Resolution`. Any thread may call it.
TUTTI_API Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port,
                                                     Deadline deadline);

// Returns the local address that the routing table chooses for packets to `target`. It sends no packet.
// Returns nothing if there is no route.
TUTTI_API std::optional<SocketAddress> route_source(const SocketAddress& target);

// Returns whether `host` is a literal loopback address, "localhost", a name that ends in ".localhost", or
// "ip6-localhost".
TUTTI_API bool names_loopback(const std::string& host);

// Returns "host:port", with brackets around an IPv6 address.
TUTTI_API std::string format_endpoint(const std::string& host, std::uint16_t port);

}  // namespace tutti
