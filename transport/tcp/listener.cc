#include "transport/tcp/listener.h"

#include <cerrno>
#include <utility>

#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/security/crowd.h"

namespace tutti::tcp {
namespace {

constexpr int accepts_per_call = 32;  // bounds the work of one call
constexpr std::chrono::milliseconds pause_when_scarce{100};

}  // namespace

// A `Stranger` is a connection before its hello is complete.
class Listener::Stranger final : public DescriptorHandler, public Timer {
 public:
  Stranger(Listener& listener, Socket socket)
      : listener_(listener),
        pipe_(std::move(socket)),
        origin_(security::origin_of(pipe_.native_handle())),
        guard_(security::Guard::accepting(listener.context_.options.credentials, security::Service::data,
                                          static_cast<std::uint32_t>(listener.context_.owner->rank()),
                                          Deadline::after(listener.context_.options.handshake_timeout))) {}
  ~Stranger() override {
    listener_.context_.timers.cancel(*this);
    if (watching_) listener_.context_.unwatch(pipe_.native_handle());
  }

  // Reads first and then watches, since the hello usually arrives with the connection. The stranger may be
  // destroyed when this returns.
  void listen_to() {
    if (!advance()) return;
    const Status watched = listener_.context_.watch(pipe_.native_handle(), events_, *this);
    if (!watched.ok()) {
      listener_.drop(*this, watched.message().c_str());
      return;
    }
    watching_ = true;
    listener_.context_.timers.set(*this, Deadline::after(listener_.context_.options.handshake_timeout));
  }

  void on_ready(std::uint32_t) override {
    const std::uint32_t before = events_;
    if (advance() && events_ != before) listener_.context_.rewatch(pipe_.native_handle(), events_, *this);
  }
  void on_timer() override { listener_.drop(*this, "it sent nothing in time"); }

  Pipe take_pipe() {
    if (watching_) listener_.context_.unwatch(pipe_.native_handle());
    watching_ = false;
    return std::move(pipe_);
  }

  security::Crowd crowd() const { return {origin_, guard_.has_begun()}; }

  std::list<std::unique_ptr<Stranger>>::iterator place;

 private:
  // Returns false if this stranger was destroyed, because its hello is complete or it was dropped. Otherwise
  // `events_` are the events to wait for.
  bool advance() {
    using State = security::Guard::State;
    if (passed_) return read();
    const State state = guard_.advance(pipe_.native_handle());
    if (state == State::done) {
      pipe_.encrypt(guard_.take_tls());
      passed_ = true;
      return read();
    }
    if (state != State::failed) {
      events_ = state == State::writing ? EPOLLOUT : EPOLLIN;
      return true;
    }
    listener_.refusals_.add("tcp", guard_);
    listener_.drop(*this, nullptr);
    return false;
  }

  bool read() {
    events_ = EPOLLIN;
    int error = 0;
    // The read stops at the end of the hello, since the bytes after it belong to the channel.
    have_ += pipe_.read(std::span(bytes_).subspan(have_), error);
    if (error == EAGAIN) return true;
    if (error != 0) {
      listener_.drop(*this, "it closed the connection");
      return false;
    }
    if (!begins_like_hello(std::span(bytes_).first(have_))) {
      listener_.drop(*this, "it does not speak our protocol");
      return false;
    }
    if (have_ < bytes_.size()) return true;
    const auto hello = decode_hello(bytes_);
    if (hello && (guard_.is_open() || guard_.from() == hello->from)) {
      listener_.finish(*this, *hello);
    } else {
      listener_.drop(*this, "its hello makes no sense");
    }
    return false;
  }

  Listener& listener_;
  Pipe pipe_;
  const std::uint64_t origin_;
  security::Guard guard_;
  std::uint32_t events_ = EPOLLIN;
  bool passed_ = false;
  bool watching_ = false;
  std::size_t have_ = 0;
  std::array<std::byte, hello_bytes> bytes_{};
};

Listener::Listener(Context& context, Acceptor acceptor, HelloHandler& handler)
    : context_(context), acceptor_(std::move(acceptor)), handler_(handler) {}

Listener::~Listener() { stop(); }

Endpoint Listener::endpoint() const {
  asio::error_code error;
  return acceptor_.local_endpoint(error);
}

Status Listener::start() {
  const Status watched = context_.watch(acceptor_.native_handle(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

void Listener::stop() {
  strangers_.clear();
  context_.timers.cancel(*this);
  if (watching_) context_.unwatch(acceptor_.native_handle());
  watching_ = false;
  asio::error_code error;
  acceptor_.close(error);
}

void Listener::on_ready(std::uint32_t) {
  for (int i = 0; i < accepts_per_call; ++i) {
    asio::error_code error;
    Socket socket = accept(context_.io, acceptor_, error);
    if (!error) {
      scarce_ = false;
      admit(std::move(socket));
    } else if (error == asio::error::would_block) {
      return;
    } else if (is_scarcity(error)) {
      if (!std::exchange(scarce_, true)) {
        log::warn("tcp: cannot accept a connection now: ", text_of(error));
      }
      pause();
      return;
    }
    // Any other error concerns a connection that has ended already.
  }
}

// Stops watching for a while, since a listener that cannot accept would keep the driver busy.
void Listener::pause() {
  context_.rewatch(acceptor_.native_handle(), 0, *this);
  context_.timers.set(*this, Deadline::after(pause_when_scarce));
}

void Listener::on_timer() { context_.rewatch(acceptor_.native_handle(), EPOLLIN, *this); }

void Listener::admit(Socket socket) {
  if (strangers_.size() >= max_strangers) {
    const auto crowd_of = [](const auto& stranger) { return stranger->crowd(); };
    drop(**security::first_to_go(strangers_, crowd_of), "too many others came after it");
  }
  strangers_.push_back(std::make_unique<Stranger>(*this, std::move(socket)));
  Stranger& stranger = *strangers_.back();
  stranger.place = std::prev(strangers_.end());
  stranger.listen_to();
}

void Listener::drop(Stranger& stranger, const char* why) {
  if (why != nullptr) log::debug("tcp: dropped an unidentified connection: ", why);
  strangers_.erase(stranger.place);
}

void Listener::finish(Stranger& stranger, const Hello& hello) {
  Pipe pipe = stranger.take_pipe();
  strangers_.erase(stranger.place);
  handler_.on_hello(hello, std::move(pipe));
}

}  // namespace tutti::tcp
