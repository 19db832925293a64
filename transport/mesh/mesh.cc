#include "transport/mesh/mesh.h"

#include <algorithm>
#include <cassert>

#include <tutti/log.h>

#include "transport/mesh/loopback.h"
#include "transport/mesh/state.h"

namespace tutti {
namespace {

// A `Drain` sets `done` once all channels are drained. `Mesh::shutdown` waits for that.
class Drain final : public Pollable {
 public:
  Drain(Driver& driver, std::vector<Channel*> channels) : driver_(driver), channels_(std::move(channels)) {}
  bool poll() override {
    if (done.load(std::memory_order_relaxed) != 0) return false;
    std::erase_if(channels_, [](const Channel* channel) { return channel->drained(); });
    if (!channels_.empty()) return false;
    done.store(1);
    driver_.notify(done);
    return true;
  }
  bool prepare_sleep() override { return poll(); }

  std::atomic<std::uint32_t> done{0};

 private:
  Driver& driver_;
  std::vector<Channel*> channels_;
};

}  // namespace

Mesh::Mesh(Driver& driver, MeshOptions options)
    : driver_(driver), options_(std::move(options)), state_(std::make_unique<State>(early_)) {
  state_->peers.resize(options_.peers.size());
}

Mesh::~Mesh() { assert(!state_->started || state_->shut); }

Status Mesh::start() {
  if (options_.rank < 0 || options_.rank >= size()) {
    return Status(Code::invalid_argument, "rank " + std::to_string(options_.rank) + " is not among " +
                                              std::to_string(size()) + " ranks");
  }
  state_->started = true;
  for (const auto& transport : options_.transports) {
    const Status status = transport->start(driver_, *this);
    if (status.ok()) continue;
    // The transports before this transport have been started, and this transport perhaps in part. `stop` ends
    // everything that was started, and has no effect on the remaining transports.
    for (const auto& each : options_.transports) each->stop();
    state_->started = false;
    return status.with_context("transport " + std::string(transport->name()));
  }
  return {};
}

void Mesh::shutdown(Deadline deadline) {
  State& state = *state_;
  std::vector<Channel*> channels;
  {
    DriverGuard guard(driver_);
    if (state.shut || !state.started) return;
    state.shut = true;
    while (!state.contexts.empty()) detach(state.contexts.begin()->first);
    const Status why(Code::aborted, peer(rank()).describe() + " has shut down", rank());
    for (int i = 0; i < size(); ++i) {
      Channel* channel = state.peers[static_cast<std::size_t>(i)].channel.get();
      if (channel == nullptr) continue;
      channel->close(why, i != rank());
      if (!channel->drained()) channels.push_back(channel);
    }
  }
  Drain drain(driver_, std::move(channels));
  {
    DriverGuard guard(driver_);
    driver_.add(drain);
  }
  driver_.wait(drain.done, deadline);
  DriverGuard guard(driver_);
  driver_.remove(drain);
  for (State::Peer& each : state.peers) {
    if (each.channel != nullptr) each.channel->close(Status(Code::aborted, "shut down"), false);
  }
  for (const auto& transport : options_.transports) transport->stop();
  for (State::Peer& each : state.peers) each.channel.reset();
  state.replaced.clear();
}

// --- peers ---

// Chooses the first transport that reaches the peer. Both sides apply the same rule, so both choose the same
// transport.
Status Mesh::choose(int peer_rank) {
  Transport*& chosen = state_->peers[static_cast<std::size_t>(peer_rank)].transport;
  if (chosen != nullptr) return {};
  std::string reasons;
  chosen = next_after(peer_rank, nullptr, reasons);
  if (chosen != nullptr) return {};
  return Status(Code::unreachable, "no transport reaches " + peer(peer_rank).describe() + reasons, peer_rank);
}

// Returns the first transport after `transport` that reaches the peer, or null if there is none. If
// `transport` is null, the search begins with the first transport. Adds to `reasons` why each transport that
// was passed over does not reach the peer.
Transport* Mesh::next_after(int peer_rank, const Transport* transport, std::string& reasons) {
  bool behind = transport == nullptr;
  for (const auto& each : options_.transports) {
    if (behind) {
      const Status status = each->can_reach(peer(peer_rank));
      if (status.ok()) return each.get();
      say_once(*each, peer_rank, status);
      reasons += "; " + std::string(each->name()) + ": " + status.message();
    }
    behind |= each.get() == transport;
  }
  return nullptr;
}

void Mesh::say_once(const Transport& unused, int peer_rank, const Status& why) {
  std::vector<const Transport*>& said = state_->passed_over;
  if (std::find(said.begin(), said.end(), &unused) != said.end()) return;
  said.push_back(&unused);
  log::info(unused.name(), " is not used with ", peer(peer_rank).describe(),
            " (there may be other ranks like it): ", why.message());
}

void Mesh::on_unusable(int peer_rank, Transport& transport, const Status& why) {
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  if (!entry.status.ok() || entry.transport != &transport) return;
  std::string reasons = "; " + std::string(transport.name()) + ": " + why.message();
  if (Transport* next = next_after(peer_rank, &transport, reasons)) {
    switch_to(peer_rank, *next, why);
  } else {
    fail_peer(peer_rank, Status(Code::unreachable,
                                "no transport reaches " + peer(peer_rank).describe() + reasons, peer_rank));
  }
}

// The peer has connected over `transport`, perhaps because it was the first to notice that the chosen
// transport does not work. Returns whether this rank may switch to `transport`, too. This is so if
// `transport` reaches the peer and comes later in the order of preference, and if the current channel has not
// begun.
bool Mesh::follows(int peer_rank, const Transport& transport) const {
  const State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  const auto place = [this](const Transport* of) {
    return std::find_if(options_.transports.begin(), options_.transports.end(),
                        [of](const auto& each) { return each.get() == of; });
  };
  return place(&transport) > place(entry.transport) && transport.can_reach(peer(peer_rank)).ok() &&
         (entry.channel == nullptr || !entry.channel->has_begun());
}

void Mesh::switch_to(int peer_rank, Transport& transport, const Status& why) {
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  say_once(*entry.transport, peer_rank, why);
  entry.transport = &transport;
  if (entry.channel == nullptr) return;
  state_->replaced.push_back(std::move(entry.channel));
  Channel& old = *state_->replaced.back();
  entry.channel = transport.open(peer_rank, options_.connect_timeout);
  Channel& now = *entry.channel;
  old.hand_over(now);
  if (entry.awaited) now.connect();
}

Channel* Mesh::open(int peer_rank) {
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  if (entry.channel != nullptr || !entry.status.ok()) return entry.channel.get();
  if (peer_rank == rank()) {
    entry.channel = std::make_unique<LoopbackChannel>(*this, options_.limits);
  } else if (const Status status = choose(peer_rank); status.ok()) {
    entry.channel = entry.transport->open(peer_rank, options_.connect_timeout);
  } else {
    on_channel_down(peer_rank, status);
  }
  return entry.channel.get();
}

Channel* Mesh::on_incoming(int peer_rank, Transport& transport) {
  if (peer_rank < 0 || peer_rank >= size() || peer_rank == rank()) return nullptr;
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  // A channel that is closing may still have frames to send to the peer, so it still accepts a connection.
  if (state_->shut) return entry.transport == &transport ? entry.channel.get() : nullptr;
  if (!entry.status.ok() || !choose(peer_rank).ok()) return nullptr;
  if (entry.transport != &transport) {
    if (!follows(peer_rank, transport)) return nullptr;
    switch_to(peer_rank, transport,
              Status(Code::unreachable, "it prefers " + std::string(transport.name()), peer_rank));
  }
  return open(peer_rank);
}

void Mesh::on_channel_down(int peer_rank, const Status& why) {
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  if (!entry.status.ok()) return;
  entry.status = why.peer() == peer_rank ? why : Status(why.code(), why.message(), peer_rank);
  const Status status = entry.status;
  tell_if_lost(status);
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, table] : state_->contexts) {
    table->take_posted(peer_rank, state_->failing);
    numbers.push_back(number);
  }
  fail_posted();
  // `on_peer_down` may detach contexts, so the loop looks each one up again.
  for (const std::uint32_t number : numbers) {
    if (ContextTable* table = state_->attached(number)) table->events->on_peer_down(peer_rank, status);
  }
}

