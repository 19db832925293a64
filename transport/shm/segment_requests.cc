#include "transport/shm/segment_requests.h"

#include <algorithm>

#include <tutti/log.h>

#include "transport/shm/segment_leader.h"
#include "transport/shm/segment_member.h"

namespace tutti::shm {
namespace {

// The memfd and the bells of all members travel in one packet.
constexpr std::size_t max_members = max_descriptors - 1;

}  // namespace

SegmentRequests::SegmentRequests(Context& context) : context_(context) {}

SegmentRequests::~SegmentRequests() { stop(); }

void SegmentRequests::share(ShareRequest& request) {
  const auto own = std::find(request.members.begin(), request.members.end(), context_.owner->rank());
  if (own == request.members.end() || request.members.size() > max_members || request.bytes == 0) {
    const bool stranger = own == request.members.end();
    const std::string why = stranger             ? "this rank is not among the members of the segment"
                            : request.bytes == 0 ? "an empty segment"
                                                 : "more than " + std::to_string(max_members) + " members";
    request.done(request, Status(stranger || request.bytes == 0 ? Code::invalid_argument : Code::unsupported,
                                 "shm: " + why));
    return;
  }
  if (own != request.members.begin()) {
    members_.push_back(std::make_unique<SegmentMember>(
        context_, *this, request, static_cast<std::size_t>(own - request.members.begin())));
    members_.back()->start();
    return;
  }
  leaders_.push_back(std::make_unique<SegmentLeader>(context_, *this, request));
  const std::uint64_t key = request.key;
  leaders_.back()->start();
  for (auto next = early_.begin(); next != early_.end();) {
    const auto early = next++;
    if (early->hello.key != key) continue;
    Early taken = std::move(*early);
    early_.erase(early);
    // Each note may end the request and destroy its leader. So the leader is looked up again each time.
    if (SegmentLeader* leader = find(key)) {
      leader->add(taken.hello, std::move(taken.descriptors), std::move(taken.link));
    }
  }
}

void SegmentRequests::cancel(ShareRequest& request, const Status& why) {
  const auto asked_by = [&](const auto& wish) { return &wish->request() == &request; };
  if (const auto found = std::ranges::find_if(leaders_, asked_by); found != leaders_.end()) {
    (*found)->fail(why);
  } else if (const auto joins = std::ranges::find_if(members_, asked_by); joins != members_.end()) {
    (*joins)->cancel(why);
  }
}

SegmentLeader* SegmentRequests::find(std::uint64_t key) {
  for (const auto& leader : leaders_) {
    if (leader->key() == key) return leader.get();
  }
  return nullptr;
}

void SegmentRequests::on_hello(const Note& hello, std::vector<Descriptor> descriptors,
                               std::unique_ptr<Link> link) {
  if (SegmentLeader* leader = find(hello.key)) {
    leader->add(hello, std::move(descriptors), std::move(link));
    return;
  }
  for (const Note& refusal : refusals_) {
    if (refusal.key == hello.key) return link->send_last(refusal);
  }
  const auto waiting = std::count_if(early_.begin(), early_.end(),
                                     [&](const Early& early) { return early.hello.from == hello.from; });
  if (waiting >= max_early_per_peer) {
    log::debug("shm: too many requests for segments by ", context_.describe(static_cast<int>(hello.from)));
    return;
  }
  link->set_events(*this);
  early_.push_back({hello, std::move(descriptors), std::move(link)});
}

void SegmentRequests::on_note(Link& link, const Note&, std::vector<Descriptor>) { drop_early(link); }

void SegmentRequests::on_broken(Link& link, const std::string&) { drop_early(link); }

void SegmentRequests::drop_early(Link& link) {
  early_.remove_if([&](const Early& early) { return early.link.get() == &link; });
}

void SegmentRequests::on_shared(ShareRequest& request, std::unique_ptr<Segment> segment,
                                std::vector<SharedMemory::Member> members) {
  auto memory =
      std::make_unique<SharedMemory>(context_, memories_, request, std::move(segment), std::move(members));
  remove(request);
  request.done(request, std::unique_ptr<SharedSegment>(std::move(memory)));
}

void SegmentRequests::on_not_shared(ShareRequest& request, const Status& why) {
  if (request.members.front() == context_.owner->rank()) remember_refusal(request, why);
  remove(request);
  request.done(request, why);
}

// Keeps the refusal, so that members that ask later get the same answer.
void SegmentRequests::remember_refusal(const ShareRequest& request, const Status& why) {
  Note refusal;
  refusal.key = request.key;
  refusal.why.set(why);
  refusals_.push_back(refusal);
  if (refusals_.size() > max_refusals) refusals_.pop_front();
}

void SegmentRequests::remove(const ShareRequest& request) {
  const auto asked_by = [&](const auto& wish) { return &wish->request() == &request; };
  std::erase_if(leaders_, asked_by);
  std::erase_if(members_, asked_by);
}

void SegmentRequests::stop() {
  leaders_.clear();
  members_.clear();
  early_.clear();
  while (!memories_.empty()) memories_.back()->detach();
}

}  // namespace tutti::shm
