#include "collectives/group/group.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "collectives/schedule/algorithm.h"

namespace tutti {

Group::Group(std::shared_ptr<World> world, std::uint32_t context, std::vector<int> ranks)
    : ActiveGroups::Member(world->active),
      world_(std::move(world)),
      driver_(world_->engine->driver),
      context_(context),
      members_(*world_->mesh, world_->topology, std::move(ranks)),
      failure_(members_.own_world_rank(), members_.describe_this_rank(), *this),
      journal_(context, world_->engine->trace.get()),
      live_(world_->engine, members_, journal_, world_->default_timeout, *this),
      sharing_(context, members_, *world_->mesh, world_->desk, failure_, *this, *this),
      shared_(members_, failure_),
      gate_(driver_, world_->active, failure_, journal_, live_, shared_),
      arbitration_(context, members_, world_->desk, failure_, journal_, shared_),
      offloading_(members_, *world_,
                  [this](Deadline deadline) { return world_->found_host_calls(*this, deadline); }),
      parts_{context, world_->part_of, members_, *world_->mesh, failure_, journal_, live_, shared_, gate_},
      collectives_(parts_, world_->selector, sharing_.allocations(), arbitration_, offloading_),
      point_to_point_(parts_, world_->copiers),
      watchdog_(context, members_, world_->desk, failure_, journal_, live_),
      survivors_(context, members_, *world_, failure_, journal_, live_, gate_) {
  const DriverGuard guard(driver_);
  world_->active.add(*this);
  world_->desk.add(*this);
  world_->mesh->attach(context_, *this);
  world_->recorder->add(*this);
}

Group::~Group() {
  gate_.settle();
  fail_at_the_end();
  live_.await_ending();
  offloading_.close();
  const DriverGuard guard(driver_);
  world_->recorder->remove(*this);
  world_->mesh->detach(context_);
  world_->desk.remove(*this);
  world_->active.remove(*this);
  shared_.close();
  sharing_.clear();
}

// Gives up the operations in flight. If this rank leaves unexpectedly, tells the other members so.
void Group::fail_at_the_end() {
  const DriverGuard guard(driver_);
  arbitration_.settle_now();
  if (!live_.empty()) {
    failure_.note(
        Status(Code::aborted,
               members_.describe_this_rank() + " destroyed the communicator with operations in flight",
               members_.own_world_rank()));
  } else if (std::uncaught_exceptions() > 0) {
    // The other ranks may be waiting for this rank. The failure tells them why this rank leaves.
    failure_.note(Status(Code::aborted,
                         members_.describe_this_rank() + " left the communicator because of an exception",
                         members_.own_world_rank()));
  }
  failure_.act();
}

std::string Group::describe(const Fingerprint& call) const { return tutti::describe(call); }

void Group::spread_failure(const Status& why, bool known) {
  watchdog_.drop();
  arbitration_.drop();
  sharing_.cancel(why);
  world_->mesh->abort(context_, members_.world_ranks(), why);
  if (!known) world_->desk.tell_failure(context_, why);
  shared_.fail(why);
  offloading_.abort(why);
  world_->recorder->on_failure(*this, why);
}

void Group::end_operations(const Status& why) { live_.cancel_all(why); }

bool Group::poll() {
  failure_.confirm_suspicion();
  if (failure_.happened()) {
    const bool work = !live_.empty() || !failure_.is_spread();
    failure_.act();
    return work;
  }
  bool did = false;
  if (SharedExecutor* const executor = shared_.executor()) {
    shared_.listen();
    did = executor->advance();
    if (const Status agreed = executor->compare(); !agreed.ok())
      arbitration_.on_mismatch_on_board(nullptr, agreed);
    failure_.act();
  }
  watchdog_.conclude();
  arbitration_.poll();
  failure_.act();
  if (!arbitration_.is_open()) watchdog_.look();
  return did;
}

// In a pass of the driver, epoll's events are delivered after this communicator was polled, and may note a
// failure. In that case another pass must act on the failure.
bool Group::prepare_sleep() {
  const bool work = shared_.prepare_sleep();
  return work || (failure_.happened() && !failure_.is_spread());
}

// A communicator that rests does not read the board. So it rests only after it has compared the calls there.
// It still learns of failures, since a rank that notices a failure also reports it over the control plane.
// The report stirs the communicator, as all other events do.
bool Group::rest() {
  const std::uint64_t before = std::exchange(issued_, journal_.operations_issued());
  if (issued_ != before || !live_.empty() || failure_.suspects()) return false;
  if (failure_.happened()) return failure_.is_spread();
  if (arbitration_.is_open() || watchdog_.inquires() || sharing_.is_waiting()) return false;
  const SharedExecutor* const executor = shared_.executor();
  if (executor != nullptr && !executor->is_idle()) return false;
  collectives_.forget_habits();
  return true;
}

std::vector<Group::Waiting> Group::waiting() const {
  std::vector<Waiting> found;
  for (const Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    const History::Time since = History::time_of(operation->issued.load(std::memory_order_relaxed));
    found.push_back(
        {operation->kind == Operation::Kind::transfers, operation->sequence, since, operation->awaited()});
  }
  return found;
}

void Group::on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs, const Status& why) {
  stir();
  arbitration_.on_mismatch(peer, sequence, theirs, why);
}

