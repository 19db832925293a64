#include "bench/endpoint.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tutti::perf {
namespace {

constexpr std::uint32_t context = 1;
constexpr std::chrono::seconds patience{5};

DriverOptions driver_options(std::chrono::microseconds spin) {
  DriverOptions options;
  options.spin = spin;
  return options;
}

MeshOptions mesh_options(EndpointOptions& from) {
  MeshOptions options;
  options.rank = from.rank;
  options.peers = std::move(from.peers);
  options.transports.push_back(std::move(from.transport));
  return options;
}

}  // namespace

template <class Op>
void Endpoint::Waited<Op>::arm(Driver& by) {
  driver = &by;
  over.store(0, std::memory_order_relaxed);
  this->done = [](Op& op, const Status& status) {
    if (!status.ok()) report(status);
    auto& self = static_cast<Waited&>(op);
    self.over.store(1, std::memory_order_release);
    self.driver->notify(self.over);
  };
}

Endpoint::Endpoint(EndpointOptions options)
    : driver_(driver_options(options.spin)),
      mesh_(driver_, mesh_options(options)),
      peer_(1 - options.rank),
      memory_(options.bytes) {
  const DriverGuard guard(driver_);
  const Status started = mesh_.start();
  if (!started.ok()) report(started);
  mesh_.attach(context, *this);
}

Endpoint::~Endpoint() { mesh_.shutdown(Deadline::after(patience)); }

void Endpoint::trip() {
  if (peer_ == 1) send();
  recv();
  if (peer_ == 0) send();
  ++sequence_;
}

void Endpoint::send() {
  sending_.arm(driver_);
  sending_.data = memory_.data();
  sending_.header.tag = {context, 0, sequence_};
  sending_.header.bytes = memory_.size();
  {
    const DriverGuard guard(driver_);
    mesh_.send(peer_, sending_);
  }
  driver_.wait(sending_.over, Deadline::never());
}

void Endpoint::recv() {
  receiving_.arm(driver_);
  receiving_.tag = {context, 0, sequence_};
  receiving_.peer = peer_;
  receiving_.bytes = memory_.size();
  receiving_.sink.out = memory_.data();
  {
    const DriverGuard guard(driver_);
    mesh_.recv(receiving_);
  }
  driver_.wait(receiving_.over, Deadline::never());
}

// Ends the program after a failure. The code `aborted` is no failure: it means that the peer has
// ended cleanly.
void Endpoint::report(const Status& why) {
  if (why.code() == Code::aborted) return;
  std::fprintf(stderr, "%s\n", why.to_string().c_str());
  std::exit(1);
}

}  // namespace tutti::perf
