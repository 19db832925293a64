#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tutti/credentials.h>

#include "core/descriptor.h"
#include "core/security/guard.h"

// This file provides every kind of port at which a rank, a store or a launcher listens. So the same
// tests of strangers run against all of them.
namespace tutti::test {

struct OpenPortOptions {
  std::string token = {};  // empty if there is no token
  std::chrono::milliseconds hello_limit = std::chrono::hours(1);
};

// An `OpenPort` is a listening port and the processes behind it. If the port is for hosts, not for
// ranks, the tests use the numbers of hosts as ranks.
class OpenPort {
 public:
  virtual ~OpenPort() = default;

  // Makes a socket that can connect to the port.
  virtual Descriptor socket() const = 0;
  // Connects the socket, from the address `from` if the port has addresses. Returns whether the
  // socket is connected.
  virtual bool connect(int socket, const std::string& from) const = 0;
  // Returns the service, the connecting rank and the accepting rank for the guard of the connecting
  // side.
  virtual security::Parties parties() const = 0;
  // Returns the credentials of a process that has this token.
  virtual security::SharedCredentials credentials(const std::string& token) const;
  // Returns a complete hello. It is from the rank `from`, if hellos contain ranks.
  virtual std::string hello(int from) const = 0;
  // Returns how many strangers the port keeps at the same time.
  virtual std::size_t most_strangers() const = 0;
  // Checks that the port still serves the job. Call this before the ranks behind the port have met.
  virtual void expect_service() = 0;
};

// A `KindOfPort` is the parameter of the tests.
struct KindOfPort {
  const char* name;
  std::unique_ptr<OpenPort> (*open)(const OpenPortOptions& options);
  bool has_addresses = true;  // whether connecting sockets have addresses
  bool hellos_have_ranks = true;
  bool hellos_have_parts = true;  // a hello can arrive in pieces
  bool needs_token = false;       // the port serves no one without a token
};

std::unique_ptr<OpenPort> open_tcp(const OpenPortOptions& options);
std::unique_ptr<OpenPort> open_shm(const OpenPortOptions& options);
std::unique_ptr<OpenPort> open_control(const OpenPortOptions& options);
std::unique_ptr<OpenPort> open_store(const OpenPortOptions& options);
std::unique_ptr<OpenPort> open_launcher(const OpenPortOptions& options);
std::unique_ptr<OpenPort> open_verbs(const OpenPortOptions& options);

inline constexpr KindOfPort all_kinds_of_port[] = {
    {.name = "tcp", .open = open_tcp},
    {.name = "shm", .open = open_shm, .has_addresses = false, .hellos_have_parts = false},
    {.name = "control", .open = open_control},
    {.name = "store", .open = open_store, .hellos_have_ranks = false},
    {.name = "launcher", .open = open_launcher, .needs_token = true},
#ifdef TUTTI_TEST_VERBS
    {.name = "verbs", .open = open_verbs},
#endif
};

}  // namespace tutti::test
