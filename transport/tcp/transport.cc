#include "transport/tcp/transport.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <tutti/log.h>

#include "core/random.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {
namespace {

// After this many polls in a row that found nothing, a channel is no longer busy (`Channels::Busy`). That
// many polls take a few hundred microseconds.
constexpr unsigned misses_until_idle = 1000;

}  // namespace

Transport::~Transport() = default;

Status Transport::listen() {
  const Options& options = context_.options;
  context_.address.nonce = random_number();
  context_.address.limits = options.limits;
  const auto prepare = [this](int descriptor, const SocketAddress& address) {
    set_buffers(descriptor, context_.options.socket_buffer);
    set_congestion(descriptor, context_.congestion.choose(address, false));
  };
  const Status listening = listeners_.open(context_, *this, options,
                                           {.name = "tcp",
                                            .service = context_.service,
                                            .credentials = options.credentials,
                                            .hello_limit = options.handshake_timeout},
                                           prepare);
  context_.address.endpoints = listeners_.endpoints();
  return listening;
}

Status Transport::can_reach(const PeerInfo& peer) const {
  const auto theirs = published_by(peer);
  if (!theirs) return Status(Code::unreachable, peer.describe() + " has no usable tcp address", peer.rank);
  return context_.endpoints_reach(peer, *theirs);
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.start(driver, owner, *this);
  const Status started = listeners_.start(owner.rank());
  return started.ok() ? started : started.with_context("tcp");
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
  listeners_.close();
  context_.stop(*this);
}

Verdict Transport::judge(const Hello& hello) {
  if (hello.version != handshake_version) return Verdict::wrong_version;
  if (!context_.is_for_us(hello)) return Verdict::wrong_rank;
  if (!context_.is_from_peer(hello)) return Verdict::stranger;
  const int from = static_cast<int>(hello.from);
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
