#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/security/refusals.h"
#include "transport/driver/event_loop.h"
#include "transport/meeting/connection.h"

namespace tutti::meeting {

class Port;

struct ListenerOptions {
  const char* name = "";  // of the protocol, for the log: "tcp"
  security::Service service = security::Service::data;
  security::SharedCredentials credentials = {};  // null if connections have no guard
  // Finds the credentials of the rank that connects, if each rank has its own. If this function is set,
  // `credentials` is not used. The listener calls this function again when that rank's hello is complete, and
  // closes the connection if the result has changed. So credentials can be withdrawn at any time.
  security::CredentialsOf credentials_of = {};
  // A connection must pass the guard and send its hello within this time.
  std::chrono::nanoseconds hello_limit = std::chrono::seconds(5);
  // A stranger is a connection without a complete hello. When there are more strangers than this, a stranger
  // of the largest crowd (core/security/crowd.h) is closed.
  std::size_t most_strangers = 256;
};

// A `Guest` is a connection that has passed the guard and sent its hello. If the connecting rank had to prove
// who it is, the hello names the rank that it proved to be.
struct Guest {
  Connection connection;
  std::vector<std::byte> hello;
  std::vector<Descriptor> descriptors;  // arrived with the hello; only packet sockets can carry any
};

// A `Listener` accepts connections. Each connection is a stranger until it has proved who it is and said
// hello. A stranger that sends something else, or nothing for too long, is closed without an answer. A peer
// whose connection was closed because its hello was late tries again.
class Listener final : public DescriptorHandler, public Timer {
 public:
  // `socket` must already listen, and be non-blocking.
  Listener(EventLoop& loop, Descriptor socket, Port& port, const ListenerOptions& options);
  ~Listener() override;

  int descriptor() const { return socket_.get(); }
  // Starts accepting connections, as rank `self`.
  Status start(int self);
  // Closes all strangers, and accepts no more connections. The destructor does the same, and also closes the
  // socket. So peers whose connections still wait in the socket's queue learn that nobody will accept them.
  void stop();

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

 private:
  class Stranger;

  void admit(Descriptor socket);
  // Closes a connection. `why` goes to the log; null means that the log has the reason already.
  void drop(Stranger& stranger, const char* why);
  void finish(Stranger& stranger);
  void pause();

  EventLoop& loop_;
  Descriptor socket_;
  Port& port_;
  const ListenerOptions options_;
  std::uint32_t self_ = security::nobody;
  bool watching_ = false;
  bool scarce_ = false;  // accepting has failed for lack of descriptors or memory; the log says so
  security::Refusals refusals_;
  std::list<std::unique_ptr<Stranger>> strangers_;  // oldest first
};

// A `Port` is the part of a listener that depends on the protocol.
class Port {
 public:
  virtual ~Port() = default;

  // Every hello has this many bytes.
  virtual std::size_t hello_bytes() const = 0;
  // Returns whether a hello can begin with these bytes. If not, some other program has connected.
  virtual bool begins_like_hello(std::span<const std::byte> bytes) const = 0;
  // Returns the rank that this complete hello claims to come from, or nothing if the hello makes no sense.
  virtual std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const = 0;
  // Takes a guest, and answers it. The port must not destroy the listener in this call.
  virtual void on_hello(Guest guest) = 0;

  // Accepts a connection as `accept_next` does. A port may refuse the connection. It then closes
  // the connection at once, and sets `error`. The value must be neither EAGAIN nor an error of
  // scarcity (`is_scarcity`).
  virtual Descriptor accept(int listener, int& error) const;
  // Reads the bytes of the hello that have arrived into `place`, and no byte after the hello. Returns how
  // many bytes it read, or zero with an error, as ByteStream does. EBADMSG means that this cannot be a hello.
  virtual std::size_t read(Guest& guest, std::span<std::byte> place, int& error) const;
};

}  // namespace tutti::meeting
