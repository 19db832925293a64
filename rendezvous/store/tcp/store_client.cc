#include "rendezvous/store/tcp/store_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include <rendezvous/store/tcp/store.pb.h>
#include <unistd.h>

#include <tutti/log.h>

#include "core/backoff.h"
#include "core/random.h"
#include "rendezvous/store/long_wait.h"
#include "rendezvous/store/tcp/stream.h"
#include "rendezvous/store/tcp/wire.h"

namespace tutti::tcp {
namespace {

using std::chrono::milliseconds;
using store_wire::Stream;
using wire::StoreRequest;
using wire::StoreResponse;

// The server ends waits on time and then says which keys are missing; only a server that does not answer at
// all is given up after this much more.
constexpr milliseconds answer_grace{1000};
// One unresponsive address must not use up the time for the others.
constexpr milliseconds attempt_limit{3000};
constexpr milliseconds first_retry{10};
constexpr milliseconds longest_retry{250};
// An earlier job may take a moment to let go of its port; after this, who asks for another token is not it.
constexpr int most_denials = 3;
constexpr milliseconds pause_when_denied{1000};

struct Connected {
  Stream stream;
  std::string nonce;
};

StoreRequest request_for(StoreRequest::Operation operation, std::string_view key) {
  StoreRequest request;
  request.set_operation(operation);
  request.add_keys(std::string(key));
  return request;
}

// A store that will never let us in is told apart from one that may.
Status guard_failure(const SocketAddress& address, const Status& why) {
  if (why.code() == Code::unauthenticated || why.code() == Code::mismatch) {
    return why.with_context("the store at " + address.text());
  }
  return Status(Code::unreachable, "no tutti store answers at " + address.text() + ": " + why.message());
}

Result<Connected> greet(Stream stream, const SocketAddress& address, const StoreClientOptions& options,
                        Deadline deadline) {
  security::Parties parties{security::Service::store};
  if (options.rank >= 0) parties.from = static_cast<std::uint32_t>(options.rank);
  auto guard = security::Guard::connecting(options.credentials, parties, deadline);
  if (const Status passed = stream.pass(guard, deadline); !passed.ok()) return guard_failure(address, passed);
  store_wire::ClientHello hello;
  hello.version = store_wire::little_endian16(hello.version);
  store_wire::ServerHello answer;
  Status status = stream.send(&hello, sizeof(hello), deadline);
  if (status.ok()) status = stream.receive(&answer, sizeof(answer), deadline);
  if (!status.ok()) {
    return Status(Code::unreachable, "no tutti store answers at " + address.text() + ": " + status.message());
  }
  if (const auto refusal = security::refusal_by_guard(std::as_bytes(std::span(&answer, 1)),
                                                      "the store at " + address.text())) {
    return *refusal;
  }
  if (answer.magic != store_wire::magic) {
    return Status(Code::unreachable, "what answers at " + address.text() + " is not a tutti store");
  }
  const std::uint16_t version = store_wire::little_endian16(answer.version);
  if (version != store_wire::version) {
    return Status(Code::mismatch, "the store at " + address.text() + " speaks version " +
                                      std::to_string(version) + " of the protocol, we speak version " +
                                      std::to_string(store_wire::version));
  }
  return Connected{std::move(stream), to_hex(answer.nonce)};
}

Result<Connected> open_connection(const SocketAddress& address, const StoreClientOptions& options,
                                  Deadline deadline) {
  Result<Stream> stream = Stream::connect(address, deadline);
  if (!stream.ok()) return stream.status();
  return greet(*std::move(stream), address, options, deadline);
}

Deadline answer_limit(Deadline deadline) { return Deadline::after(deadline.remaining() + answer_grace); }

class Client final : public StoreClient {
 public:
  Client(const SocketAddress& address, const StoreClientOptions& options, Connected connected)
      : address_(address),
        options_(options),
        local_address_(connected.stream.local_address()),
        nonce_(std::move(connected.nonce)),
        stream_(std::move(connected.stream)) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status wait(std::span<const std::string> keys, Deadline deadline) override;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override;
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override;
  Result<bool> delete_key(std::string_view key, Deadline deadline) override;
  Result<bool> exists(std::string_view key, Deadline deadline) override;
  Status hold(std::string_view prefix, Deadline deadline) override;
  Status release(Deadline deadline) override;
  Status set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) override;
  Result<std::vector<std::string>> get_many(std::span<const std::string> keys, Deadline deadline) override;

