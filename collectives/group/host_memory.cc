#include "collectives/group/host_memory.h"

#include <algorithm>
#include <new>
#include <string>

namespace tutti {

namespace {

// Everything in the segment is aligned to `unit`, a multiple of the system's page size. The padding costs
// nothing, since pages that are never touched take no memory.
constexpr std::uint64_t unit = 64 * 1024;

constexpr std::uint64_t whole_units(std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// --- the segment ---

std::uint64_t HostMemory::words_bytes(std::size_t members) { return whole_units(members * sizeof(Word)); }

void HostMemory::prepare(ShareRequest& request, std::vector<int> members, int rank, std::uint64_t first_bytes,
                         std::uint64_t room) {
  members_ = std::move(members);
  own_ = position_of(rank).value();
  lost_.assign(members_.size(), false);
  arenas_begin_ = words_bytes(members_.size()) + whole_units(first_bytes);
  arena_bytes_ = room / members_.size() / unit * unit;
  arena_ = Arena(arena_begin(own_), arena_bytes_);
  request.members = members_;
  request.bytes = arena_begin(members_.size());
  request.provided = arenas_begin_;
  request.events = this;
}

void HostMemory::open(std::unique_ptr<SharedSegment> segment) { segment_ = std::move(segment); }

std::optional<std::size_t> HostMemory::position_of(int world_rank) const {
  const auto at = std::ranges::lower_bound(members_, world_rank);
  if (at == members_.end() || *at != world_rank) return std::nullopt;
  return static_cast<std::size_t>(at - members_.begin());
}

bool HostMemory::is_shared_by(std::span<const int> ranks) const {
  return segment_ != nullptr &&
         std::ranges::all_of(ranks, [this](int rank) { return position_of(rank).has_value(); });
}

HostMemory::Word& HostMemory::word(std::size_t member) const {
  return std::launder(reinterpret_cast<Word*>(segment_->memory().data()))[member];
}

// --- the arena ---

std::int64_t HostMemory::room() {
  if (segment_ == nullptr) return -1;
  reclaim();
  return static_cast<std::int64_t>(arena_.largest());
}

std::uint64_t HostMemory::range_bytes(std::size_t members, std::uint64_t bytes) {
  return SharedRange::head_bytes(members) + whole_units(bytes);
}

std::optional<std::uint64_t> HostMemory::take(std::uint64_t range_bytes) {
  if (segment_ == nullptr) return std::nullopt;
  reclaim();
  const std::optional<std::uint64_t> place = arena_.take(range_bytes);
  if (place) handed_out_.emplace_back(*place, range_bytes);
  return place;
}

// Any member can write into the segment, and may have wrongly marked the range as free. In that case
// `reclaim` has already taken the range back.
void HostMemory::cancel(std::uint64_t place) {
  const auto handed = std::ranges::find(handed_out_, place, &std::pair<std::uint64_t, std::uint64_t>::first);
  if (handed == handed_out_.end()) return;
  arena_.give_back(place, handed->second);
  handed_out_.erase(handed);
}

// Takes back the ranges that all of their members have released.
void HostMemory::reclaim() {
  const std::uint64_t given_back = word(own_).given_back.load();
  if (given_back == reclaimed_) return;
  reclaimed_ = given_back;
  std::erase_if(handed_out_, [this](const auto& handed) {
    const auto [place, bytes] = handed;
    const std::span<std::byte> range = segment_->memory().subspan(place, bytes);
    if (SharedRange::head_of(range).reusable.load() == 0) return false;
    segment_->discard(range);  // frees the head; the last member has freed the rest
    arena_.give_back(place, bytes);
    return true;
  });
}

// --- the ranges ---

// Returns the `Word` of the rank that has handed out the range at `place`; null for the segment's first
// range. `place` comes from another rank, so it must be checked.
Result<HostMemory::Word*> HostMemory::giver_of(std::uint64_t place, std::uint64_t range_bytes) const {
  if (place == first_place() && range_bytes <= arenas_begin_ - place) return nullptr;
  if (place >= arenas_begin_ && place < arena_begin(members_.size()) && place % unit == 0) {
    const std::size_t giver = (place - arenas_begin_) / arena_bytes_;
    if (range_bytes <= arena_begin(giver + 1) - place) return &word(giver);
  }
  return Status(Code::protocol_error,
                "shared memory was handed out at the impossible place " + std::to_string(place));
}

Result<std::unique_ptr<SharedSegment>> HostMemory::join(std::uint64_t place, std::span<const int> ranks,
                                                        int own, std::uint64_t bytes,
                                                        SharedSegmentEvents& events) {
  if (!is_shared_by(ranks)) return Status(Code::protocol_error, "not all members share the host's memory");
  const std::uint64_t all = range_bytes(ranks.size(), bytes);
  const Result<Word*> giver = giver_of(place, all);
  if (!giver.ok()) return giver.status();
  std::vector<std::size_t> positions;
  for (const int rank : ranks) positions.push_back(*position_of(rank));
  return std::unique_ptr<SharedSegment>(
      std::make_unique<SharedRange>(*this, *giver, segment_->memory().subspan(place, all),
                                    std::move(positions), static_cast<std::size_t>(own), events));
}

bool HostMemory::is_lost(std::size_t member) const {
  return lost_[member] || desk_.is_lost(members_[member]);
}

void HostMemory::on_member_lost(int member, const Status& why) {
  const auto position = static_cast<std::size_t>(member);
  lost_[position] = true;
  for (SharedRange* const range : ranges_) range->on_lost(position, why);
}

SharedRange::SharedRange(HostMemory& host, HostMemory::Word* giver, std::span<std::byte> all,
                         std::vector<std::size_t> positions, std::size_t own, SharedSegmentEvents& events)
    : host_(host), giver_(giver), all_(all), positions_(std::move(positions)), own_(own), events_(events) {
  host_.ranges_.push_back(this);
}

// A member leaves the range by incrementing `left`, and does not touch it afterwards. Only the last
// member to leave touches the range once more: it frees the pages, so that the range can be handed
// out again.
//
// A lost member may be frozen rather than dead, and may write to the range again. So the last of
// the members that are not lost frees the range's pages, but does not leave. Then `left` never
// reaches the number of members, so the range is never handed out again. Several members may
// release the range at the same time. At least one of them then sees that all the others have
// released it, since the store and the loads are sequentially consistent.
SharedRange::~SharedRange() {
  std::erase(host_.ranges_, this);
  released(own_).store(1);
  bool last = true;
  bool any_lost = false;
  for (std::size_t member = 0; member < positions_.size(); ++member) {
    if (released(member).load() != 0) continue;
    const bool lost = host_.is_lost(positions_[member]);
    any_lost |= lost;
    last &= lost;
  }
  if (last && any_lost) {
    host_.segment_->discard(memory());
    return;
  }
  Head& head = head_of(all_);
  if (head.left.fetch_add(1) + 1 != positions_.size()) return;
  host_.segment_->discard(memory());
  if (giver_ == nullptr) return;
  head.reusable.store(1);
  giver_->given_back.fetch_add(1);
}

SharedRange::Head& SharedRange::head_of(std::span<std::byte> range) {
  return *std::launder(reinterpret_cast<Head*>(range.data()));
}

std::uint64_t SharedRange::head_bytes(std::size_t members) {
  return whole_units(sizeof(Head) + members * sizeof(std::atomic<std::uint32_t>));
}

std::atomic<std::uint32_t>& SharedRange::released(std::size_t member) const {
  return std::launder(reinterpret_cast<std::atomic<std::uint32_t>*>(all_.data() + sizeof(Head)))[member];
}

void SharedRange::on_lost(std::size_t position, const Status& why) {
  const auto member = std::ranges::find(positions_, position);
  if (member != positions_.end()) events_.on_member_lost(static_cast<int>(member - positions_.begin()), why);
}

}  // namespace tutti
