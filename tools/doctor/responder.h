#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tutti/config_values.h>
#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti::tools::doctor {

// A `Responder` answers the probes of other hosts, on threads of its own: one that accepts connections, and
// one for each connection. It closes a connection that does not begin with the pass of the run.
class Responder {
 public:
  // `host` is the number of this host.
  Responder(std::uint32_t host, std::string pass);
  // Closes all connections and joins the threads.
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Listens on a literal address, at any port or, if `ports` is given, at one of these. Returns the port.
  // Must not be called after `start`.
  Result<std::uint16_t> listen(const std::string& address, const std::optional<PortRange>& ports);
  void start();

 private:
  // One connection.
  struct Service {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  void accept_all();
  void accept(const Descriptor& listener);
  void remove_ended();
  void serve(Descriptor socket) const;

  const std::uint32_t host_;
  const std::string pass_;
  std::vector<Descriptor> listeners_;
  Descriptor stop_;  // readable once everything must end
  std::thread acceptor_;
  std::list<Service> services_;  // for the acceptor and, once it has ended, for the destructor
};

}  // namespace tutti::tools::doctor
