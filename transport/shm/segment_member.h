#pragma once

#include <memory>
#include <vector>

#include "transport/shm/link.h"
#include "transport/shm/segment_events.h"

namespace tutti::shm {

// A `SegmentMember` is a member's side of sharing a segment.
//
// It may give up at any time before it reports that it has mapped the segment. After that report the leader
// decides, so that either all members get the segment or none does. The member then gives up only if the
// leader dies, or is silent long after the deadline.
class SegmentMember final : public LinkEvents, public Timer {
 public:
  SegmentMember(Context& context, SegmentEvents& events, ShareRequest& request, std::size_t member);
  ~SegmentMember() override;

  const ShareRequest& request() const { return request_; }
  // `start` and every event may end the request. If so, this object has been destroyed when the function
  // returns.
  void start();
  // Tells the leader that this member gives up, and ends the request.
  void cancel(const Status& why);

  void on_open(Link& link) override;
  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;
  void on_timer() override;

 private:
  int leader() const { return request_.members.front(); }
  void connect();
  void ask(Descriptor socket);
  void take(const Note& offer, std::vector<Descriptor> descriptors);
  Status map(const Note& offer, std::vector<Descriptor>& descriptors);
  void finish();
  void fail(const Status& why);

  Context& context_;
  SegmentEvents& events_;
  ShareRequest& request_;
  const std::size_t member_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Segment> segment_;  // set once the segment is mapped
  std::vector<SharedRope> ropes_;
};

}  // namespace tutti::shm
