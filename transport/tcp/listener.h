#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>

#include "core/security/guard.h"
#include "core/security/refusals.h"
#include "transport/tcp/context.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/pipe.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {

class HelloHandler;

// A `Listener` accepts connections. Each is a stranger until it has said who it is, and proved it. A stranger
// that sends something else, or nothing for too long, is closed. The number of strangers is limited: when
// there are too many, one of the largest crowd (core/security/crowd.h) is closed. A peer whose connection was
// closed because its hello was late tries again.
class Listener final : public DescriptorHandler, public Timer {
 public:
  static constexpr std::size_t max_strangers = 256;

  Listener(Context& context, Acceptor acceptor, HelloHandler& handler);
  ~Listener() override;

  Endpoint endpoint() const;
  Status start();
  void stop();

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

 private:
  class Stranger;

  void admit(Socket socket);
  // Closes a connection. `why` goes to the log; null means that the log has the reason already.
  void drop(Stranger& stranger, const char* why);
  void finish(Stranger& stranger, const Hello& hello);
  void pause();

  Context& context_;
  Acceptor acceptor_;
  HelloHandler& handler_;
  bool watching_ = false;
  bool scarce_ = false;  // accepting has failed for lack of descriptors or memory; the log says so
  security::Refusals refusals_;
  std::list<std::unique_ptr<Stranger>> strangers_;  // oldest first
};

// A `HelloHandler` takes connections that have passed the guard and sent a valid hello. The rank in the hello
// is the one that the connection has proved to be.
class HelloHandler {
 public:
  virtual ~HelloHandler() = default;
  virtual void on_hello(const Hello& hello, Pipe pipe) = 0;
};

}  // namespace tutti::tcp
