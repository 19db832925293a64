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

// A `Responder` answers the probes of other hosts. One of its threads accepts connections, and each
// connection has its own thread. The responder closes a connection that does not begin with the
// secret of the run.
class Responder {
 public:
  // `host` is the number of this host.
  Responder(std::uint32_t host, std::string pass);
  // Closes all connections and joins the threads.
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Listens on a literal address. The port is one of `ports` if they are given, and otherwise any
  // free port. Returns the port. Must not be called after `start`.
  Result<std::uint16_t> listen(const std::string& address, const std::optional<PortRange>& ports);
  void start();

 private:
  // A `Service` answers one connection.
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
  // The acceptor thread uses this list. The destructor uses it after that thread has ended.
  std::list<Service> services_;
};

}  // namespace tutti::tools::doctor
