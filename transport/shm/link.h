#pragma once

#include <string>
#include <vector>

#include "transport/meeting/connection.h"
#include "transport/shm/context.h"
#include "transport/shm/local_socket.h"

namespace tutti::shm {

class LinkEvents;

// A `Link` is a connection with one peer that carries notes over a local socket. The driver watches it. Notes
// may be sent once both sides have passed the `security::Guard`.
class Link final : public DescriptorHandler {
 public:
  Link(Context& context, Descriptor socket, security::Guard guard, LinkEvents& events);
  // Makes a link from a connection that has passed its guard. `set_events` must be called before the driver
  // polls again.
  Link(Context& context, meeting::Connection connection);
  ~Link() override;

  // Starts to watch the connection. If there is a guard to pass, also starts the guard's exchange. The link
  // may have been destroyed when this returns.
  Status start();
  void set_events(LinkEvents& events) { events_ = &events; }
  // Sends a note, and returns zero or an errno, as send_note does. It succeeds even if the other side has
  // closed; `on_broken` is then called after everything that the other side sent has been read.
  [[nodiscard]] int send(const Note& note, std::span<const int> descriptors = {}) const;
  // Sends the last note on a connection. If the note cannot be sent, the end of the connection tells the peer
  // enough.
  void send_last(const Note& note) const { static_cast<void>(send(note)); }
  void close();
  bool is_open() const { return static_cast<bool>(connection_); }
  // Returns the code of the failure that `on_broken` reports: `peer_lost`, unless the guard has failed with
  // another code.
  Code failure() const;

  void on_ready(std::uint32_t events) override;

 private:
  void pass_guard();
  void read_note();
  void break_off(const std::string& why);

  Context& context_;
  meeting::Connection connection_;
  LinkEvents* events_ = nullptr;
  bool waits_writable_ = false;
  bool watching_ = false;
};

// `LinkEvents` is notified about a link on the driving thread. It may destroy the link during any of these
// calls.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Called when both sides have passed the guard. Notes may be sent from now on. `start` itself calls this if
  // the job has no token. A link made from a connection that has already passed a guard never calls this.
  virtual void on_open(Link&) {}
  virtual void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) = 0;
  // The other side has closed, could not prove who it is, or broke the protocol. The link makes no further
  // calls.
  virtual void on_broken(Link& link, const std::string& why) = 0;
};

}  // namespace tutti::shm