// Fails all receives in the list `State::failing`. Their `done` may cancel other receives in the list. It may
// also cause the loss of another peer, which adds receives to the list.
void Mesh::fail_posted() {
  for (RecvOp* op = state_->failing.front(); op != nullptr; op = op->next) op->state = failing;
  while (RecvOp* op = state_->failing.pop_front()) {
    op->state = idle;
    op->done(*op, peer_status(op->peer));
  }
}

void Mesh::fail_peer(int peer_rank, const Status& why) {
  on_channel_down(peer_rank, why);
  Channel* channel = state_->peers[static_cast<std::size_t>(peer_rank)].channel.get();
  if (channel != nullptr) channel->close(peer_status(peer_rank), false);
}

// Returns the first transport that shares memory and reaches all members.
Result<Transport*> Mesh::sharing_transport(std::span<const int> members) const {
  std::string reasons;
  for (const auto& transport : options_.transports) {
    if (!transport->can_share()) continue;
    Status reach;
    for (const int member : members) {
      if (member != rank()) reach = transport->can_reach(peer(member));
      if (!reach.ok()) break;
    }
    if (reach.ok()) return transport.get();
    reasons += "; " + std::string(transport->name()) + ": " + reach.message();
  }
  return Status(Code::unsupported, "no transport shares memory among the members" + reasons);
}

bool Mesh::can_share(std::span<const int> members) const { return sharing_transport(members).ok(); }

