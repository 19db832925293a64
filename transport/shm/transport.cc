#include "transport/shm/transport.h"

#include <algorithm>
#include <array>

#include <sys/epoll.h>
#include <sys/random.h>

#include <tutti/log.h>

#include "transport/shm/channel.h"
#include "transport/shm/segment.h"

namespace tutti::shm {
namespace {

std::optional<Address> published_address(const PeerInfo& peer) {
  const auto found = peer.addresses.find("shm");
  return found == peer.addresses.end() ? std::nullopt : parse_address(found->second);
}

ShmChannel* const no_channel = nullptr;

// What no process that can share memory may be without.
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

Status ShmTransport::prepare() {
  std::array<std::uint64_t, 2> numbers;
  if (getrandom(numbers.data(), sizeof numbers, 0) != sizeof numbers) {
    return Status(Code::internal, "the system has no random numbers");
  }
  if (const Status possible = try_segment(); !possible.ok()) return possible;
  if (const Status possible = hub_.bell.create(); !possible.ok()) return possible;
  hub_.address = {"tutti-" + std::to_string(numbers[0]), geteuid(), numbers[1]};
  auto socket = listen_local(hub_.address.name);
  if (!socket.ok()) return socket.status();
  listener_ = std::make_unique<Listener>(hub_, *std::move(socket), *this);
  return {};
}

// Symmetrical: only what both have published is compared.
Status ShmTransport::can_reach(const PeerInfo& peer) const {
  const auto theirs = published_address(peer);
  if (!theirs) return Status(Code::unreachable, peer.describe() + " has no usable shm address", peer.rank);
  if (theirs->uid != hub_.address.uid) {
    return Status(Code::unreachable, peer.describe() + " runs as another user", peer.rank);
  }
  if (hub_.owner == nullptr) return {};
  const PeerInfo& own = hub_.owner->peer(hub_.owner->rank());
  if (own.boot_id.empty() || own.boot_id != peer.boot_id) {
    return Status(Code::unreachable, peer.describe() + " is on another host", peer.rank);
  }
  if (own.network_namespace != peer.network_namespace) {
    return Status(Code::unreachable, peer.describe() + " is in another network namespace", peer.rank);
  }
  return {};
}

Status ShmTransport::start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) {
  hub_.driver = &driver;
  hub_.owner = &owner;
  hub_.limits = limits;
  driver.assert_driven();
  driver.add(*this);
  const Status heard = driver.watch(hub_.bell.descriptor(), EPOLLIN, hub_.bell);
  return heard.ok() ? listener_->start() : heard;
}

std::unique_ptr<Channel> ShmTransport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<ShmChannel>(*this, hub_, peer, connect_timeout);
  channels_[peer] = channel.get();
  return channel;
}

void ShmTransport::closed(ShmChannel& channel) {
  std::replace(open_.begin(), open_.end(), &channel, no_channel);
}

void ShmTransport::forget(int peer, ShmChannel& channel) {
  const auto found = channels_.find(peer);
  if (found != channels_.end() && found->second == &channel) channels_.erase(found);
}

bool ShmTransport::poll() {
  bool did = hub_.timers.run();
  bool any_closed = false;
  // By index: channels open and close others while they are polled.
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (open_[i] != nullptr) did |= open_[i]->poll();
    any_closed |= open_[i] == nullptr;
  }
  if (any_closed) std::erase(open_, nullptr);
  return did;
}

bool ShmTransport::prepare_sleep() {
  bool work = false;
  for (ShmChannel* channel : open_) {
    if (channel != nullptr) work |= channel->prepare_sleep();
  }
  return work;
}

void ShmTransport::cancel_sleep() {
  for (ShmChannel* channel : open_) {
    if (channel != nullptr) channel->cancel_sleep();
  }
}

void ShmTransport::stop() {
  if (hub_.driver == nullptr) return;
  requests_.stop();
  listener_.reset();
  hub_.unwatch(hub_.bell.descriptor());
  hub_.driver->assert_driven();
  hub_.driver->remove(*this);
  hub_.driver = nullptr;
}

// Whether it is the process that our table has for its rank, and means us.
bool ShmTransport::is_peer(const Note& hello) const {
  const auto size = static_cast<std::uint32_t>(hub_.owner->size());
  const auto rank = static_cast<std::uint32_t>(hub_.owner->rank());
  if (hello.from >= size || hello.from == rank || hello.to != rank) return false;
  if (hello.to_nonce != hub_.address.nonce) return false;
  const auto theirs = published_address(hub_.owner->peer(static_cast<int>(hello.from)));
  return theirs && theirs->nonce == hello.from_nonce;
}

void ShmTransport::on_hello(const Note& hello, std::vector<Descriptor> descriptors,
                            std::unique_ptr<Link> link) {
  if (is_peer(hello) && hello.kind == NoteKind::connect) {
    connect(hello, std::move(descriptors), std::move(link));
  } else if (is_peer(hello) && hello.kind == NoteKind::share) {
    requests_.on_hello(hello, std::move(descriptors), std::move(link));
  } else {
    log::debug("shm: refused a connection from what says it is rank ", hello.from);
  }
}

void ShmTransport::connect(const Note& hello, std::vector<Descriptor> descriptors,
                           std::unique_ptr<Link> link) {
  const int from = static_cast<int>(hello.from);
  const Channel* const wanted = hub_.owner->on_incoming(from, *this);
  const auto channel = channels_.find(from);
  if (channel != channels_.end() && channel->second == wanted) {
    channel->second->accept(hello, std::move(descriptors), std::move(link));
    return;
  }
  Note note;
  note.set_reason(
      Status(Code::unreachable, hub_.describe(hub_.owner->rank()) + " does not use shared memory"));
  link->send_last(note);
}

}  // namespace tutti::shm
