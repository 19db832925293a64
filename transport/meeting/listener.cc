#include "transport/meeting/listener.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/error_text.h"
#include "core/security/crowd.h"
#include "transport/meeting/socket.h"

namespace tutti::meeting {
namespace {

constexpr std::chrono::milliseconds pause_when_scarce{100};
// One call of `on_ready` accepts at most `most_strangers / strangers_per_accept` connections. So each
// stranger has some turns to prove itself before others can displace it, and the work of one call is bounded.
constexpr std::size_t strangers_per_accept = 8;

}  // namespace

// A `Stranger` is a connection before its hello is complete.
class Listener::Stranger final : public DescriptorHandler, public Timer {
 public:
  Stranger(Listener& listener, Descriptor socket)
      : listener_(listener),
        origin_(security::origin_of(socket.get())),
        guest_{{std::move(socket), guard()}, std::vector<std::byte>(listener.port_.hello_bytes()), {}} {}
  ~Stranger() override {
    listener_.loop_.timers.cancel(*this);
    if (watching_) listener_.loop_.unwatch(guest_.connection.descriptor());
  }

  // Reads first and then watches, since the hello usually arrives with the connection. The stranger may be
  // destroyed when this returns.
  void listen_to() {
    if (!advance()) return;
    const Status watched = listener_.loop_.watch(guest_.connection.descriptor(), events_, *this);
    if (!watched.ok()) {
      listener_.drop(*this, watched.message().c_str());
      return;
    }
    watching_ = true;
    listener_.loop_.timers.set(*this, Deadline::after(listener_.options_.hello_limit));
  }

  void on_ready(std::uint32_t) override {
    const std::uint32_t before = events_;
    if (advance() && events_ != before)
      listener_.loop_.rewatch(guest_.connection.descriptor(), events_, *this);
  }
  void on_timer() override { listener_.drop(*this, "it did not say who it is in time"); }

  Guest take_guest() {
    if (watching_) listener_.loop_.unwatch(guest_.connection.descriptor());
    watching_ = false;
    return std::move(guest_);
  }

  security::Crowd crowd() const {
    const security::Guard* const guard = guest_.connection.guard();
    return {origin_, guard == nullptr || guard->has_begun()};
  }

  std::list<std::unique_ptr<Stranger>>::iterator place;

 private:
  security::Guard guard() {
    const ListenerOptions& options = listener_.options_;
    const Deadline limit = Deadline::after(options.hello_limit);
    if (options.credentials_of == nullptr)
      return security::Guard::accepting(options.credentials, options.service, listener_.self_, limit);
    const auto find = [this](std::uint32_t from) { return found_ = listener_.options_.credentials_of(from); };
    return security::Guard::accepting(find, options.service, listener_.self_, limit);
  }

  // Returns false if this stranger was destroyed, because its hello is complete or it was dropped. Otherwise
  // `events_` are the events to wait for.
  bool advance() {
    using State = security::Guard::State;
    const State state = guest_.connection.pass();
    if (state == State::done) return read();
    if (state == State::failed) {
      listener_.refusals_.add(listener_.options_.name, *guest_.connection.guard());
      return dropped(nullptr);
    }
    events_ = state == State::writing ? EPOLLOUT : EPOLLIN;
    return true;
  }

  bool read() {
    events_ = EPOLLIN;
    const Port& port = listener_.port_;
    // The loop reads only the hello, since any bytes after it belong to the port.
    while (have_ < guest_.hello.size()) {
      int error = 0;
      have_ += port.read(guest_, std::span(guest_.hello).subspan(have_), error);
      if (error == EAGAIN) return true;
      if (error == EPIPE || error == ECONNRESET) return dropped("it closed the connection");
      if (error != 0 && error != EBADMSG) return dropped(error_text(error).c_str());
      if (error == EBADMSG || !port.begins_like_hello(std::span(guest_.hello).first(have_)))
        return dropped("it does not speak our protocol");
    }
    const auto from = port.claimed_rank(guest_.hello);
    if (!from) return dropped("its hello makes no sense");
    if (guest_.connection.proved().value_or(*from) != *from)
      return dropped("it claims another rank than the one that it has proved to be");
    if (found_ != nullptr && listener_.options_.credentials_of(*from) != found_)
      return dropped("its credentials were withdrawn meanwhile");
    listener_.finish(*this);
    return false;
  }

  bool dropped(const char* why) {
    listener_.drop(*this, why);
    return false;
  }

  Listener& listener_;
  const std::uint64_t origin_;
  security::SharedCredentials found_;  // the credentials that `credentials_of` has found for this stranger
  Guest guest_;
  std::uint32_t events_ = EPOLLIN;
  bool watching_ = false;
  std::size_t have_ = 0;
};

Listener::Listener(EventLoop& loop, Descriptor socket, Port& port, const ListenerOptions& options)
    : loop_(loop), socket_(std::move(socket)), port_(port), options_(options) {}

Listener::~Listener() { stop(); }

Status Listener::start(int self) {
  self_ = static_cast<std::uint32_t>(self);
  const Status watched = loop_.watch(socket_.get(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

void Listener::stop() {
  strangers_.clear();
  loop_.timers.cancel(*this);
  if (watching_) loop_.unwatch(socket_.get());
  watching_ = false;
}

void Listener::on_ready(std::uint32_t) {
  const std::size_t most = std::max<std::size_t>(1, options_.most_strangers / strangers_per_accept);
  for (std::size_t i = 0; i < most; ++i) {
    int error = 0;
    Descriptor accepted = port_.accept(socket_.get(), error);
    if (accepted) {
      scarce_ = false;
      admit(std::move(accepted));
    } else if (error == EAGAIN) {
      return;
    } else if (is_scarcity(error)) {
      if (!std::exchange(scarce_, true))
        log::warn(options_.name, ": cannot accept a connection now: ", error_text(error));
      return pause();
    }
    // Any other error concerns a connection that has ended already, so the loop goes on with the next one.
  }
}

// Stops watching for a while. The socket stays readable while its connections cannot be accepted, and would
// keep the event loop busy.
void Listener::pause() {
  loop_.rewatch(socket_.get(), 0, *this);
  loop_.timers.set(*this, Deadline::after(pause_when_scarce));
}

void Listener::on_timer() { loop_.rewatch(socket_.get(), EPOLLIN, *this); }

void Listener::admit(Descriptor socket) {
  if (strangers_.size() >= options_.most_strangers) {
    const auto crowd_of = [](const auto& stranger) { return stranger->crowd(); };
    drop(**security::first_to_go(strangers_, crowd_of), "too many others came after it");
  }
  strangers_.push_back(std::make_unique<Stranger>(*this, std::move(socket)));
  Stranger& stranger = *strangers_.back();
  stranger.place = std::prev(strangers_.end());
  stranger.listen_to();
}

void Listener::drop(Stranger& stranger, const char* why) {
  if (why != nullptr) log::debug(options_.name, ": dropped an unidentified connection: ", why);
  strangers_.erase(stranger.place);
}

void Listener::finish(Stranger& stranger) {
  Guest guest = stranger.take_guest();
  strangers_.erase(stranger.place);
  port_.on_hello(std::move(guest));
}

Descriptor Port::accept(int listener, int& error) const { return accept_next(listener, error); }

std::size_t Port::read(Guest& guest, std::span<std::byte> place, int& error) const {
  return guest.connection.read(place, error);
}

}  // namespace tutti::meeting
