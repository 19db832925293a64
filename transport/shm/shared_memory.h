#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/shared_segment.h"
#include "transport/shm/link.h"
#include "transport/shm/segment.h"

namespace tutti::shm {

// `SharedMemory` is a segment that all members have. The links to the others stay open as long as it lives
// (the leader's to each, a member's to the leader): the end of one without a goodbye is a death.
class SharedMemory final : public SharedSegment, public LinkEvents {
 public:
  struct Member {
    int rank = -1;
    SharedRope rope;
    std::unique_ptr<Link> link;  // null where there is none
  };

  // It stands in `attached`, a list of its transport's, until it is detached.
  SharedMemory(Context& context, std::vector<SharedMemory*>& attached, const ShareRequest& request,
               std::unique_ptr<Segment> segment, std::vector<Member> members);
  ~SharedMemory() override;

  // The transport calls this when it stops. The memory stays, but no peer is told of anything any more.
  void detach();

  std::span<std::byte> memory() const override;
  void ring(int member) override { members_[static_cast<std::size_t>(member)].rope->ring(); }

  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;

 private:
  Context* context_;
  std::vector<SharedMemory*>* attached_;  // null once detached
  std::unique_ptr<Segment> segment_;
  std::vector<Member> members_;
  const std::size_t bytes_;
  SharedSegmentEvents* events_;
};

// The size of a segment: in front a proof for each member, behind them the memory that the members share.
std::size_t front_bytes(std::size_t members);
std::size_t segment_bytes(const ShareRequest& request);
// The place where member `member` proves that it has mapped the segment.
std::uint64_t* proof_place(const Segment& segment, std::size_t member);
// Allocates the pages that this member has to provide. Together the members provide all of them.
Status provide_share(Segment& segment, std::size_t member, std::size_t members);

}  // namespace tutti::shm
