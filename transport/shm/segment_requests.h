#pragma once

#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "transport/shm/link.h"
#include "transport/shm/segment_events.h"

namespace tutti::shm {

class SegmentLeader;
class SegmentMember;

// `SegmentRequests` holds all requests for shared segments, and the segments that exist. If this rank is the
// leader of a segment, members may ask for it before this rank makes its own request. Their notes are kept
// until then.
class SegmentRequests final : public LinkEvents, public SegmentEvents {
 public:
  explicit SegmentRequests(Context& context);
  ~SegmentRequests() override;

  void share(ShareRequest& request);
  // Cancels a request, unless it has ended.
  void cancel(ShareRequest& request, const Status& why);
  // Handles a member's request for a segment of which this rank is the leader. The note's ranks and nonces
  // have been checked.
  void on_hello(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link);
  // Drops all requests without calling their `done`, and detaches the segments.
  void stop();

  void on_shared(ShareRequest& request, std::unique_ptr<Segment> segment,
                 std::vector<SharedMemory::Member> members) override;
  void on_not_shared(ShareRequest& request, const Status& why) override;

  // These are the functions of LinkEvents, for members that have asked early.
  void on_note(Link& link, const Note& note, std::vector<Descriptor> descriptors) override;
  void on_broken(Link& link, const std::string& why) override;

 private:
  struct Early {
    Note hello;
    std::vector<Descriptor> descriptors;
    std::unique_ptr<Link> link;
  };
  // At most this many early requests of one peer are kept. That is enough, since a peer asks once per
  // segment, and groups are made one after another.
  static constexpr int max_early_per_peer = 64;
  static constexpr std::size_t max_refusals = 64;

  void drop_early(Link& link);
  void remember_refusal(const ShareRequest& request, const Status& why);
  void remove(const ShareRequest& request);
  SegmentLeader* find(std::uint64_t key);

  Context& context_;
  std::list<Early> early_;
  std::deque<Note> refusals_;  // for segments that failed, newest last
  std::vector<std::unique_ptr<SegmentLeader>> leaders_;
  std::vector<std::unique_ptr<SegmentMember>> members_;
  std::vector<SharedMemory*> memories_;  // the shared segments that exist
};

}  // namespace tutti::shm