  std::string nonce() const override { return nonce_; }
  SocketAddress local_address() const override { return local_address_; }

 private:
  // The turn to use the connection.
  class Turn {
   public:
    Turn(Client& client, Deadline deadline);
    ~Turn();
    bool taken() const { return taken_; }

   private:
    Client& client_;
    bool taken_;
  };

  Result<StoreResponse> call(const StoreRequest& request, Deadline deadline);
  Status exchange(const StoreRequest& request, Deadline limit, StoreResponse& response);
  Status reconnect(Deadline limit);
  Status lost(const Status& cause) const;
  Status no_answer() const;
  bool promises() const { return hold_.keys_size() + will_.keys_size() > 0; }

  const SocketAddress address_;
  const StoreClientOptions options_;
  const SocketAddress local_address_;
  const std::string nonce_;
  const pid_t owner_ = getpid();

  mutable std::mutex mutex_;  // of busy_; what follows that belongs to whoever has the turn
  std::condition_variable free_;
  bool busy_ = false;
  Stream stream_;
  Stream abandoned_;   // what it held must not go, nor its will be done, before another connection has both
  StoreRequest hold_;  // without keys: holds nothing
  StoreRequest will_;  // without keys: there is none
  bool lost_ = false;
};

Client::Turn::Turn(Client& client, Deadline deadline) : client_(client) {
  std::unique_lock lock(client_.mutex_);
  const auto is_free = [&] { return !client_.busy_; };
  if (deadline.is_never()) {
    client_.free_.wait(lock, is_free);
    taken_ = true;
  } else {
    taken_ = client_.free_.wait_until(lock, deadline.when(), is_free);
  }
  if (taken_) client_.busy_ = true;
}

Client::Turn::~Turn() {
  if (!taken_) return;
  const std::lock_guard lock(client_.mutex_);
  client_.busy_ = false;
  client_.free_.notify_one();
}

Status Client::no_answer() const {
  return Status(Code::timeout, "the store at " + address_.text() + " does not answer");
}

Status Client::lost(const Status& cause) const {
  return Status(Code::peer_lost, "the store at " + address_.text() + " is gone: " + cause.message());
}

// After a request that was given up half-way. The same server has the same nonce; what answers at its address
// with another one never knew our keys.
Status Client::reconnect(Deadline limit) {
  Result<Connected> again = open_connection(address_, options_, limit);
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

Status Client::exchange(const StoreRequest& request, Deadline limit, StoreResponse& response) {
  std::string frame(store_wire::length_bytes, '\0');
  request.AppendToString(&frame);
  std::uint32_t length =
      store_wire::little_endian32(static_cast<std::uint32_t>(frame.size() - store_wire::length_bytes));
  std::memcpy(frame.data(), &length, sizeof(length));
  if (Status status = stream_.send(frame.data(), frame.size(), limit); !status.ok()) return status;
  if (Status status = stream_.receive(&length, sizeof(length), limit); !status.ok()) return status;
  length = store_wire::little_endian32(length);
  if (length > store_wire::max_frame_bytes) {
    return Status(Code::protocol_error, "a response of " + std::to_string(length) + " bytes was announced");
  }
  std::string body;
  if (Status status = stream_.receive(body, length, limit); !status.ok()) return status;
  if (!response.ParseFromString(body)) return Status(Code::protocol_error, "a response cannot be parsed");
  return {};
}

Result<StoreResponse> Client::call(const StoreRequest& request, Deadline deadline) {
  if (getpid() != owner_) {
    return Status(Code::unsupported, "the store connection belongs to process " + std::to_string(owner_) +
                                         ", a forked child must connect by itself");
  }
  const Deadline limit = answer_limit(deadline);
  const Turn turn(*this, limit);
  if (!turn.taken()) return Status(Code::timeout, "another thread's request holds the store connection");
  if (lost_) return lost(Status(Code::peer_lost, "an earlier request found it closed"));
  if (!stream_.is_open()) {
    // It has not answered once already: no grace for that.
    if (Status status = reconnect(deadline); !status.ok()) {
      stream_.close();
      if (status.code() == Code::timeout || deadline.expired()) return no_answer();
      lost_ = true;
      return lost(status);
    }
  }
  // A promise counts from when it is sent: the store may know it although its answer has not come.
  const bool promised = promises();
  if (request.operation() == StoreRequest::HOLD) hold_ = request;
  if (request.operation() == StoreRequest::WILL) will_ = request;
  StoreResponse response;
  const Status status = exchange(request, limit, response);
  if (status.ok()) {
    if (response.code() == 0) return response;
    const auto code =
        static_cast<Code>(std::min(response.code(), static_cast<std::uint32_t>(Code::internal)));
    if (code != Code::timeout) return Status(code, response.message());
    const std::vector<std::string> missing(response.missing().begin(), response.missing().end());
    return missing_keys(missing);
  }
  abandoned_.close();
  if (status.code() == Code::timeout && (promised || promises())) abandoned_ = std::move(stream_);
  stream_.close();
  if (status.code() == Code::timeout) return no_answer();
  lost_ = true;
  return lost(status);
}

void set_wait(StoreRequest& request, Deadline deadline) {
  request.set_wait_milliseconds(
      static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(deadline.remaining()).count()));
}

Status check_keys(std::span<const std::string> keys) {
  for (const std::string& key : keys) {
    if (Status status = check_store_key(key); !status.ok()) return status;
  }
  return {};
}

Status Client::set(std::string_view key, std::string_view value, Deadline deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  if (Status status = check_store_value(key, value); !status.ok()) return status;
  StoreRequest request = request_for(StoreRequest::SET, key);
  request.set_value(std::string(value));
  return call(request, deadline).status();
}

Result<std::string> Client::get(std::string_view key, Deadline deadline) {
  const std::string name(key);
  Result<std::vector<std::string>> values = get_many(std::span(&name, 1), deadline);
  if (!values.ok()) return values.status();
  return std::move(values->front());
}

Status Client::wait(std::span<const std::string> keys, Deadline deadline) {
  if (Status status = check_keys(keys); !status.ok()) return status;
  // More keys than fit one request are awaited in turns; whoever deletes keys meanwhile gets what that is
  // worth.
  for (std::size_t first = 0; first < keys.size(); first += store_wire::max_keys_per_request) {
    const auto part = keys.subspan(first, std::min(store_wire::max_keys_per_request, keys.size() - first));
    StoreRequest request;
    request.set_operation(StoreRequest::WAIT);
    for (const std::string& key : part) request.add_keys(key);
    set_wait(request, deadline);
    if (Status status = call(request, deadline).status(); !status.ok()) return status;
  }
  return {};
}

Result<std::vector<std::string>> Client::get_many(std::span<const std::string> keys, Deadline deadline) {
  if (Status status = check_keys(keys); !status.ok()) return status;
  std::vector<std::string> values;
  values.reserve(keys.size());
  const Deadline last = answer_limit(deadline);  // also for a store that answers key by key
  while (values.size() < keys.size()) {
    if (!values.empty() && last.expired())
      return Status(Code::timeout, "the store at " + address_.text() + " answers too slowly");
    const auto rest = keys.subspan(values.size());
    StoreRequest request;
    request.set_operation(StoreRequest::GET);
    for (const std::string& key : rest.first(std::min(store_wire::max_keys_per_request, rest.size()))) {
      request.add_keys(key);
    }
    set_wait(request, deadline);
    Result<StoreResponse> response = call(request, deadline);
    if (!response.ok()) return response.status();
    if (response->values_size() == 0 || response->values_size() > request.keys_size()) {
      return Status(Code::protocol_error, "the store answered with " +
                                              std::to_string(response->values_size()) + " values for " +
                                              std::to_string(request.keys_size()) + " keys");
    }
    for (std::string& value : *response->mutable_values()) values.push_back(std::move(value));
  }
  return values;
}

Result<std::int64_t> Client::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  StoreRequest request = request_for(StoreRequest::ADD, key);
  request.set_delta(delta);
  Result<StoreResponse> response = call(request, deadline);
  if (!response.ok()) return response.status();
  return response->number();
}

