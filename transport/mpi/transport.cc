#include "transport/mpi/transport.h"

#include <algorithm>

#include <tutti/log.h>

#include "core/random.h"
#include "transport/mpi/channel.h"

namespace tutti::mpi {
namespace {

// After this many packets, other transports have their turn.
constexpr int packets_per_poll = 32;
// There is no descriptor to sleep on. So the driver sleeps for a part of the time that has passed since the
// last packet, within these limits.
constexpr std::chrono::microseconds shortest_sleep{20};
constexpr std::chrono::microseconds longest_sleep{1000};
constexpr int part_of_quiet_time = 8;

}  // namespace

Status Transport::prepare() {
  if (Status usable = context_.messenger.usable(); !usable.ok()) return usable;
  const Result<int> tag = context_.messenger.take_tag();
  if (!tag.ok()) return tag.status();
  context_.address = {context_.messenger.world(), context_.messenger.rank(), *tag, random_number(),
                      context_.options.limits};
  return {};
}

// Both ranks get the same answer, since the two numbers are equal or not for both.
Status Transport::can_reach(const PeerInfo& peer) const {
  const auto theirs = published_by(peer);
  if (!theirs) return Status(Code::unreachable, peer.describe() + " has no usable mpi address", peer.rank);
  if (theirs->world == context_.address.world) return {};
  return Status(Code::unreachable, peer.describe() + " is in another MPI world", peer.rank);
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.start(driver, owner, *this);
  context_.read_addresses();
  context_.touch();
  return context_.inbox.open(context_.address.tag);
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(context_, peer, connect_timeout);
  context_.channels.add(peer, *channel);
  return channel;
}

void Transport::stop() {
  if (context_.driver == nullptr) return;
  // Peers that have said hello in the meantime learn that nobody answers them.
  stopping_ = true;
  if (!failed_) static_cast<void>(progress().ok());
  context_.stop(*this);
  context_.outbox.close();
  context_.inbox.close();
}

bool Transport::poll() {
  if (failed_) return context_.timers.run();
  const bool due = context_.timers.run();
  const Result<bool> any = progress();
  if (!any.ok()) fail(any.status());
  return due || !any.ok() || *any;
}

// Lets MPI progress, and takes the packets that have arrived.
Result<bool> Transport::progress() {
  const Result<bool> sent = context_.outbox.collect();
  if (!sent.ok()) return sent.status();
  int packets = 0;
  for (; packets < packets_per_poll; ++packets) {
    const Result<std::optional<std::span<const std::byte>>> packet = context_.inbox.next();
    if (!packet.ok()) return packet.status();
    if (!*packet) break;
    take(**packet);
    if (Status posted = context_.inbox.repost(); !posted.ok()) return posted;
  }
  if (packets > 0) context_.touch();
  return *sent || packets > 0;
}

void Transport::take(std::span<const std::byte> packet) {
  const std::optional<PacketHead> head = head_of(packet);
  if (!head || !context_.is_from_peer(*head)) {
    log::debug("mpi: dropped a message that is not a packet of a peer");
    return;
  }
  const int from = static_cast<int>(head->from);
  if (head->kind == PacketKind::hello) {
    if (stopping_) return refuse(from);
    const tutti::Channel* const wanted = context_.owner->on_incoming(from, *this);
    Channel* const channel = context_.channels.find(from);
    if (channel == nullptr || channel != wanted) return refuse(from);
  }
  if (Channel* const channel = context_.channels.find(from))
    channel->on_packet(*head, packet.subspan(sizeof *head));
}

void Transport::refuse(int peer) {
  const auto& theirs = context_.address_of(peer);
  if (!theirs) return;
  Pipe pipe(context_.outbox, context_.own_head(), *theirs);
  constexpr std::string_view why = "it does not use MPI for this rank";
  pipe.tell(PacketKind::refusal, std::as_bytes(std::span(why)));
}

// MPI cannot be used any more, so all channels fail.
void Transport::fail(const Status& why) {
  failed_ = true;
  log::warn("mpi: ", why.message());
  // A callback may open channels, but never destroys one. So the iterator stays valid.
  for (const auto& [peer, channel] : context_.channels.all()) channel->on_broken(why);
}

Deadline Transport::next_deadline() const {
  if (failed_ || context_.owner->size() == 1) return context_.timers.next();
  const auto quiet = Deadline::Clock::now() - context_.last_packet;
  const auto sleep =
      std::clamp<Deadline::Clock::duration>(quiet / part_of_quiet_time, shortest_sleep, longest_sleep);
  return earlier(context_.timers.next(), Deadline::after(sleep));
}

}  // namespace tutti::mpi
