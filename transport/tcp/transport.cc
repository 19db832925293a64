#include "transport/tcp/transport.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <asio/io_context.hpp>
#include <sys/random.h>

#include <tutti/log.h>

#include "transport/tcp/channel.h"

namespace tutti::tcp {
namespace {

// After this many polls in a row that found nothing, a channel is no longer busy (`Channels::Busy`). That
// many polls take a few hundred microseconds.
constexpr unsigned misses_until_idle = 1000;

bool all_loopback(const std::vector<Endpoint>& endpoints) {
  return std::all_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return endpoint.address().is_loopback(); });
}

Result<std::uint64_t> random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) == sizeof number) return number;
  return Status(Code::internal, "tcp: the system has no random numbers");
}

// Returns the address that `host` stands for. Peers use it instead of the address that a listener is bound
// to. This may ask a name server, so it is called only when the transport is made.
Result<asio::ip::address> resolve(const std::string& host) {
  asio::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) return address;
  asio::io_context io;
  const auto results = asio::ip::tcp::resolver(io).resolve(host, "", error);
  if (!error && !results.empty()) return results.begin()->endpoint().address();
  return Status(Code::invalid_argument, "tcp: the advertised address " + host +
                                            " is neither an address nor a name: " + error.message());
}

}  // namespace

Transport::~Transport() = default;

Status Transport::listen() {
  const Options& options = context_.options;
  if (options.last_port != 0 && options.last_port < options.first_port) {
    return Status(Code::invalid_argument, "tcp: the port range " + std::to_string(options.first_port) + "-" +
                                              std::to_string(options.last_port) + " is empty");
  }
  const auto nonce = random_number();
  if (!nonce.ok()) return nonce.status();
  context_.address.nonce = *nonce;
  context_.address.limits = options.limits;
  if (options.bind.empty()) return Status(Code::invalid_argument, "tcp: no address to listen on");
  for (std::size_t i = 0; i < options.bind.size(); ++i) {
    const bool advertised = i < options.advertise.size();
    const Status listening = listen_on(options.bind[i], advertised ? options.advertise[i] : std::string());
    if (!listening.ok()) return listening;
  }
  return Status();
}

Status Transport::listen_on(const std::string& bind_address, const std::string& advertise_address) {
  const Options& options = context_.options;
  asio::error_code error;
  const asio::ip::address address = asio::ip::make_address(bind_address, error);
  if (error) return Status(Code::invalid_argument, "tcp: not an address to listen on: " + bind_address);
  const SocketSetup setup{options.socket_buffer, context_.congestion.choose(address, false)};
  auto socket = tcp::listen(address, options.first_port, options.last_port, setup);
  if (!socket.ok()) return socket.status();
  Endpoint endpoint = local_endpoint(socket->get()).value_or(Endpoint());
  const meeting::ListenerOptions listening{.name = "tcp",
                                           .service = security::Service::data,
                                           .credentials = options.credentials,
                                           .hello_limit = options.handshake_timeout};
  listeners_.push_back(std::make_unique<meeting::Listener>(context_, *std::move(socket), *this, listening));
  if (!advertise_address.empty()) {
    const auto instead = resolve(advertise_address);
    if (!instead.ok()) return instead.status();
    endpoint.address(*instead);
  }
  if (endpoint.address().is_unspecified()) {
    return Status(Code::invalid_argument,
                  "tcp: listening on " + bind_address +
                      " needs an address to advertise, since peers cannot use that one");
  }
  context_.address.endpoints.push_back(endpoint);
  return Status();
}

// Both ranks get the same answer, since the condition covers the addresses of both.
Status Transport::can_reach(const PeerInfo& peer) const {
  const auto address = published_by(peer);
  if (!address) return Status(Code::unreachable, peer.describe() + " has no usable tcp address", peer.rank);
  if (context_.owner == nullptr || peer.shares_network_with(context_.peer(context_.owner->rank())))
    return Status();
  if (!all_loopback(address->endpoints) && !all_loopback(context_.address.endpoints)) return Status();
  return Status(
      Code::unreachable,
      peer.describe() +
          " is on another host or network namespace, and one of the two ranks has loopback addresses only",
      peer.rank);
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.start(driver, owner, *this);
  for (auto& listener : listeners_) {
    const Status started = listener->start(owner.rank());
    if (!started.ok()) return started.with_context("tcp");
  }
  return Status();
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(context_, peer, connect_timeout);
  context_.channels.by_peer.add(peer, *channel);
  return channel;
}

