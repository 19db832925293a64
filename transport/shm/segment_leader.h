#pragma once

#include <memory>
#include <vector>

#include "transport/shm/link.h"
#include "transport/shm/segment_events.h"

namespace tutti::shm {

// A `SegmentLeader` is the leader's side of sharing a segment. It waits for all members, and hands
// the segment to each. It sends `go` to all members once they have proved that they have mapped the
// segment. If anything goes wrong before that, it tells all members.
class SegmentLeader final : public LinkEvents, public Timer {
 public:
  SegmentLeader(Context& context, SegmentEvents& events, ShareRequest& request);
  ~SegmentLeader() override;

  std::uint64_t key() const { return request_.key; }
  const ShareRequest& request() const { return request_; }
  // `start`, `add`, `fail` and every event may end the request. If so, this object has been destroyed when
  // the function returns.
  void start();
  void add(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link);
  // Tells all members that have asked so far that the request has failed, and ends the request.
  void fail(const Status& why);

  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;
  void on_timer() override;

 private:
  struct Member {
    SharedRope rope;
    std::unique_ptr<Link> link;
    std::uint64_t proof = 0;
    bool offered = false;
    bool mapped = false;
  };

  std::size_t index_of(const Link& link) const;
  std::string describe(std::size_t member) const { return context_.describe(request_.members[member]); }
  void make();
  void offer();
  void check(std::size_t member);
  void finish();
  Status late() const;

  Context& context_;
  SegmentEvents& events_;
  ShareRequest& request_;
  std::vector<Member> members_;
  std::size_t present_ = 1;  // members that have asked, and the leader itself
  std::size_t mapped_ = 1;
  std::unique_ptr<Segment> segment_;  // made once all members are present
};

}  // namespace tutti::shm
