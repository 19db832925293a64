#include "transport/shm/segment_leader.h"

#include <atomic>
#include <cerrno>

#include <sys/random.h>

#include "core/error_text.h"

namespace tutti::shm {
namespace {

// If a member's queue is full, or too many descriptors are under way, the leader waits this long
// before it sends the offer again. Meanwhile the members read notes, and thereby empty the queues.
constexpr std::chrono::milliseconds pause_while_not_taken{2};

}  // namespace

SegmentLeader::SegmentLeader(Context& context, SegmentEvents& events, ShareRequest& request)
    : context_(context), events_(events), request_(request), members_(request.members.size()) {
  members_.front().rope = context.bell.rope();
}

SegmentLeader::~SegmentLeader() { context_.timers.cancel(*this); }

void SegmentLeader::start() {
  context_.timers.set(*this, request_.deadline);
  if (present_ == members_.size()) make();
}

void SegmentLeader::add(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) {
  const auto refuse = [&](const std::string& why) {
    Note note;
    note.why.set(Status(Code::mismatch, why));
    link->send_last(note);
    fail(Status(Code::mismatch, why, static_cast<int>(hello.from)));
  };
  const std::string who = context_.describe(static_cast<int>(hello.from));
  if (hello.member == 0 || hello.member >= members_.size() || hello.members != members_.size() ||
      request_.members[hello.member] != static_cast<int>(hello.from)) {
    return refuse(who + " names other members for a shared segment");
  }
  if (hello.bytes != request_.bytes) {
    return refuse(who + " wants a shared segment of " + std::to_string(hello.bytes) + " bytes, where " +
                  describe(0) + " wants " + std::to_string(request_.bytes));
  }
  Member& member = members_[hello.member];
  if (member.link != nullptr || descriptors.size() != 1) return refuse(who + " broke the protocol");
  member.rope = context_.rope_of(static_cast<int>(hello.from), std::move(descriptors.front()));
  if (member.rope == nullptr) return refuse(who + " handed over a descriptor that is not a bell");
  member.link = std::move(link);
  member.link->set_events(*this);
  if (++present_ == members_.size()) make();
}

void SegmentLeader::make() {
  segment_ = std::make_unique<Segment>();
  Status made = segment_->create(segment_bytes(request_));
  if (made.ok()) made = provide_share(*segment_, 0, request_);
  if (!made.ok()) return fail(made.with_context("shm, at " + describe(0)));
  for (Member& member : members_) {
    if (getrandom(&member.proof, sizeof member.proof, 0) != sizeof member.proof) {
      return fail(Status(Code::internal, "shm: the system has no random numbers"));
    }
  }
  if (members_.size() == 1) return finish();
  offer();
}

// Sends the offer to all members that do not have it yet. The system limits how many descriptors of a user
// may be under way, so with many members this can take several rounds.
void SegmentLeader::offer() {
  std::vector<int> descriptors = {segment_->descriptor()};
  for (const Member& member : members_) descriptors.push_back(member.rope->descriptor());
  bool again = false;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (member.offered) continue;
    Note note;
    note.kind = NoteKind::offer;
    note.proof = member.proof;
    const int error = member.link->send(note, descriptors);
    if (error == EAGAIN || error == ETOOMANYREFS) {
      again = true;
    } else if (error != 0) {
      return on_broken(*member.link, error_text(error));
    } else {
      member.offered = true;
    }
  }
  context_.timers.set(
      *this, again ? earlier(request_.deadline, Deadline::after(pause_while_not_taken)) : request_.deadline);
}

std::size_t SegmentLeader::index_of(const Link& link) const {
  std::size_t i = 1;
  while (members_[i].link.get() != &link) ++i;
  return i;
}

void SegmentLeader::on_note(Link& link, const Note& note, std::vector<Descriptor>) {
  const std::size_t i = index_of(link);
  if (note.kind == NoteKind::refused) {
    const Status why = note.why.failure(request_.members[i]);
    return fail(why.with_context("shm, at " + describe(i)));
  }
  if (note.kind != NoteKind::mapped || !members_[i].offered || members_[i].mapped) {
    return fail(
        Status(Code::protocol_error, "shm: " + describe(i) + " broke the protocol", request_.members[i]));
  }
  members_[i].mapped = true;
  check(i);
}

void SegmentLeader::check(std::size_t member) {
  const std::atomic_ref<std::uint64_t> place(*proof_place(*segment_, member));
  if (place.load(std::memory_order_acquire) != members_[member].proof) {
    return fail(Status(Code::unsupported, "shm: " + describe(member) + " has mapped other memory",
                       request_.members[member]));
  }
  if (++mapped_ == members_.size()) finish();
}

void SegmentLeader::on_broken(Link& link, const std::string& why) {
  const std::size_t i = index_of(link);
  fail(Status(Code::peer_lost, describe(i) + ": " + why, request_.members[i]));
}

void SegmentLeader::on_timer() {
  if (request_.deadline.expired()) {
    fail(late());
  } else {
    offer();
  }
}

Status SegmentLeader::late() const {
  std::string who;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    if (segment_ != nullptr ? !members_[i].mapped : members_[i].link == nullptr) {
      who += (who.empty() ? "" : ", ") + describe(i);
    }
  }
  return Status(Code::timeout, "shm: not all members asked for a shared segment in time: missing " + who);
}

void SegmentLeader::finish() {
  Note note;
  note.kind = NoteKind::go;
  std::vector<SharedMemory::Member> members;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    // If the note cannot be sent, that member is dead, and the segment's owner will be notified soon.
    if (i > 0) members_[i].link->send_last(note);
    members.push_back({request_.members[i], std::move(members_[i].rope), std::move(members_[i].link)});
  }
  events_.on_shared(request_, std::move(segment_), std::move(members));
}

void SegmentLeader::fail(const Status& why) {
  Note note;
  note.key = request_.key;
  note.why.set(why);
  for (Member& member : members_) {
    if (member.link != nullptr) member.link->send_last(note);
  }
  events_.on_not_shared(request_, why);
}

}  // namespace tutti::shm
