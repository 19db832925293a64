#include "rendezvous/store/tcp/store_link.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

#include "core/random.h"
#include "core/security/guard.h"
#include "rendezvous/store/tcp/wire.h"
#include "rendezvous/store/told_failure.h"

namespace tutti::tcp {
namespace {

using store_wire::Stream;
using wire::StoreRequest;
using wire::StoreResponse;

constexpr std::chrono::milliseconds answer_grace{1000};

// Returns the error of a failed greeting. The code is `unreachable` if a later attempt may succeed.
Status no_store(const SocketAddress& address, const Status& why) {
  if (why.code() == Code::aborted) return why;
  if (why.code() == Code::unauthenticated || why.code() == Code::mismatch)
    return why.with_context("the store at " + address.text());
  return Status(Code::unreachable, "no tutti store answers at " + address.text() + ": " + why.message());
}

Status failure_in(const StoreResponse& response) {
  if (response.code() != static_cast<std::uint32_t>(Code::timeout))
    return told_failure(response.code(), response.message());
  const std::vector<std::string> missing(response.missing().begin(), response.missing().end());
  return missing_keys(missing);
}

}  // namespace

Deadline answer_limit(Deadline deadline) { return Deadline::after(deadline.remaining() + answer_grace); }

Result<StoreLink::Connected> StoreLink::greet(Stream stream, const SocketAddress& address,
                                              const StoreClientOptions& options, Deadline deadline) {
  security::Parties parties{security::Service::store};
  if (options.rank >= 0) parties.from = static_cast<std::uint32_t>(options.rank);
  auto guard = security::Guard::connecting(options.credentials, parties, deadline);
  if (const Status passed = stream.pass(guard, deadline); !passed.ok()) return no_store(address, passed);
  store_wire::ClientHello hello;
  hello.version = store_wire::little_endian16(hello.version);
  store_wire::ServerHello answer;
  Status status = stream.send(&hello, sizeof(hello), deadline);
  if (status.ok()) status = stream.receive(&answer, sizeof(answer), deadline);
  if (!status.ok()) return no_store(address, status);
  if (const auto refusal = security::refusal_by_guard(std::as_bytes(std::span(&answer, 1)),
                                                      "the store at " + address.text())) {
    return *refusal;
  }
  if (answer.magic != store_wire::magic)
    return Status(Code::unreachable, "what answers at " + address.text() + " is not a tutti store");
  const std::uint16_t version = store_wire::little_endian16(answer.version);
  if (version != store_wire::version) {
    return Status(Code::mismatch, "the store at " + address.text() + " speaks version " +
                                      std::to_string(version) + " of the protocol, we speak version " +
                                      std::to_string(store_wire::version));
  }
  return Connected{std::move(stream), to_hex(answer.nonce)};
}

Result<std::unique_ptr<StoreLink>> StoreLink::open(Stream stream, const SocketAddress& address,
                                                   Deadline deadline, const StoreClientOptions& options) {
  stream.ask_when_waiting(options.interrupted);
  Result<Connected> connected = greet(std::move(stream), address, options, deadline);
  if (!connected.ok()) return connected.status();
  if (!options.nonce.empty() && connected->nonce != options.nonce)
    return Status(Code::unreachable, "the store at " + address.text() + " belongs to another session");
  return std::unique_ptr<StoreLink>(new StoreLink(address, options, *std::move(connected)));
}

StoreLink::StoreLink(const SocketAddress& address, const StoreClientOptions& options, Connected connected)
    : address_(address),
      options_(options),
      local_address_(connected.stream.local_address()),
      nonce_(std::move(connected.nonce)),
      owner_(getpid()),
      stream_(std::move(connected.stream)) {}

StoreLink::Turn::Turn(StoreLink& link, Deadline deadline) : link_(link) {
  std::unique_lock lock(link_.mutex_);
  const auto is_free = [&] { return !link_.busy_; };
  if (deadline.is_never()) {
    link_.free_.wait(lock, is_free);
    taken_ = true;
  } else {
    taken_ = link_.free_.wait_until(lock, deadline.when(), is_free);
  }
  if (taken_) link_.busy_ = true;
}

StoreLink::Turn::~Turn() {
  if (!taken_) return;
  const std::lock_guard lock(link_.mutex_);
  link_.busy_ = false;
  link_.free_.notify_one();
}

Status StoreLink::no_answer() const {
  return Status(Code::timeout, "the store at " + address_.text() + " does not answer");
}

Status StoreLink::lost(const Status& cause) const {
  return Status(Code::peer_lost, "the store at " + address_.text() + " is gone: " + cause.message());
}

// Connects to the server again. If the nonce differs, another server has taken over the address, and that
// server never had our keys.
Status StoreLink::reconnect(Deadline limit) {
  Result<Stream> stream = Stream::connect(address_, limit, options_.interrupted);
  if (!stream.ok()) return stream.status();
  Result<Connected> again = greet(*std::move(stream), address_, options_, limit);
  if (!again.ok()) return again.status();
  if (again->nonce != nonce_) return Status(Code::peer_lost, "another store answers at its address");
  stream_ = std::move(again->stream);
  for (const StoreRequest* const promise : {&hold_, &will_}) {
    StoreResponse ignored;
    if (promise->keys_size() == 0) continue;
    if (Status status = exchange(*promise, limit, ignored); !status.ok()) return status;
  }
  abandoned_.close();
  return {};
}

// Makes a new connection by `deadline`. The server gets no extra time after that, since it has already failed
// to answer once.
Status StoreLink::reopen(Deadline deadline) {
  const Status status = reconnect(deadline);
  if (status.ok()) return status;
  stream_.close();
  if (status.code() == Code::aborted) return status;
  if (status.code() == Code::timeout || deadline.expired()) return no_answer();
  lost_ = true;
  return lost(status);
}

Status StoreLink::exchange(const StoreRequest& request, Deadline limit, StoreResponse& response) {
  std::string frame(store_wire::length_bytes, '\0');
  request.AppendToString(&frame);
  std::uint32_t length =
      store_wire::little_endian32(static_cast<std::uint32_t>(frame.size() - store_wire::length_bytes));
  std::memcpy(frame.data(), &length, sizeof(length));
  if (Status status = stream_.send(frame.data(), frame.size(), limit); !status.ok()) return status;
  if (Status status = stream_.receive(&length, sizeof(length), limit); !status.ok()) return status;
  length = store_wire::little_endian32(length);
  if (length > store_wire::max_frame_bytes)
    return Status(Code::protocol_error, "a response of " + std::to_string(length) + " bytes was announced");
  std::string body;
  if (Status status = stream_.receive(body, length, limit); !status.ok()) return status;
  if (!response.ParseFromString(body)) return Status(Code::protocol_error, "a response cannot be parsed");
  return {};
}

// Gives up the connection on which a request has failed, and normally closes it. But if the server may only
// be slow, or this process was interrupted, a connection with promises stays open until a new connection has
// the same promises.
Status StoreLink::give_up(const Status& why, bool promised) {
  abandoned_.close();
  const bool may_answer = why.code() == Code::timeout || why.code() == Code::aborted;
  if (may_answer && (promised || promises())) abandoned_ = std::move(stream_);
  stream_.close();
  if (why.code() == Code::aborted) return why;
  if (may_answer) return no_answer();
  lost_ = true;
  return lost(why);
}

Result<StoreResponse> StoreLink::call(const StoreRequest& request, Deadline deadline) {
  if (getpid() != owner_) {
    return Status(Code::unsupported, "the store connection belongs to process " + std::to_string(owner_) +
                                         ", a forked child must connect by itself");
  }
  const Deadline limit = answer_limit(deadline);
  const Turn turn(*this, limit);
  if (!turn.taken()) return Status(Code::timeout, "another thread's request holds the store connection");
  if (lost_) return lost(Status(Code::peer_lost, "an earlier request found it closed"));
  if (!stream_.is_open()) {
    if (Status status = reopen(deadline); !status.ok()) return status;
  }
  // A promise counts as soon as its request is sent, since the server may have received it even if no answer
  // arrives.
  const bool promised = promises();
  if (request.operation() == StoreRequest::HOLD) hold_ = request;
  if (request.operation() == StoreRequest::WILL) will_ = request;
  StoreResponse response;
  const Status status = exchange(request, limit, response);
  if (!status.ok()) return give_up(status, promised);
  if (response.code() != 0) return failure_in(response);
  return response;
}

}  // namespace tutti::tcp
