#include "rendezvous/store/tcp/store_connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <rendezvous/store/tcp/store.pb.h>

namespace tutti::store_wire {
namespace {

// Longer waits are cut to this length, so that the clock's arithmetic cannot overflow.
constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(24 * 366);

// A response is written in pieces of this size. Each piece has its own time limit.
constexpr std::size_t write_step = std::size_t{1} << 20;

// Requests up to this size are accepted even if larger requests have used up the memory for requests. So
// ranks can still meet, since a meeting needs no larger requests.
constexpr std::size_t small_request = std::size_t{64} << 10;
// The buffer of a request up to this size is kept for the next request.
constexpr std::size_t kept_buffer = 4096;

}  // namespace

StoreConnection::StoreConnection(asio::ip::tcp::socket socket, ServerState& state, Event changed,
                                 Event closed)
    : wire_(std::move(socket)),
      timer_(wire_.get_executor()),
      state_(state),
      changed_(std::move(changed)),
      closed_(std::move(closed)),
      guard_(security::Guard::accepting(state.options.credentials, security::Service::store, security::nobody,
                                        Deadline::after(state.options.greeting_timeout))) {}

void StoreConnection::start() {
  set_timer(state_.options.greeting_timeout, &StoreConnection::close);
  pass_guard();
}

void StoreConnection::pass_guard() {
  using State = security::Guard::State;
  const State state = guard_.advance(wire_.socket().native_handle());
  if (state == State::done) {
    wire_.encrypt(guard_.take_tls());
    return read_hello();
  }
  if (state == State::failed) {
    state_.refusals.add("the store", guard_);
    return close();
  }
  const auto event =
      state == State::writing ? asio::ip::tcp::socket::wait_write : asio::ip::tcp::socket::wait_read;
  wire_.socket().async_wait(event, [self = shared_from_this()](asio::error_code error) {
    if (self->is_over(error)) return self->close();
    self->pass_guard();
  });
}

// Returns whether the first `count` bytes, which have arrived, match the beginning of a hello.
bool StoreConnection::begins_like_hello(std::size_t count) const {
  return std::memcmp(&client_hello_, magic.data(), std::min(count, magic.size())) == 0;
}

void StoreConnection::read_hello() {
  // Ends the read at the first wrong byte.
  const auto left = [self = shared_from_this()](asio::error_code error, std::size_t got) {
    const bool good = !error && self->begins_like_hello(got);
    return good ? sizeof(client_hello_) - got : std::size_t{0};
  };
  asio::async_read(wire_, asio::buffer(&client_hello_, sizeof(client_hello_)), left,
                   [self = shared_from_this()](asio::error_code error, std::size_t got) {
                     if (self->is_over(error) || got < sizeof(client_hello_) || !self->begins_like_hello(got))
                       return self->close();
                     self->greet();
                   });
}

void StoreConnection::greet() {
  server_hello_.version = little_endian16(version);
  server_hello_.nonce = state_.nonce;
  asio::async_write(wire_, asio::buffer(&server_hello_, sizeof(server_hello_)),
                    [self = shared_from_this()](asio::error_code error, std::size_t) {
                      // If the versions differ, the client knows our version by now and can report it to its
                      // user.
                      if (self->is_over(error) || little_endian16(self->client_hello_.version) != version)
                        return self->close();
                      self->await_request();
                    });
}

void StoreConnection::await_request() {
  if (standing_ != Standing::stranger) {
    stop_timer();
    stand(takes_part() ? Standing::busy : Standing::idle);
  }
  wire_.async_await([self = shared_from_this()](asio::error_code error) {
    if (self->is_over(error)) return self->close();
    self->await_part();
    self->read_length();
  });
}

void StoreConnection::read_length() {
  asio::async_read(wire_, asio::buffer(&length_, sizeof(length_)),
                   [self = shared_from_this()](asio::error_code error, std::size_t) {
                     if (self->is_over(error)) return self->close();
                     self->length_ = little_endian32(self->length_);
                     if (self->length_ == 0 || self->length_ > max_frame_bytes) return self->close();
                     self->body_.clear();
                     self->read_body(self->length_);
                   });
}

void StoreConnection::read_body(std::size_t missing) {
  if (missing == 0) return serve();
  const std::size_t step = std::min(missing, receive_step);
  const std::size_t before = body_.size();
  if (!reserve(step)) return close();
  body_.resize(before + step);
  await_part();
  asio::async_read(wire_, asio::buffer(body_.data() + before, step),
                   [self = shared_from_this(), missing, step](asio::error_code error, std::size_t) {
                     if (self->is_over(error)) return self->close();
                     self->read_body(missing - step);
                   });
}

void StoreConnection::serve() {
  stop_timer();
  const std::unique_ptr<wire::StoreRequest> request = parse_request(body_);
  if (request == nullptr) return close();
  stand(Standing::busy);
  if (body_.size() > kept_buffer) std::string().swap(body_);
  parked_.answer = [this](Frame frame) { reply(std::move(frame)); };
  state_.requests.fetch_add(1, std::memory_order_relaxed);
  Frame response = state_.service.handle(*request, parked_);
  if (response != nullptr) return reply(std::move(response));
  // The memory of a parked request stays reserved, since its keys take as much memory as its text did.
  const auto limit = static_cast<std::uint64_t>(longest_wait.count());
  park(std::chrono::milliseconds(std::min(request->wait_milliseconds(), limit)));
}

void StoreConnection::park(std::chrono::milliseconds wait) {
  if (!takes_part()) stand(Standing::waiting);
  set_timer(wait, &StoreConnection::parked_expired);
  // A client must be silent while it waits for a response. If it sends anything or hangs up, it is dropped.
  wire_.async_await([self = shared_from_this()](asio::error_code) {
    if (self->parked_.is_parked) self->close();
  });
}

void StoreConnection::parked_expired() { reply(state_.service.expire(parked_)); }

void StoreConnection::reply(Frame frame) {
  asio::error_code ignored;
  wire_.socket().cancel(ignored);  // ends the wait that `park` began
  release();
  if (frame->size() > receive_step && is_over_budget()) return close();
  response_ = std::move(frame);
  write(0);
}

void StoreConnection::write(std::size_t first) {
  if (first == response_->size()) {
    response_ = nullptr;
    return await_request();
  }
  const std::size_t step = std::min(response_->size() - first, write_step);
  set_timer(state_.options.frame_timeout, &StoreConnection::close);
  asio::async_write(wire_, asio::buffer(response_->data() + first, step),
                    [self = shared_from_this(), first, step](asio::error_code error, std::size_t) {
                      if (self->is_over(error)) return self->close();
                      self->write(first + step);
                    });
}

void StoreConnection::set_timer(std::chrono::milliseconds limit, void (StoreConnection::*action)()) {
  const std::uint64_t round = ++timer_round_;
  timer_.expires_after(limit);
  // If an expiry was already queued when the timer was set again, it belongs to an earlier round and is
  // ignored.
  timer_.async_wait([self = shared_from_this(), round, action](asio::error_code error) {
    if (!self->is_over(error) && round == self->timer_round_) (self.get()->*action)();
  });
}

void StoreConnection::stop_timer() {
  ++timer_round_;
  timer_.cancel();
}

void StoreConnection::await_part() {
  if (standing_ != Standing::stranger) set_timer(state_.options.frame_timeout, &StoreConnection::close);
}

void StoreConnection::stand(Standing standing) {
  if (std::exchange(standing_, standing) != standing) changed_(*this);
}

bool StoreConnection::is_over_budget() const {
  return state_.buffered_bytes + state_.service.frame_bytes() > state_.options.max_buffered_bytes;
}

bool StoreConnection::reserve(std::size_t bytes) {
  if (length_ > small_request && is_over_budget()) return false;
  state_.buffered_bytes += bytes;
  reserved_ += bytes;
  return true;
}

void StoreConnection::release() { state_.buffered_bytes -= std::exchange(reserved_, 0); }

void StoreConnection::close() {
  if (std::exchange(is_closed_, true)) return;
  stop_timer();
  state_.service.leave(parked_);
  release();
  asio::error_code ignored;
  wire_.socket().close(ignored);
  closed_(*this);
}

}  // namespace tutti::store_wire