Result<std::string> Client::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired, Deadline deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  for (const std::string_view value : {expected, desired}) {
    if (Status status = check_store_value(key, value); !status.ok()) return status;
  }
  StoreRequest request = request_for(StoreRequest::COMPARE_SET, key);
  request.set_expected(std::string(expected));
  request.set_value(std::string(desired));
  Result<StoreResponse> response = call(request, deadline);
  if (!response.ok()) return response.status();
  if (response->values_size() != 1) return Status(Code::protocol_error, "the store answered without a value");
  return std::move(*response->mutable_values(0));
}

Result<bool> Client::delete_key(std::string_view key, Deadline deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  Result<StoreResponse> response = call(request_for(StoreRequest::DELETE_KEY, key), deadline);
  if (!response.ok()) return response.status();
  return response->number() != 0;
}

Result<bool> Client::exists(std::string_view key, Deadline deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  Result<StoreResponse> response = call(request_for(StoreRequest::EXISTS, key), deadline);
  if (!response.ok()) return response.status();
  return response->number() != 0;
}

Status Client::hold(std::string_view prefix, Deadline deadline) {
  if (Status status = check_store_key(prefix); !status.ok()) return status;
  return call(request_for(StoreRequest::HOLD, prefix), deadline).status();
}

Status Client::release(Deadline deadline) {
  StoreRequest request;
  request.set_operation(StoreRequest::HOLD);
  return call(request, deadline).status();
}

