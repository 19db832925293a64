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

Status provide_share(Segment& segment, std::size_t member, std::size_t members) {
  const std::size_t pages = segment.memory().size() / page_bytes();
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
  if (note.kind == NoteKind::goodbye) {
    link.close();
  } else {
    link.close();
    on_broken(link, "it broke the protocol");
  }
}

void SharedMemory::on_broken(Link& link, const std::string& why) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].link.get() != &link) continue;
    const int rank = members_[i].rank;
    const Status lost(Code::peer_lost, context_->describe(rank) + ": " + why, rank);
    if (events_ != nullptr) events_->on_member_lost(static_cast<int>(i), lost);
    return;
  }
}

}  // namespace tutti::shm
