#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/shared_segment.h"
#include "transport/shm/link.h"
#include "transport/shm/segment.h"

namespace tutti::shm {

// `SharedMemory` is a segment that all members have mapped. Its links stay open until `detach`: the leader
// has one to each member, and each member has one to the leader. A link that ends without a goodbye means
// that the rank at its other end has died. If a member dies, the leader tells the remaining members.
class SharedMemory final : public SharedSegment, public LinkEvents {
 public:
  struct Member {
    int rank = -1;
    SharedRope rope;
    std::unique_ptr<Link> link;  // null if there is none
  };

  // `attached` is the list of the transport's segments. The object is in it until `detach`.
  SharedMemory(Context& context, std::vector<SharedMemory*>& attached, const ShareRequest& request,
               std::unique_ptr<Segment> segment, std::vector<Member> members);
  ~SharedMemory() override;

  // Ends all notifications; the memory stays. The transport calls this function when the transport stops.
  void detach();

  std::span<std::byte> memory() const override;
  const SharedBell& bell(int member) const override {
    return *members_[static_cast<std::size_t>(member)].rope;
  }
  void discard(std::span<std::byte> part) override { segment_->discard(part); }

  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;

 private:
  void lose(std::size_t member, const std::string& why);

  Context* context_;
  std::vector<SharedMemory*>* attached_;  // null after `detach`
  std::unique_ptr<Segment> segment_;
  std::vector<Member> members_;
  const std::size_t bytes_;
  SharedSegmentEvents* events_;
};

// `front_bytes` returns the size of a segment's first part, which holds a proof for each member.
// `segment_bytes` returns the size of the whole segment. The memory that the members share follows the first
// part.
std::size_t front_bytes(std::size_t members);
std::size_t segment_bytes(const ShareRequest& request);
// Returns the word into which `member` writes the proof that it has mapped the segment.
std::uint64_t* proof_place(const Segment& segment, std::size_t member);
// Allocates the pages that `member` must provide. Together, the members provide all pages of the first part
// and of the first `request.provided` bytes of the memory that they share.
Status provide_share(Segment& segment, std::size_t member, const ShareRequest& request);

}  // namespace tutti::shm
