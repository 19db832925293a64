#include "control/liveness/overlay.h"

#include <algorithm>
#include <numeric>

#include <tutti/log.h>

#include "control/liveness/ring.h"

// This file keeps the state of all ranks, and passes notes on.
namespace tutti::liveness {
namespace {

// A routed note may circulate while the ring changes, and so may a published note whose key has been
// forgotten. This constant limits how many ranks in a row pass a note on.
constexpr std::uint8_t most_hops = 64;
// This constant limits how many keys of published notes are remembered. The keys serve to recognise copies of
// these notes. If all communicators of a world fail at once, there is a note for each of them.
constexpr std::size_t most_keys = 65536;
// A neighbour has at least this long for the first connection, even if `limit` is shorter, since ranks start
// at different times.
constexpr std::chrono::seconds first_contact{10};
// In a new pair of neighbours, one side connects first. If there is no connection after this time, the other
// side connects.
constexpr std::chrono::seconds others_turn{1};
// A rank that leaves waits at most this long for its neighbours to receive its goodbye.
constexpr std::chrono::milliseconds goodbye_limit{500};
constexpr int heartbeats_per_limit = 4;
// At most this many connections that have not said hello yet may be open. A rank has few neighbours, so there
// is room for all of them.
constexpr std::size_t most_strangers = 64;

// This is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Uses up one hop before a frame is passed on. The frame must have at least one hop left. Also caps the
// number at `most_hops`, since the frame's sender may have written any number.
void count_hop(Frame& frame) {
  frame.hops = std::min(frame.hops, most_hops);
  --frame.hops;
}

}  // namespace

Overlay::Overlay(OverlayOptions options, Descriptor listener, ControlEvents& events)
    : options_(std::move(options)),
      interval_(options_.limit / heartbeats_per_limit),
      listener_(
          std::make_unique<meeting::Listener>(loop_, std::move(listener), *this,
                                              meeting::ListenerOptions{.name = "control",
                                                                       .service = security::Service::control,
                                                                       .credentials = options_.credentials,
                                                                       .hello_limit = options_.hello_limit,
                                                                       .most_strangers = most_strangers})),
      events_(events),
      presence_(options_.peers.size(), Presence::here),
      here_(options_.peers.size()) {
  std::iota(here_.begin(), here_.end(), 0);
  for (const PeerInfo& peer : options_.peers) {
    const auto found = peer.addresses.find(address_name);
    addresses_.push_back(found == peer.addresses.end() ? std::nullopt : parse_address(found->second));
    job_ = mix(job_ + (addresses_.back() ? addresses_.back()->nonce : 1));
  }
}

void Overlay::start(Clock::time_point now) {
  static_cast<void>(listener_->start(options_.rank));  // cannot fail: a PollLoop can watch any descriptor
  both_tried_at_ = now + 2 * others_turn;
  mend(now, now);
}

// Makes a contact for each neighbour on the ring that has no contact yet. The lower rank of a pair connects
// first.
void Overlay::mend(Clock::time_point connect_at, Clock::time_point patience_from) {
  for (const int rank : neighbours(here_, options_.rank)) {
    const auto [entry, added] = contacts_.try_emplace(rank);
    if (!added) continue;
    Contact& contact = entry->second;
    contact.next_try = options_.rank < rank ? connect_at : patience_from + others_turn;
    contact.due = patience_from + std::max<std::chrono::nanoseconds>(options_.limit, first_contact);
    const PeerInfo& peer = options_.peers[static_cast<std::size_t>(rank)];
    const PeerInfo& self = options_.peers[static_cast<std::size_t>(options_.rank)];
    const auto& address = addresses_[static_cast<std::size_t>(rank)];
    if (address && !peer.boot_id.empty() && peer.boot_id == self.boot_id)
      contact.process = watch_process(static_cast<pid_t>(peer.pid), address->process);
  }
}

std::string Overlay::unreached(int rank, const Contact& contact) const {
  const auto& address = addresses_[static_cast<std::size_t>(rank)];
  const std::string place = address ? " at " + format_endpoint(address->host, address->port) : "";
  const std::string text = "no control connection with it could be made" + place + ": " +
                           (contact.failed.empty() ? "nothing answered" : contact.failed);
  if (contact.lacks_descriptor) return text;
  return text +
         ". If a firewall is in between: TUTTI_PORT_RANGE says which ports ranks listen on, "
         "TUTTI_SOCKET_IFNAME and TUTTI_BIND_ADDRESS on which network";
}

Status Overlay::unlinked() const {
  if (fenced_) return {};
  for (const auto& [rank, contact] : contacts_) {
    if (contact.phase == Phase::open || !is_here(rank)) continue;
    if (!contact.refusal.ok()) return contact.refusal;
    const std::string why = describe(rank) + ": " + unreached(rank, contact);
    return contact.lacks_descriptor ? Status(Code::resource_exhausted, why)
                                    : Status(Code::timeout, why, rank);
  }
  return {};
}

Frame Overlay::frame(FrameKind kind) const {
  Frame made;
  made.kind = kind;
  made.generation = generation_;
  made.origin = static_cast<std::uint32_t>(options_.rank);
  return made;
}

// --- incoming frames ---

void Overlay::take(int from, Frame& frame) {
  if (frame.kind == FrameKind::heartbeat) return;
  const bool to_somebody = frame.kind != FrameKind::publish;
  // Frames of a rank that has been given up are ignored.
  if (!is_rank(frame.origin) || (to_somebody && !is_rank(frame.target)) ||
      presence_[frame.origin] == Presence::lost) {
    return;
  }
  switch (frame.kind) {
    case FrameKind::lost:
      return on_lost(frame, from);
    case FrameKind::left:
      return on_left(static_cast<int>(frame.target), from);
    case FrameKind::publish:
      if (!first_time(frame.topic, frame.key)) return;
      if (frame.hops > 0) {
        count_hop(frame);
        pass_on(frame, from);
      }
      return deliver(frame);
    case FrameKind::send:
      if (static_cast<int>(frame.target) == options_.rank) return deliver(frame);
      return route(frame, from);
    case FrameKind::heartbeat:
      return;
  }
}

void Overlay::deliver(const Frame& frame) {
  if (stop_at_ != never) return;
  events_.on_note({static_cast<int>(frame.origin), frame.topic, frame.body});
}

bool Overlay::first_time(std::uint32_t topic, std::uint64_t key) {
  const std::uint64_t known = mix(key + topic);
  if (!known_keys_.insert(known).second) return false;
  key_order_.push_back(known);
  if (key_order_.size() > most_keys) {
    known_keys_.erase(key_order_.front());
    key_order_.pop_front();
  }
  return true;
}

// --- outgoing frames ---

void Overlay::pass_on(const Frame& frame, int except) {
  for (auto& [rank, contact] : contacts_) {
    if (rank != except && contact.phase == Phase::open) write(contact, frame);
  }
}

// Passes the frame to the linked rank that is nearest to the target, but never back to `from`. (While the
// ring changes, `from` could be the nearest.)
void Overlay::route(Frame& frame, int from) {
  const int target = static_cast<int>(frame.target);
  if (frame.hops == 0 || fenced_ || !is_here(target)) return;
  count_hop(frame);
  std::vector<int> linked;
  for (const auto& [rank, contact] : contacts_) {
    if (contact.phase == Phase::open && rank != from) linked.push_back(rank);
  }
  const int next = next_hop(here_, target, linked);
  if (next >= 0) write(contacts_.at(next), frame);
}

void Overlay::publish(std::uint32_t topic, std::uint64_t key, std::string body) {
  if (fenced_ || stop_at_ != never || body.size() > max_control_body) return;
  if (key == 0)
    key = mix(job_ + static_cast<std::uint64_t>(options_.rank) * 0x9e3779b97f4a7c15 + ++next_key_);
  if (!first_time(topic, key)) return;
  Frame made = frame(FrameKind::publish);
  made.hops = most_hops;
  made.topic = topic;
  made.key = key;
  made.body = std::move(body);
  pass_on(made, -1);
}

void Overlay::send(int target, std::uint32_t topic, std::string body) {
  if (body.size() > max_control_body) return;
  Frame made = frame(FrameKind::send);
  made.hops = most_hops;
  made.target = static_cast<std::uint32_t>(target);
  made.topic = topic;
  made.body = std::move(body);
  if (target == options_.rank) return deliver(made);
  route(made, -1);
}

// --- ranks that are gone ---

void Overlay::give_up(int rank, const Status& why) {
  Frame made = frame(FrameKind::lost);
  made.target = static_cast<std::uint32_t>(rank);
  made.code = why.code();
  made.body = why.message();
  on_lost(made, -1);
}

void Overlay::on_lost(const Frame& frame, int from) {
  const int rank = static_cast<int>(frame.target);
  if (fenced_ || stop_at_ != never || !is_here(rank)) return;
  if (rank == options_.rank) return fence(frame.body);
  losses_.push_back({rank, frame});
  pass_on(frame, from);
  remove(rank, Presence::lost);
  const auto now = Clock::now();
  mend(now, now);
  events_.on_lost(rank, Status(frame.code, frame.body, rank));
}

void Overlay::on_left(int rank, int from) {
  if (fenced_ || !is_here(rank) || rank == options_.rank) return;
  any_left_ = true;
  Frame made = frame(FrameKind::left);
  made.target = static_cast<std::uint32_t>(rank);
  pass_on(made, from);
  remove(rank, Presence::left);
  // New links are made after a pause: usually all ranks leave at about the same time, and then no links are
  // needed.
  const auto later = Clock::now() + others_turn;
  if (stop_at_ == never) mend(later, later);
  events_.on_left(rank);
}

// Ends all connections: the other ranks have given this rank up, and must receive no more frames from it.
void Overlay::fence(const std::string& why) {
  fenced_ = true;
  contacts_.clear();
  listener_.reset();
  events_.on_fenced(given_up(describe(options_.rank), options_.rank, why));
}

void Overlay::remove(int rank, Presence presence) {
  presence_[static_cast<std::size_t>(rank)] = presence;
  std::erase(here_, rank);
  const auto found = contacts_.find(rank);
  if (found == contacts_.end()) return;
  if (found->second.phase == Phase::open) close_after(std::move(found->second.stream));
  contacts_.erase(found);
}

void Overlay::leave(Clock::time_point now) {
  stop_at_ = now + goodbye_limit;
  Frame made = frame(FrameKind::left);
  made.target = made.origin;
  if (listener_ != nullptr) listener_->stop();
  for (auto& [rank, contact] : contacts_) {
    if (contact.phase != Phase::open) continue;
    write(contact, made);
    close_after(std::move(contact.stream));
  }
  contacts_.clear();
}

bool Overlay::over(Clock::time_point now) const {
  return stop_at_ != never && (closing_.empty() || now >= stop_at_);
}

}  // namespace tutti::liveness
