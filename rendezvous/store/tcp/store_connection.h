#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <tutti/store_server.h>

#include "core/security/guard.h"
#include "core/security/refusals.h"
#include "rendezvous/store/tcp/store_service.h"
#include "rendezvous/store/tcp/store_wire.h"
#include "rendezvous/store/tcp/wire.h"

namespace tutti::store_wire {

// `ServerState` is what all connections of a server share. Only the server's thread uses it.
struct ServerState {
  tcp::StoreServerOptions options;
  Nonce nonce = {};
  StoreService service;
  security::Refusals refusals;
  std::size_t buffered_bytes = 0;           // the bytes of requests; `service` counts those of responses
  std::atomic<std::uint64_t> requests = 0;  // the number of requests read so far; any thread may ask

  ServerState(const tcp::StoreServerOptions& server_options, const Nonce& server_nonce)
      : options(server_options), nonce(server_nonce), service(server_options.max_bytes) {}
};

// `StoreConnection` serves one client. After the proof (guard.h) and the greeting, it repeatedly waits for a
// request, reads it, parks it if it must wait for keys, and writes the response. A timer limits the duration
// of each step, except the wait between two requests. All steps up to the first request share one time
// limit. The object lives as long as the server knows it or a handler is pending.
class StoreConnection : public std::enable_shared_from_this<StoreConnection> {
 public:
  // `Standing` says whether the server may drop the client when room is scarce. Strangers have not made a
  // valid request yet. Idle clients have no request in progress, and waiting clients have a parked request.
  // Idle and waiting clients hold no keys and have no will. All other clients are busy, and are never dropped
  // for lack of room.
  enum class Standing { stranger, idle, waiting, busy };
  using Event = std::function<void(StoreConnection&)>;

  // `changed` is called when the standing has changed, `closed` when the connection has ended.
  StoreConnection(asio::ip::tcp::socket socket, ServerState& state, Event changed, Event closed);

  Standing standing() const { return standing_; }
  // Returns whether the client's first bytes are those of a tutti client.
  bool has_begun() const { return guard_.has_begun(); }

  void start();
  // Drops the client; calls `closed` once.
  void close();

 private:
  // Handlers ask this first: a handler that was already queued when the connection was closed is called
  // without an error.
  bool is_over(asio::error_code error) const { return error || is_closed_; }
  void pass_guard();
  void read_hello();
  bool begins_like_hello(std::size_t count) const;
  void greet();
  void await_request();
  void read_length();
  void read_body(std::size_t missing);
  void serve();
  void park(std::chrono::milliseconds wait);
  void reply(Frame frame);
  void write(std::size_t first);
  // Calls `action` after `limit`, unless the timer is set again or stopped before then.
  void set_timer(std::chrono::milliseconds limit, void (StoreConnection::*action)());
  void stop_timer();
  // Sets the timer between the parts of a request. A stranger has one limit for everything that it sends.
  void await_part();
  void stand(Standing standing);
  // Returns true if the client holds keys or has a will, as ranks do.
  bool takes_part() const { return !parked_.held.empty() || !parked_.will.keys.empty(); }
  void parked_expired();
  bool is_over_budget() const;
  bool reserve(std::size_t bytes);
  void release();

  StoreWire wire_;
  asio::steady_timer timer_;
  std::uint64_t timer_round_ = 0;
  ServerState& state_;
  Event changed_;
  Event closed_;
  Standing standing_ = Standing::stranger;
  bool is_closed_ = false;
  security::Guard guard_;
  std::size_t reserved_ = 0;

  ClientHello client_hello_;
  ServerHello server_hello_;
  std::uint32_t length_ = 0;
  std::string body_;
  StoreService::Parked parked_;
  Frame response_;
};

}  // namespace tutti::store_wire