Status Client::set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) {
  if (Status status = check_keys(keys); !status.ok()) return status;
  StoreRequest request;
  request.set_operation(StoreRequest::WILL);
  for (const std::string& key : keys) request.add_keys(key);
  request.set_value(std::string(value));
  return call(request, deadline).status();
}

// One round over all addresses of the host.
Result<std::shared_ptr<StoreClient>> try_all(const std::string& host, std::uint16_t port, Deadline deadline,
                                             const StoreClientOptions& options) {
  Result<std::vector<SocketAddress>> addresses = resolve(host, port, deadline);
  if (!addresses.ok()) return addresses.status();
  Status last;
  for (const SocketAddress& address : *addresses) {
    Result<std::shared_ptr<StoreClient>> client =
        try_connect_store(address, earlier(deadline, Deadline::after(attempt_limit)), options);
    if (client.ok() || client.status().code() != Code::unreachable) return client;
    last = client.status();
  }
  return last;
}

}  // namespace

Result<std::shared_ptr<StoreClient>> try_connect_store(const SocketAddress& address, Deadline deadline,
                                                       const StoreClientOptions& options) {
  Result<Stream> stream = Stream::connect(address, deadline);
  if (!stream.ok()) return stream.status();
  return open_store(*std::move(stream), address, deadline, options);
}

Result<std::shared_ptr<StoreClient>> open_store(Stream stream, const SocketAddress& address,
                                                Deadline deadline, const StoreClientOptions& options) {
  Result<Connected> connected = greet(std::move(stream), address, options, deadline);
  if (!connected.ok()) return connected.status();
  if (!options.nonce.empty() && connected->nonce != options.nonce) {
    return Status(Code::unreachable, "the store at " + address.text() + " belongs to another session");
  }
  auto client = std::make_shared<Client>(address, options, *std::move(connected));
  // A store lets nobody stay for long that has not asked for anything.
  if (const Status known = client->exists("tutti", deadline).status(); !known.ok()) {
    return Status(Code::unreachable, known.message());
  }
  return std::shared_ptr<StoreClient>(std::move(client));
}

Result<std::shared_ptr<StoreClient>> connect_store(const std::string& host, std::uint16_t port,
                                                   Deadline deadline, const StoreClientOptions& options) {
  Backoff backoff(first_retry, longest_retry);
  LongWait wait;
  Status before;
  for (int denials = 0;;) {
    Result<std::shared_ptr<StoreClient>> client = try_all(host, port, deadline, options);
    const Code code = client.status().code();
    if (code == Code::unauthenticated && ++denials < most_denials &&
        deadline.remaining() > pause_when_denied) {
      std::this_thread::sleep_for(pause_when_denied);
      continue;
    }
    if (code != Code::unreachable) return client;
    if (options.interrupted && options.interrupted()) {
      return Status(Code::aborted,
                    "interrupted while it looked for the store at " + format_endpoint(host, port));
    }
    if (wait.is_due()) {
      log::warn(options.rank < 0 ? "this process" : "rank " + std::to_string(options.rank),
                " has waited for ", wait.waited(), " for a store at ", format_endpoint(host, port),
                ": does rank 0 run, or the process that serves it, and is this an address of its host? ",
                client.status().message());
    }
    if (deadline.remaining() <= backoff.pause()) {
      // An attempt in which the time was over says less than the one before.
      const Status& why = deadline.expired() && !before.ok() ? before : client.status();
      return why.with_context("no store at " + format_endpoint(host, port) + " within the time given");
    }
    before = client.status();
    std::this_thread::sleep_for(backoff.next());
  }
}

}  // namespace tutti::tcp
