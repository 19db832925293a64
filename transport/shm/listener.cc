#include "transport/shm/listener.h"

#include <cerrno>

#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/error_text.h"

namespace tutti::shm {
namespace {

constexpr int accepts_per_call = 32;  // bounds the work of one call
constexpr std::chrono::milliseconds pause_when_scarce{100};

}  // namespace

// A `Stranger` is a connection that has not yet sent its first note.
class Listener::Stranger final : public LinkEvents, public Timer {
 public:
  Stranger(Listener& listener, Descriptor socket)
      : listener_(listener),
        link_(std::make_unique<Link>(listener.context_, std::move(socket),
                                     listener.context_.guard_for_stranger(), *this)) {}
  ~Stranger() override { listener_.context_.timers.cancel(*this); }

  // Starts the link. The stranger may be destroyed when this returns.
  void listen_to() {
    listener_.context_.timers.set(*this, Deadline::after(listener_.context_.options.handshake_timeout));
    const Status watched = link_->start();
    if (!watched.ok()) listener_.drop(*this, watched.message());
  }
  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override {
    if (!link.guard().is_open() && link.guard().from() != note.from) {
      return listener_.drop(*this, "it claims another rank than the one that it has proved to be");
    }
    listener_.finish(*this, note, std::move(descriptors));
  }
  void on_broken(Link& link, const std::string& why) override {
    if (!link.guard().status().ok()) listener_.refusals_.add("shm", link.guard());
    listener_.drop(*this, why);
  }
  void on_timer() override { listener_.drop(*this, "it sent nothing in time"); }

  std::unique_ptr<Link> take_link() { return std::move(link_); }

  std::list<std::unique_ptr<Stranger>>::iterator place;

 private:
  Listener& listener_;
  std::unique_ptr<Link> link_;
};

Listener::Listener(Context& context, Descriptor socket, HelloHandler& handler)
    : context_(context), socket_(std::move(socket)), handler_(handler) {}

Listener::~Listener() { stop(); }

Status Listener::start() {
  const Status watched = context_.watch(socket_.get(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

void Listener::stop() {
  strangers_.clear();
  context_.timers.cancel(*this);
  if (watching_) context_.unwatch(socket_.get());
  watching_ = false;
  socket_.reset();
}

void Listener::on_ready(std::uint32_t) {
  for (int i = 0; i < accepts_per_call; ++i) {
    int error = 0;
    Descriptor accepted = accept_local(socket_.get(), error);
    if (accepted) {
      scarce_ = false;
      admit(std::move(accepted));
    } else if (error == EAGAIN) {
      return;
    } else if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
      if (!std::exchange(scarce_, true)) {
        log::warn("shm: cannot accept a connection now: ", error_text(error));
      }
      pause();
      return;
    }
    // Any other error concerns a connection that has ended already.
  }
}

// Stops watching for a while, since a listener that cannot accept would keep the driver busy.
void Listener::pause() {
  context_.rewatch(socket_.get(), 0, *this);
  context_.timers.set(*this, Deadline::after(pause_when_scarce));
}

void Listener::on_timer() { context_.rewatch(socket_.get(), EPOLLIN, *this); }

void Listener::admit(Descriptor socket) {
  if (strangers_.size() >= max_strangers) drop(*strangers_.front(), "too many others came after it");
  strangers_.push_back(std::make_unique<Stranger>(*this, std::move(socket)));
  Stranger& stranger = *strangers_.back();
  stranger.place = std::prev(strangers_.end());
  stranger.listen_to();
}

void Listener::drop(Stranger& stranger, const std::string& why) {
  log::debug("shm: dropped an unidentified connection: ", why);
  strangers_.erase(stranger.place);
}

void Listener::finish(Stranger& stranger, const Note& hello, std::vector<Descriptor> descriptors) {
  std::unique_ptr<Link> link = stranger.take_link();
  strangers_.erase(stranger.place);
  handler_.on_hello(hello, std::move(descriptors), std::move(link));
}

}  // namespace tutti::shm
