#pragma once

#include <cstddef>

#include "transport/meeting/connection.h"
#include "transport/verbs/context.h"
#include "transport/verbs/note.h"

namespace tutti::verbs {

class LinkEvents;

// A `Link` is a TCP connection with one peer, which carries notes. It stays open as long as the pipe does,
// since its end reveals that the peer has died.
class Link final : public DescriptorHandler {
 public:
  // The connection must have passed its guard. The side that connects gives `events`, and the side that
  // accepts sets them later.
  Link(Context& context, meeting::Connection connection, LinkEvents* events);
  ~Link() override;

  Status start();
  void set_events(LinkEvents& events) { events_ = &events; }
  // Sends a note. A link carries only a few notes, so there is always room for them. If a note cannot be
  // sent, the link is broken, and the driver will notice that.
  void send(const Note& note);

  void on_ready(std::uint32_t events) override;

 private:
  void break_off(const Status& why);

  Context& context_;
  meeting::Connection connection_;
  LinkEvents* events_;
  bool watching_ = false;
  // A rank that connects without a token passes no guard. If the peer has a guard, its notice arrives in
  // place of the first note.
  bool may_hear_guard_;
  std::size_t have_ = 0;  // bytes of `note_` that have arrived
  Note note_;
};

// `LinkEvents` is notified about a link on the driving thread. Each of these functions may destroy the link.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void on_note(const Note& note) = 0;
  // The link makes no further calls. The code says why: the other side has closed (`peer_lost`), broke the
  // protocol (`protocol_error`), or asks for a token that this rank does not have (`unauthenticated`).
  virtual void on_broken(const Status& why) = 0;
};

}  // namespace tutti::verbs
