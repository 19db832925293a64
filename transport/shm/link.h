#pragma once

#include <string>
#include <vector>

#include <tutti/transport/shm/hub.h>
#include <tutti/transport/shm/local_socket.h>

namespace tutti::shm {

class Link;

// Called by whoever drives; the link may be destroyed from within.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) = 0;
  // The other side has closed, or broke the protocol: the link says nothing more.
  virtual void on_broken(Link& link, const std::string& why) = 0;
};

// A connection to one peer, watched by the driver.
class Link final : public DescriptorHandler {
 public:
  Link(Hub& hub, Descriptor socket, LinkEvents& events);
  ~Link() override;

  Status start();
  void set_events(LinkEvents& events) { events_ = &events; }
  // Zero or an errno, as send_note; but that the other side has closed is told when all that it said before
  // has been read.
  [[nodiscard]] int send(const Note& note, std::span<const int> descriptors = {}) const;
  // For a note that is the last of its kind: if it does not leave, the end of the connection says the same.
  void send_last(const Note& note) const { static_cast<void>(send(note)); }
  void close();
  bool is_open() const { return static_cast<bool>(socket_); }

  void on_ready(std::uint32_t events) override;

 private:
  Hub& hub_;
  Descriptor socket_;
  LinkEvents* events_;
  bool watching_ = false;
};

}  // namespace tutti::shm
