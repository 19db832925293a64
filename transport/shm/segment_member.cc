#include "transport/shm/segment_member.h"

#include <atomic>
#include <cerrno>

#include "core/error_text.h"

namespace tutti::shm {
namespace {

// The next attempt begins after this pause if the leader's queue of connections is full. The same
// pause follows if this user has too many descriptors in flight (sent over sockets, but not
// received yet).
constexpr std::chrono::milliseconds pause_when_leader_busy{1};
// The leader has the same deadline, and tells all members the outcome. If the leader is still silent this
// long after the deadline, a member that has mapped the segment gives up.
constexpr std::chrono::seconds patience_with_leader{5};

}  // namespace

SegmentMember::SegmentMember(Context& context, SegmentEvents& events, ShareRequest& request,
                             std::size_t member)
    : context_(context), events_(events), request_(request), member_(member) {}

SegmentMember::~SegmentMember() { context_.timers.cancel(*this); }

void SegmentMember::start() { connect(); }

void SegmentMember::connect() {
  const auto address = published_by(context_.peer(leader()));
  if (!address) {
    return fail(
        Status(Code::unreachable, context_.describe(leader()) + " has no usable shm address", leader()));
  }
  int error = 0;
  Descriptor socket = connect_local(address->name, error);
  if (error == 0) return ask(std::move(socket));
  if (error == EAGAIN || error == EINTR) {
    context_.timers.set(*this, earlier(request_.deadline, Deadline::after(pause_when_leader_busy)));
  } else if (error == ECONNREFUSED) {
    fail(Status(Code::peer_lost, context_.describe(leader()) + " does not listen any more", leader()));
  } else {
    fail(Status(Code::unreachable,
                "no connection to " + context_.describe(leader()) + ": " + error_text(error), leader()));
  }
}

void SegmentMember::ask(Descriptor socket) {
  context_.timers.set(*this, request_.deadline);
  link_ = std::make_unique<Link>(context_, std::move(socket), context_.guard_to(leader(), request_.deadline),
                                 *this);
  if (const Status started = link_->start(); !started.ok()) fail(started);
}

void SegmentMember::on_open(Link&) {
  const auto address = published_by(context_.peer(leader()));
  if (!address) {
    return fail(
        Status(Code::unreachable, context_.describe(leader()) + " has no usable shm address", leader()));
  }
  Note note;
  note.kind = NoteKind::share;
  context_.introduce(note, leader(), *address);
  note.key = request_.key;
  note.bytes = request_.bytes;
  note.member = static_cast<std::uint32_t>(member_);
  note.members = static_cast<std::uint32_t>(request_.members.size());
  const int own_bell = context_.bell.rope()->descriptor();
  const int error = link_->send(note, {&own_bell, 1});
  if (error == ETOOMANYREFS) {  // the user has too many descriptors on their way
    link_.reset();
    context_.timers.set(*this, earlier(request_.deadline, Deadline::after(pause_when_leader_busy)));
  } else if (error != 0) {
    on_broken(*link_, error_text(error));
  }
}

void SegmentMember::on_note(Link&, const Note& note, std::vector<Descriptor> descriptors) {
  const bool mapped = segment_ != nullptr;
  if (note.kind == NoteKind::refused) {
    fail(note.why.failure(leader()));
  } else if (note.kind == NoteKind::offer && !mapped) {
    take(note, std::move(descriptors));
  } else if (note.kind == NoteKind::go && mapped) {
    finish();
  } else {
    fail(Status(Code::protocol_error, "shm: " + context_.describe(leader()) + " broke the protocol",
                leader()));
  }
}

void SegmentMember::take(const Note& offer, std::vector<Descriptor> descriptors) {
  Note answer;
  if (const Status mapped = map(offer, descriptors); !mapped.ok()) {
    answer.why.set(mapped);
    link_->send_last(answer);
    return fail(mapped.with_context("shm"));
  }
  answer.kind = NoteKind::mapped;
  if (const int error = link_->send(answer); error != 0) {
    return on_broken(*link_, error_text(error));
  }
  const bool patient = !request_.deadline.is_never();
  context_.timers.set(
      *this, patient ? Deadline::at(request_.deadline.when() + patience_with_leader) : Deadline::never());
}

Status SegmentMember::map(const Note& offer, std::vector<Descriptor>& descriptors) {
  const std::size_t members = request_.members.size();
  if (descriptors.size() != 1 + members) {
    return Status(Code::protocol_error, context_.describe(leader()) + " offered a segment with " +
                                            std::to_string(descriptors.size()) + " descriptors");
  }
  segment_ = std::make_unique<Segment>();
  Status mapped = segment_->map(std::move(descriptors.front()), segment_bytes(request_));
  if (mapped.ok()) mapped = provide_share(*segment_, member_, request_);
  if (!mapped.ok()) return mapped;
  for (std::size_t i = 0; i < members; ++i) {
    const int rank = request_.members[i];
    Descriptor& bell = descriptors[1 + i];
    ropes_.push_back(i == member_ ? context_.bell.rope()
                     : i == 0     ? context_.rope_of(rank, std::move(bell))
                                  : context_.rope_by_hearsay(rank, std::move(bell)));
    if (ropes_.back() == nullptr) {
      return Status(Code::protocol_error,
                    context_.describe(leader()) + " handed over a descriptor that is not a bell", leader());
    }
  }
  std::atomic_ref(*proof_place(*segment_, member_)).store(offer.proof, std::memory_order_release);
  return {};
}

void SegmentMember::on_broken(Link& link, const std::string& why) {
  fail(Status(link.failure(), context_.describe(leader()) + ": " + why, leader()));
}

void SegmentMember::on_timer() {
  const bool mapped = segment_ != nullptr;
  if (link_ == nullptr && !request_.deadline.expired()) return connect();
  fail(Status(
      Code::timeout,
      mapped ? "shm: " + context_.describe(leader()) + " did not say whether all members have the segment"
             : "shm: not all members asked for a shared segment in time",
      mapped ? leader() : -1));
}

void SegmentMember::finish() {
  std::vector<SharedMemory::Member> members;
  for (std::size_t i = 0; i < request_.members.size(); ++i) {
    members.push_back({request_.members[i], std::move(ropes_[i]), nullptr});
  }
  members.front().link = std::move(link_);
  events_.on_shared(request_, std::move(segment_), std::move(members));
}

void SegmentMember::cancel(const Status& why) {
  Note note;
  note.why.set(why);
  if (link_ != nullptr) link_->send_last(note);
  fail(why);
}

void SegmentMember::fail(const Status& why) { events_.on_not_shared(request_, why); }

}  // namespace tutti::shm