bool Transport::poll() {
  Channels& channels = context_.channels;
  ++channels.polls;
  for (Channel* const channel : channels.coalescing) channel->send_at_once();
  channels.coalescing.clear();
  bool any = context_.timers.run();
  // The loop goes backwards and by index, since the callbacks of a message may remove channels.
  std::vector<Channels::Busy>& busy = channels.busy;
  for (std::size_t i = busy.size(); i-- > 0;) {
    if (i >= busy.size()) continue;
    Channel* const channel = busy[i].channel;
    const bool found = channel->poll();
    any |= found;
    if (i >= busy.size() || busy[i].channel != channel) continue;
    if (found) {
      busy[i].misses = 0;
    } else if (++busy[i].misses >= misses_until_idle) {
      busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return any;
}

void Transport::stop() {
  listeners_.clear();
  context_.stop(*this);
}

Verdict Transport::judge(const Hello& hello) {
  if (hello.version != handshake_version) return Verdict::wrong_version;
  const auto rank = static_cast<std::uint32_t>(context_.owner->rank());
  const auto size = static_cast<std::uint32_t>(context_.owner->size());
  if (hello.to != rank || hello.from >= size || hello.from == rank) return Verdict::wrong_rank;
  const int from = static_cast<int>(hello.from);
  const auto theirs = published_by(context_.peer(from));
  if (hello.to_nonce != context_.address.nonce || !theirs || hello.from_nonce != theirs->nonce)
    return Verdict::stranger;
  if (hello.stripe == 0 && context_.owner->on_incoming(from, *this) == nullptr) return Verdict::gone;
  const Channel* const channel = context_.channels.by_peer.find(from);
  if (channel == nullptr) return Verdict::gone;
  const auto stripe = static_cast<std::uint8_t>(hello.stripe);
  return stripe == 0 ? channel->judge_incoming() : channel->judge_stripe(stripe);
}

bool Transport::begins_like_hello(std::span<const std::byte> bytes) const {
  return tcp::begins_like_hello(bytes);
}

std::optional<std::uint32_t> Transport::claimed_rank(std::span<const std::byte> hello) const {
  const auto decoded = decode_hello(hello.first<tcp::hello_bytes>());
  return decoded ? std::optional(decoded->from) : std::nullopt;
}

void Transport::on_hello(meeting::Guest guest) {
  const Hello hello = *decode_hello(std::span(std::as_const(guest.hello)).first<tcp::hello_bytes>());
  const Verdict verdict = judge(hello);
  if (verdict != Verdict::welcome && verdict != Verdict::wait) {
    log::debug("tcp: refused a connection from a process that claims to be rank ", hello.from, " (verdict ",
               static_cast<int>(verdict), ")");
  }
  Pipe pipe = std::move(guest.connection);
  const auto answer = encode(verdict);
  int error = 0;
  // These are the first bytes on a new connection, so there is always room for them unless the connection has
  // failed.
  const std::size_t sent = pipe.write(std::span<const std::byte>(answer), error);
  if (verdict != Verdict::welcome || error || sent != answer.size()) return;
  tune(pipe.descriptor());
  context_.congestion.settle(pipe.descriptor(), context_.same_host(static_cast<int>(hello.from)));
  Channel& channel = *context_.channels.by_peer.find(static_cast<int>(hello.from));
  if (hello.stripe == 0) {
    channel.attach(std::move(pipe));
  } else {
    channel.attach_stripe(static_cast<std::uint8_t>(hello.stripe), std::move(pipe));
  }
}

}  // namespace tutti::tcp
