#include "rendezvous/store/tcp/store_client.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <rendezvous/store/tcp/store.pb.h>

#include <tutti/log.h>

#include "core/backoff.h"
#include "rendezvous/store/long_wait.h"
#include "rendezvous/store/tcp/look_up.h"
#include "rendezvous/store/tcp/store_link.h"
#include "rendezvous/store/tcp/wire.h"

namespace tutti::tcp {
namespace {

using std::chrono::milliseconds;
using store_wire::Stream;
using wire::StoreRequest;
using wire::StoreResponse;

// An attempt to connect takes at most this long. So an address that does not answer leaves time for the other
// addresses.
constexpr milliseconds attempt_limit{3000};
constexpr milliseconds first_retry{10};
constexpr milliseconds longest_retry{250};
// An earlier job may take a moment to release its port. Until then its store refuses this job's token. After
// this many refusals, the client assumes that the store does not belong to an earlier job, and gives up.
constexpr int most_denials = 3;
constexpr milliseconds pause_when_denied{1000};

StoreRequest request_for(StoreRequest::Operation operation, std::span<const std::string> keys) {
  StoreRequest request;
  request.set_operation(operation);
  for (const std::string& key : keys) request.add_keys(key);
  return request;
}

StoreRequest request_for(StoreRequest::Operation operation, std::string_view key) {
  const std::string name(key);
  return request_for(operation, std::span(&name, 1));
}

void set_wait(StoreRequest& request, Deadline deadline) {
  request.set_wait_milliseconds(
      static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(deadline.remaining()).count()));
}

Status check(const StoreRequest& request) {
  for (const std::string& key : request.keys()) {
    if (Status status = check_store_key(key); !status.ok()) return status;
  }
  for (const std::string* const value : {&request.expected(), &request.value()}) {
    if (Status status = check_store_value(request.keys_size() == 0 ? "" : request.keys(0), *value);
        !status.ok())
      return status;
  }
  return {};
}

class Client final : public StoreClient {
 public:
  explicit Client(std::unique_ptr<StoreLink> link) : link_(std::move(link)) {}

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

  std::string nonce() const override { return link_->nonce(); }
  SocketAddress local_address() const override { return link_->local_address(); }

 private:
  Result<StoreResponse> call(const StoreRequest& request, Deadline deadline) {
    if (Status status = check(request); !status.ok()) return status;
    return link_->call(request, deadline);
  }
  Result<bool> ask(StoreRequest::Operation operation, std::string_view key, Deadline deadline) {
    const Result<StoreResponse> response = call(request_for(operation, key), deadline);
    if (!response.ok()) return response.status();
    return response->number() != 0;
  }

  const std::unique_ptr<StoreLink> link_;
};

Status Client::set(std::string_view key, std::string_view value, Deadline deadline) {
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
  // Keys that do not fit into one request are awaited in several requests. If another client deletes keys
  // meanwhile, the wait can succeed although the keys never all existed at the same time.
  for (std::size_t first = 0; first < keys.size(); first += store_wire::max_keys_per_request) {
    const std::size_t count = std::min(store_wire::max_keys_per_request, keys.size() - first);
    StoreRequest request = request_for(StoreRequest::WAIT, keys.subspan(first, count));
    set_wait(request, deadline);
    if (Status status = call(request, deadline).status(); !status.ok()) return status;
  }
  return {};
}

Result<std::vector<std::string>> Client::get_many(std::span<const std::string> keys, Deadline deadline) {
  std::vector<std::string> values;
  values.reserve(keys.size());
  const Deadline last = answer_limit(deadline);  // one limit for all requests together
  while (values.size() < keys.size()) {
    if (!values.empty() && last.expired())
      return Status(Code::timeout, "the store at " + link_->address().text() + " answers too slowly");
    const auto rest = keys.subspan(values.size());
    StoreRequest request =
        request_for(StoreRequest::GET, rest.first(std::min(store_wire::max_keys_per_request, rest.size())));
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
  StoreRequest request = request_for(StoreRequest::ADD, key);
  request.set_delta(delta);
  Result<StoreResponse> response = call(request, deadline);
  if (!response.ok()) return response.status();
  return response->number();
}

Result<std::string> Client::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired, Deadline deadline) {
  StoreRequest request = request_for(StoreRequest::COMPARE_SET, key);
  request.set_expected(std::string(expected));
  request.set_value(std::string(desired));
  Result<StoreResponse> response = call(request, deadline);
  if (!response.ok()) return response.status();
  if (response->values_size() != 1) return Status(Code::protocol_error, "the store answered without a value");
  return std::move(*response->mutable_values(0));
}

Result<bool> Client::delete_key(std::string_view key, Deadline deadline) {
  return ask(StoreRequest::DELETE_KEY, key, deadline);
}

Result<bool> Client::exists(std::string_view key, Deadline deadline) {
  return ask(StoreRequest::EXISTS, key, deadline);
}

Status Client::hold(std::string_view prefix, Deadline deadline) {
  return call(request_for(StoreRequest::HOLD, prefix), deadline).status();
}

Status Client::release(Deadline deadline) {
  return call(request_for(StoreRequest::HOLD, std::span<const std::string>()), deadline).status();
}

Status Client::set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) {
  StoreRequest request = request_for(StoreRequest::WILL, keys);
  request.set_value(std::string(value));
  return call(request, deadline).status();
}

// Tries each address of the host once. If one of them is a loopback address that this machine lacks, the next
// address may still work. For example, the name service may know ::1 although IPv6 is off.
Result<std::shared_ptr<StoreClient>> try_all(const std::string& host, std::uint16_t port, Deadline deadline,
                                             const StoreClientOptions& options) {
  Result<std::vector<SocketAddress>> addresses = look_up(host, port, deadline, options.interrupted);
  if (!addresses.ok()) return addresses.status();
  Status last;
  for (const SocketAddress& address : *addresses) {
    Result<std::shared_ptr<StoreClient>> client =
        try_connect_store(address, earlier(deadline, Deadline::after(attempt_limit)), options);
    const Code code = client.status().code();
    if (code != Code::unreachable && code != Code::invalid_argument) return client;
    if (last.ok() || code == Code::unreachable) last = client.status();
  }
  return last;
}

}  // namespace

Result<std::shared_ptr<StoreClient>> try_connect_store(const SocketAddress& address, Deadline deadline,
                                                       const StoreClientOptions& options) {
  Result<Stream> stream = Stream::connect(address, deadline, options.interrupted);
  if (!stream.ok()) return stream.status();
  return open_store(*std::move(stream), address, deadline, options);
}

Result<std::shared_ptr<StoreClient>> open_store(Stream stream, const SocketAddress& address,
                                                Deadline deadline, const StoreClientOptions& options) {
  Result<std::unique_ptr<StoreLink>> link = StoreLink::open(std::move(stream), address, deadline, options);
  if (!link.ok()) return link.status();
  auto client = std::make_shared<Client>(*std::move(link));
  // Sends a first request, since a store soon drops a client that has not sent any.
  if (const Status known = client->exists("tutti", deadline).status(); !known.ok())
    return known.code() == Code::aborted ? known : Status(Code::unreachable, known.message());
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
      // If the deadline cut the last attempt short, the failure of the previous attempt says more.
      const Status& why = deadline.expired() && !before.ok() ? before : client.status();
      return why.with_context("no store at " + format_endpoint(host, port) + " within the time given");
    }
    before = client.status();
    std::this_thread::sleep_for(backoff.next());
  }
}

}  // namespace tutti::tcp
