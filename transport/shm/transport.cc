#include "transport/shm/transport.h"

#include <algorithm>
#include <cstring>

#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/random.h"
#include "transport/shm/channel.h"
#include "transport/shm/segment.h"

namespace tutti::shm {
namespace {

// Tests whether this system supports everything that shared memory needs.
Status try_segment() {
  Segment made, mapped;
  if (const Status created = made.create(page_bytes()); !created.ok()) return created;
  if (const Status provided = made.provide(0, page_bytes()); !provided.ok()) return provided;
  Descriptor again = Descriptor::guarded(dup(made.descriptor()));
  if (const Status twice = mapped.map(std::move(again), page_bytes()); !twice.ok()) return twice;
  made.memory().front() = std::byte{1};
  if (mapped.memory().front() == std::byte{1}) return {};
  return Status(Code::unsupported, "two mappings of one memfd do not show the same bytes");
}

}  // namespace

Status Transport::prepare() {
  if (const Status possible = try_segment(); !possible.ok()) return possible;
  if (const Status possible = context_.bell.create(); !possible.ok()) return possible;
  context_.address = {"tutti-" + std::to_string(random_number()), geteuid(), random_number(),
                      context_.options.limits};
  auto socket = listen_local(context_.address.name);
  if (!socket.ok()) return socket.status();
  const meeting::ListenerOptions listening{.name = "shm",
                                           .service = context_.service,
                                           .credentials = context_.options.credentials,
                                           .hello_limit = context_.options.handshake_timeout};
  listener_ = std::make_unique<meeting::Listener>(context_, *std::move(socket), *this, listening);
  return {};
}

// Both sides get the same answer, since they compare only values that both have published.
Status Transport::can_reach(const PeerInfo& peer) const {
  const auto theirs = published_by(peer);
  if (!theirs) return Status(Code::unreachable, peer.describe() + " has no usable shm address", peer.rank);
  if (theirs->uid != context_.address.uid) {
    return Status(Code::unreachable, peer.describe() + " runs as another user", peer.rank);
  }
  if (context_.owner == nullptr) return {};
  const PeerInfo& own = context_.peer(context_.owner->rank());
  if (own.boot_id.empty() || own.boot_id != peer.boot_id) {
    return Status(Code::unreachable, peer.describe() + " is on another host", peer.rank);
  }
  if (own.network_namespace != peer.network_namespace) {
    return Status(Code::unreachable, peer.describe() + " is in another network namespace", peer.rank);
  }
  return {};
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.start(driver, owner, *this);
  const Status heard = context_.watch(context_.bell.descriptor(), EPOLLIN, context_.bell);
  return heard.ok() ? listener_->start(owner.rank()) : heard;
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(context_, peer, connect_timeout);
  context_.channels.by_peer.add(peer, *channel);
  return channel;
}

bool Transport::poll() {
  bool did = context_.timers.run();
  std::vector<Channel*>& open = context_.channels.open;
  bool any_closed = false;
  // The loop uses an index, since polling a channel may open and close others.
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i] != nullptr) did |= open[i]->poll();
    any_closed |= open[i] == nullptr;
  }
  if (any_closed) std::erase(open, nullptr);
  return did;
}

bool Transport::prepare_sleep() {
  bool work = false;
  for (Channel* channel : context_.channels.open) {
    if (channel != nullptr) work |= channel->prepare_sleep();
  }
  return work;
}

void Transport::cancel_sleep() {
  for (Channel* channel : context_.channels.open) {
    if (channel != nullptr) channel->cancel_sleep();
  }
}

void Transport::stop() {
  if (context_.driver == nullptr) return;
  requests_.stop();
  listener_.reset();
  context_.unwatch(context_.bell.descriptor());
  context_.stop(*this);
}

// `read` has already checked that the packet is a note, so there is nothing left to check.
bool Transport::begins_like_hello(std::span<const std::byte>) const { return true; }

std::optional<std::uint32_t> Transport::claimed_rank(std::span<const std::byte> hello) const {
  return meeting::note_of<Note>(hello).from;
}

// Reads one packet, which is the whole hello.
std::size_t Transport::read(meeting::Guest& guest, std::span<std::byte> place, int& error) const {
  Note note;
  error = receive_note(guest.connection.descriptor(), note, guest.descriptors);
  if (error != 0) return 0;
  std::memcpy(place.data(), &note, sizeof note);
  return sizeof note;
}

void Transport::on_hello(meeting::Guest guest) {
  const Note hello = meeting::note_of<Note>(guest.hello);
  auto link = std::make_unique<Link>(context_, std::move(guest.connection));
  if (const Status watched = link->start(); !watched.ok()) {
    log::debug("shm: dropped the connection of rank ", hello.from, ": ", watched.message());
  } else if (const bool peer = context_.is_from_peer(hello); peer && hello.kind == NoteKind::connect) {
    connect(hello, std::move(guest.descriptors), std::move(link));
  } else if (peer && hello.kind == NoteKind::share) {
    requests_.on_hello(hello, std::move(guest.descriptors), std::move(link));
  } else {
    log::debug("shm: refused a connection from a process that claims to be rank ", hello.from);
  }
}

void Transport::connect(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) {
  const int from = static_cast<int>(hello.from);
  const tutti::Channel* const wanted = context_.owner->on_incoming(from, *this);
  Channel* const channel = context_.channels.by_peer.find(from);
  if (channel != nullptr && channel == wanted) {
    channel->accept(hello, std::move(descriptors), std::move(link));
    return;
  }
  Note note;
  note.why.set(
      Status(Code::unreachable, context_.describe(context_.owner->rank()) + " does not use shared memory"));
  link->send_last(note);
}

}  // namespace tutti::shm
