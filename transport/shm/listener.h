#pragma once

#include <list>
#include <memory>
#include <vector>

#include "core/security/refusals.h"
#include "transport/shm/link.h"

namespace tutti::shm {

class HelloHandler;

// A `Listener` accepts connections. Each is a stranger until its first note has said who it is. A stranger
// that sends nothing for too long is closed. The number of strangers is limited: when there are too many, the
// oldest is closed.
class Listener final : public DescriptorHandler, public Timer {
 public:
  static constexpr std::size_t max_strangers = 256;

  Listener(Context& context, Descriptor socket, HelloHandler& handler);
  ~Listener() override;

  Status start();
  void stop();

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

 private:
  class Stranger;

  void admit(Descriptor socket);
  void drop(Stranger& stranger, const std::string& why);
  void finish(Stranger& stranger, const Note& hello, std::vector<Descriptor> descriptors);
  void pause();

  Context& context_;
  Descriptor socket_;
  HelloHandler& handler_;
  bool watching_ = false;
  bool scarce_ = false;  // accepting has failed for lack of descriptors or memory; the log says so
  security::Refusals refusals_;
  std::list<std::unique_ptr<Stranger>> strangers_;  // oldest first
};

// A `HelloHandler` takes connections that have passed the guard and sent their first note. They come from
// processes of the same user.
class HelloHandler {
 public:
  virtual ~HelloHandler() = default;
  virtual void on_hello(const Note& hello, std::vector<Descriptor> descriptors,
                        std::unique_ptr<Link> link) = 0;
};

}  // namespace tutti::shm
