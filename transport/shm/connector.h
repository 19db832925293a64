#pragma once

#include <memory>

#include "transport/meeting/connector_events.h"
#include "transport/shm/link.h"
#include "transport/shm/pipe.h"

namespace tutti::shm {

using ConnectorEvents = meeting::ConnectorEvents<Link, Pipe>;

// A `Connector` makes a pipe, and offers it to one peer. The pipe is open once the peer has proved that it
// can see the memory. The destructor ends the attempt.
class Connector final : public LinkEvents, public Timer {
 public:
  Connector(Context& context, int peer, std::chrono::nanoseconds timeout, ConnectorEvents& events);
  ~Connector() override;

  void start() { try_now(); }
  // Returns whether an attempt is under way, so that the peer may still accept the pipe. This is false
  // between two attempts.
  bool in_progress() const { return link_ != nullptr; }

  void on_open(Link& link) override;
  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;
  void on_timer() override;

 private:
  void try_now();
  Status make_pipe();
  // Decides what to do after an attempt that failed with this errno.
  void react(int error);
  void welcomed(std::vector<Descriptor> descriptors);
  void pause(std::chrono::milliseconds delay);
  void refuse(const Status& why);
  void fail(Code code, const std::string& why);

  Context& context_;
  const int peer_;
  const Deadline deadline_;
  ConnectorEvents& events_;
  std::uint64_t proof_ = 0;
  std::unique_ptr<Pipe> pipe_;
  std::unique_ptr<Link> link_;  // while an attempt is under way
};

}  // namespace tutti::shm
