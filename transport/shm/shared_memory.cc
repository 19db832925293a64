#include "transport/shm/shared_memory.h"

#include <algorithm>

namespace tutti::shm {

std::size_t front_bytes(std::size_t members) { return round_up_to_pages(members * sizeof(std::uint64_t)); }

std::size_t segment_bytes(const ShareRequest& request) {
  return front_bytes(request.members.size()) + round_up_to_pages(request.bytes);
}

std::uint64_t* proof_place(const Segment& segment, std::size_t member) {
  return reinterpret_cast<std::uint64_t*>(segment.memory().data()) + member;
}

Status provide_share(Segment& segment, std::size_t member, const ShareRequest& request) {
  const std::size_t members = request.members.size();
  const std::size_t provided = std::min(request.provided, request.bytes);
  const std::size_t pages = (front_bytes(members) + round_up_to_pages(provided)) / page_bytes();
  const std::size_t first = pages * member / members, end = pages * (member + 1) / members;
  return segment.provide(first * page_bytes(), (end - first) * page_bytes());
}

SharedMemory::SharedMemory(Context& context, std::vector<SharedMemory*>& attached,
                           const ShareRequest& request, std::unique_ptr<Segment> segment,
                           std::vector<Member> members)
    : context_(&context),
      attached_(&attached),
      segment_(std::move(segment)),
      members_(std::move(members)),
      bytes_(request.bytes),
      events_(request.events) {
  segment_->close_descriptor();
  for (Member& member : members_) {
    if (member.link != nullptr) member.link->set_events(*this);
  }
  attached_->push_back(this);
}

SharedMemory::~SharedMemory() { detach(); }

void SharedMemory::detach() {
  if (attached_ == nullptr) return;
  Note note;
  note.kind = NoteKind::goodbye;
  for (Member& member : members_) {
    if (member.link != nullptr) member.link->send_last(note);
    member.link.reset();
  }
  std::erase(*attached_, this);
  attached_ = nullptr;
}

std::span<std::byte> SharedMemory::memory() const {
  return segment_->memory().subspan(front_bytes(members_.size()), bytes_);
}

void SharedMemory::on_note(Link& link, const Note& note, std::vector<Descriptor>) {
  const bool from_leader = members_.front().link.get() == &link;
  if (note.kind == NoteKind::goodbye) {
    link.close();
  } else if (note.kind == NoteKind::lost && from_leader && note.member < members_.size()) {
    lose(note.member, note.why.failure(-1).message());
  } else {
    link.close();
    on_broken(link, "it broke the protocol");
  }
}

void SharedMemory::on_broken(Link& link, const std::string& why) {
  const auto lost =
      std::ranges::find_if(members_, [&](const Member& member) { return member.link.get() == &link; });
  if (lost == members_.end()) return;
  const auto member = static_cast<std::size_t>(lost - members_.begin());
  Note note;
  note.kind = NoteKind::lost;
  note.member = static_cast<std::uint32_t>(member);
  note.why.set(Status(Code::peer_lost, why));
  // Only the leader has links besides `link`, and tells the remaining members over those. If the note cannot
  // be sent to a member, that member still learns of the loss through the control plane.
  for (const Member& other : members_) {
    if (other.link != nullptr && other.link.get() != &link) other.link->send_last(note);
  }
  lose(member, why);
}

void SharedMemory::lose(std::size_t member, const std::string& why) {
  const int rank = members_[member].rank;
  const Status lost(Code::peer_lost, context_->describe(rank) + ": " + why, rank);
  if (events_ != nullptr) events_->on_member_lost(static_cast<int>(member), lost);
}

}  // namespace tutti::shm
