#include "transport/verbs/connector.h"

#include <cerrno>
#include <utility>

#include <tutti/log.h>

#include "transport/meeting/crossing.h"

namespace tutti::verbs {

Connector::Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
                     ConnectorEvents& events)
    : context_(context),
      peer_(peer),
      address_(std::move(address)),
      pairs_(pair_rails(context.address, address_, context.owner->rank() < peer)),
      paths_(paths_of(pairs_)),
      events_(events),
      dialer_(context, peer, address_.endpoints, {timeout, context.options.handshake_timeout}, *this) {}

Connector::~Connector() { drop(); }

// The best kind of address of each pair comes first, then the second best of each pair, and so on.
std::vector<Connector::Path> Connector::paths_of(const std::vector<RailPair>& pairs) {
  std::vector<Path> paths;
  for (std::size_t rank = 0; rank <= static_cast<std::size_t>(last_gid_kind); ++rank) {
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      if (rank < pairs[pair].kinds.size()) paths.push_back({pair, pairs[pair].kinds[rank]});
    }
  }
  return paths;
}

security::Guard Connector::on_reached(int descriptor, Deadline limit) {
  meeting::tune(descriptor);
  return context_.guard_to(peer_, limit);
}

void Connector::on_passed(meeting::Connection connection) {
  if (gid() == nullptr) return give_up(Status(Code::internal, "an address of this rank has vanished"));
  auto pipe = context_.make_pipe(pairs_, paths_[path_].pair, *gid(), *this);
  if (!pipe.ok()) return give_up(pipe.status());
  pipe_ = *std::move(pipe);
  link_ = std::make_unique<Link>(context_, std::move(connection), this);
  if (!link_->start().ok()) {
    drop();
    return dialer_.attempt_failed(ENOMEM);
  }
  Note note;
  note.kind = NoteKind::connect;
  context_.introduce(note, peer_, address_);
  note.rail = static_cast<std::uint32_t>(paths_[path_].pair);
  note.end = pipe_->end();
  link_->send(note);
}

void Connector::on_note(const Note& note) {
  switch (note.kind) {
    case NoteKind::welcome:
      if (!probing_) return welcomed(note);
      break;
    case NoteKind::wait:
      drop();
      return dialer_.retry_after(meeting::pause_for_theirs);
    case NoteKind::cannot:
      return next_path(note.why.failure(peer_));
    case NoteKind::refused:
      return refused(note.why.failure(peer_));
    case NoteKind::check:
      if (probing_) return checked();
      break;
    default:
      break;
  }
  dialer_.fail(Code::protocol_error, "it broke the protocol");
}

void Connector::refused(const Status& why) {
  stop();
  why.code() == Code::peer_lost ? events_.on_connect_failed(why) : events_.on_refused(why);
}

void Connector::welcomed(const Note& note) {
  if (context_.dead_paths.contains(*gid(), note.end))
    return next_path(Status(Code::unreachable, "no packet has passed between these addresses before", peer_));
  theirs_ = note.end;
  const Status connected = pipe_->connect(theirs_);
  if (connected.code() == Code::protocol_error) return dialer_.fail(connected.code(), connected.message());
  if (!connected.ok()) {
    context_.dead_paths.add(*gid(), theirs_);
    return next_path(connected);
  }
  probing_ = true;
  checks_ = 0;
  probe_limit_ = Deadline::after(context_.options.probe_timeout);
  probe();
}

void Connector::probe() {
  context_.timers.set(*this, Deadline::after(context_.options.probe_interval));
  pipe_->probe();
}

// The peer handles packets before it answers over TCP. So if the peer keeps answering but sends no packet
// back, packets do not arrive.
void Connector::checked() {
  ++all_checks_;
  if (++checks_ >= context_.options.most_checks) probe_failed("none arrived, although the peer is awake");
}

// The first packet answers the packet that this rank has sent, and so shows that packets go both ways.
void Connector::on_packet(std::span<const std::byte>) {
  Note note;
  note.kind = NoteKind::go;
  link_->send(note);
  context_.timers.cancel(*this);
  dialer_.stop();
  events_.on_connected(std::move(link_), std::move(pipe_));
}

void Connector::on_pipe_broken(Code, const std::string& why) { probe_failed(why); }

void Connector::probe_failed(const std::string& why) {
  if (probing_) context_.dead_paths.add(*gid(), theirs_);
  next_path(Status(Code::unreachable, "no packet went to " + context_.describe(peer_) + " and back: " + why,
                   peer_));
}

void Connector::next_path(const Status& why) {
  const bool patient = all_checks_ < 2 * context_.options.most_checks;
  if (path_ + 1 == paths_.size() || !patient) return give_up(why);
  log::info("verbs: the next way is tried: ", why.message());
  drop();
  ++path_;
  dialer_.retry_after(std::chrono::milliseconds(0));
}

void Connector::on_broken(const Status& why) {
  drop();
  if (why.code() == Code::unauthenticated) return dialer_.attempt_denied(why);
  log::debug("verbs: an attempt to connect to ", context_.describe(peer_), " has ended: ", why.message());
  dialer_.attempt_failed(EPIPE);
}

void Connector::on_timer() {
  if (probe_limit_.expired()) return probe_failed("none arrived in time");
  Note note;
  note.kind = NoteKind::check;
  link_->send(note);
  probe();
}

void Connector::drop() {
  context_.timers.cancel(*this);
  probing_ = false;
  link_.reset();
  context_.discard(std::move(pipe_));
}

void Connector::stop() {
  drop();
  dialer_.stop();
}

// Ends the attempts, and tells the peer that this transport cannot connect the two ranks.
void Connector::give_up(const Status& why) {
  if (link_ != nullptr) {
    Note note;
    note.why.set(why.with_context("at " + context_.describe(context_.owner->rank())));
    link_->send(note);
  }
  stop();
  events_.on_refused(why);
}

// If the peer has answered over TCP, then the next transport may still connect the two ranks.
void Connector::on_dial_failed(const Status& why) {
  if (probing_) return give_up(why);
  drop();
  events_.on_connect_failed(why);
}

}  // namespace tutti::verbs