void Group::on_abort(int peer, const Status& why) {
  if (members_.contains(peer)) fail(why);
}

void Group::on_loss() {
  stir();
  survivors_.on_loss();
}

void Group::on_leave() {
  stir();
  watchdog_.look_for_leavers();
}

void Group::fail(const Status& why) {
  stir();
  failure_.note_known(why);
}

void Group::on_peer_down(int peer, const Status& why) {
  // A clean goodbye matters only to operations that still need that peer, and the mesh fails those.
  if (!members_.contains(peer) || why.code() == Code::aborted) return;
  stir();
  failure_.suspect(shared_.first_cause(why));
}

Deadline Group::next_deadline() const {
  return earlier(failure_.next_deadline(), earlier(watchdog_.next_deadline(), arbitration_.next_deadline()));
}

void Group::on_note(const ControlNote& note) {
  if (!members_.contains(note.origin)) return;
  stir();
  if (note.topic == topic_shrink) {
    if (const auto said = decode_shrink(note.body)) survivors_.on_note(note.origin, *said);
  }
  if (failure_.happened()) return;
  if (note.topic == topic_unused) return sharing_.drop_unused();
  if (note.topic == topic_here) {
    if (const auto answer = decode_here(note.body)) watchdog_.on_here(note.origin, *answer);
  } else if (note.topic == topic_expired) {
    if (const auto expired = decode_expired(note.body)) watchdog_.on_expired(note.origin, *expired);
  } else if (const auto call = decode_call(note.body)) {
    on_call_note(note, *call);
  }
}

void Group::on_call_note(const ControlNote& note, const CallNote& call) {
  switch (note.topic) {
    case topic_where:
      return watchdog_.on_where(note.origin, call);
    case topic_blocked:
      return arbitration_.on_blocked(note.origin, call);
    case topic_differs:
      return arbitration_.on_question(note.origin, call);
    case topic_called:
      return arbitration_.on_answer(note.origin, call);
    default:
      break;
  }
}

void Group::on_member_lost(int, const Status& why) {
  stir();
  failure_.suspect(shared_.first_cause(why));
}

// The memory has room for the ranges of communicators (docs/seams/communicators.md). If all ranks of the
// first communicator are on this host, the memory also holds the range of that communicator. The room has
// `shared_room` bytes, or fewer if fewer are enough for 1024 communicators of all ranks of this host.
void Group::open_host_memory(Deadline deadline) {
  constexpr std::uint64_t most_communicators = 1024;
  std::vector<int> here;
  for (const int rank : ranks()) {
    if (world_->mesh->can_share({&rank, 1})) here.push_back(rank);
  }
  if (here.size() < 2) return;
  const bool all = here.size() == ranks().size();
  const std::uint64_t first = all ? world_->range_bytes(here.size()) : 0;
  const std::uint64_t room =
      std::min(world_->shared_room, most_communicators * world_->range_bytes(here.size()));
  sharing_.open(world_->host_memory, std::move(here), first, room, deadline);
  if (all && world_->host_memory.is_shared_by(ranks())) use_range(world_->host_memory.first_place());
}

void Group::use_range(std::uint64_t place) {
  const std::uint64_t window_bytes = world_->board_window();
  const std::uint64_t bytes = Board::segment_bytes(size(), window_bytes);
  const DriverGuard guard(driver_);
  auto range = world_->host_memory.join(place, ranks(), rank(), bytes, *this).take();
  auto board = std::make_unique<Board>(std::move(range), rank(), size(), window_bytes);
  shared_.open(std::make_unique<SharedExecutor>(std::move(board), *world_->mesh, ranks(),
                                                sharing_.allocations(), world_->patient),
               window_bytes);
}

std::shared_ptr<GroupMemory> Group::allocate(const std::vector<std::uint64_t>& parts) {
  return sharing_.allocate(parts, shared_.window_bytes() != 0, Deadline::after(world_->default_timeout));
}

Result<std::vector<std::unique_ptr<RegisteredMemory>>> Group::add_memory(std::span<std::byte> region) {
  auto parts = world_->mesh->add_memory(region);
  for (const std::unique_ptr<Offload>& offload : world_->offloads) {
    if (!parts.ok()) return parts;
    Result<std::unique_ptr<RegisteredMemory>> added = offload->add_memory(region);
    if (!added.ok()) return added.status();
    if (*added != nullptr) parts->push_back(std::move(added).take());
  }
  return parts;
}

}  // namespace tutti