void Mesh::share(ShareRequest& request) {
  const Result<Transport*> transport = sharing_transport(request.members);
  if (!transport.ok()) return request.done(request, transport.status());
  (*transport)->share(request);
}

void Mesh::cancel_share(ShareRequest& request, const Status& why) {
  // Only the transport that has the request cancels it; the other transports do nothing.
  for (const auto& transport : options_.transports) transport->cancel_share(request, why);
}

Result<std::vector<std::unique_ptr<RegisteredMemory>>> Mesh::add_memory(std::span<std::byte> region) {
  std::vector<std::unique_ptr<RegisteredMemory>> all;
  for (const auto& transport : options_.transports) {
    auto one = transport->add_memory(region);
    if (!one.ok()) return one.status().with_context("transport " + std::string(transport->name()));
    if (*one != nullptr) all.push_back(*std::move(one));
  }
  return all;
}

const Status& Mesh::peer_status(int peer_rank) const {
  return state_->peers[static_cast<std::size_t>(peer_rank)].status;
}

std::string_view Mesh::transport_name(int peer_rank) const {
  if (peer_rank == rank()) return "self";
  const Transport* chosen = state_->peers[static_cast<std::size_t>(peer_rank)].transport;
  if (chosen != nullptr) return chosen->name();
  for (const auto& transport : options_.transports) {
    if (transport->can_reach(peer(peer_rank)).ok()) return transport->name();
  }
  return "none";
}

ChannelCounters Mesh::counters(int peer_rank) const {
  ChannelCounters sum;
  for (int i = 0; i < size(); ++i) {
    const Channel* channel = state_->peers[static_cast<std::size_t>(i)].channel.get();
    if (channel == nullptr || (peer_rank >= 0 && peer_rank != i)) continue;
    const ChannelCounters& one = channel->counters();
    sum.messages_sent += one.messages_sent;
    sum.messages_received += one.messages_received;
    sum.bytes_sent += one.bytes_sent;
    sum.bytes_received += one.bytes_received;
    sum.frames_sent += one.frames_sent;
    sum.bytes_in_place += one.bytes_in_place;
    sum.bytes_staged += one.bytes_staged;
  }
  return sum;
}

int Mesh::open_channels() const {
  int open = 0;
  for (int i = 0; i < size(); ++i) {
    const Channel* channel = state_->peers[static_cast<std::size_t>(i)].channel.get();
    if (i != rank() && channel != nullptr && channel->status().ok()) ++open;
  }
  return open;
}

// --- contexts ---

void Mesh::attach(std::uint32_t context, ContextEvents& events) {
  assert((context & user_context_bit) == 0 && !state_->closed.contains(context));
  ContextTable* table = state_->find_or_make(context);
  assert(table != nullptr && table->events == nullptr);
  table->events = &events;
  std::vector<State::EarlyAbort> aborts;
  std::erase_if(state_->early_aborts, [&](State::EarlyAbort& abort) {
    if (abort.context != context) return false;
    aborts.push_back(std::move(abort));
    return true;
  });
  for (const State::EarlyAbort& abort : aborts) on_abort(abort.peer, context, abort.why);
}

void Mesh::detach(std::uint32_t context) {
  ContextTable* table = state_->find(context);
  if (table == nullptr || table->detaching) return;
  table->detaching = true;
  table->events = nullptr;
  while (RecvOp* op = table->any_posted()) {
    table->unpost(*op);
    op->state = idle;
    op->done(*op, Status(Code::aborted, "the communicator was closed while a receive was posted"));
  }
  while (Arrival* arrival = table->any_kept()) {
    table->unkeep(*arrival);
    arrival->channel->discard(*arrival);
  }
  state_->erase(context);
  state_->closed.insert(context);
}

void Mesh::abort(std::uint32_t context, const std::vector<int>& members, const Status& why) {
  for (const int member : members) {
    if (member == rank()) continue;
    Channel* channel = state_->peers[static_cast<std::size_t>(member)].channel.get();
    if (channel != nullptr) channel->send_abort(context, why);
  }
}

// Tells the transports if `why` says that a rank is lost.
void Mesh::tell_if_lost(const Status& why) const {
  if (why.code() != Code::peer_lost) return;
  for (const auto& transport : options_.transports) transport->on_rank_lost();
}

void Mesh::on_abort(int peer_rank, std::uint32_t context, const Status& why) {
  tell_if_lost(why);
  if (ContextTable* table = state_->attached(context)) {
    table->events->on_abort(peer_rank, why);
    return;
  }
  if (state_->shut || state_->closed.contains(context)) return;
  std::deque<State::EarlyAbort>& early = state_->early_aborts;
  const auto is_same = [&](const State::EarlyAbort& abort) {
    return abort.context == context && abort.peer == peer_rank;
  };
  if (std::ranges::any_of(early, is_same)) return;
  if (early.size() == State::max_early_aborts) early.pop_front();
  early.push_back({context, peer_rank, why});
}

}  // namespace tutti
