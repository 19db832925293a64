#include "collectives/group/group.h"

// How a group's survivors go on; the agreement itself is in shrinking.h.
namespace tutti {

bool Group::reaches(int rank) const {
  const int world_rank = members_.world_rank(rank);
  return !world_->desk.is_lost(world_rank) && mesh_.peer_status(world_rank).ok();
}

ShrinkNote Group::agree_to_shrink(int min_size) {
  if (min_size < 0 || min_size > size()) {
    throw Error(Status(Code::invalid_argument, "shrink: min_size " + std::to_string(min_size) + " of " +
                                                   std::to_string(size()) + " ranks"));
  }
  if (driver_.forked()) throw Error(forked_child());
  if (driver_.driven_by_this_thread())
    throw Error(Status(Code::invalid_argument, "shrink inside a `then` callback"));
  gate_.settle();
  abort(Status(Code::aborted, members_.describe_this_rank() + " shrinks the communicator", mesh_.rank()));
  Shrinking::Options options;
  options.needed = static_cast<std::uint32_t>(min_size > 0 ? min_size : size() / 2 + 1);
  options.deadline = Deadline::after(world_->default_timeout);
  std::unique_ptr<Shrinking> shrinking;
  {
    const DriverGuard guard(driver_);
    if (!world_->desk.listens() && size() > 1) {
      throw Error(world_->desk.is_fenced() ? status()
                                           : Status(Code::unsupported, "shrink needs control connections"));
    }
    if (shrinking_ != nullptr)
      throw Error(Status(Code::invalid_argument, "shrink is under way in another thread"));
    failure_.act();
    options.attempt = ++shrink_attempts_;
    options.completed = journal_.completed();
    options.generation = world_->desk.generation();
    shrinking = std::make_unique<Shrinking>(*this, world_->desk, world_->contexts, options);
    shrinking_ = shrinking.get();
    driver_.add(*shrinking);
    shrinking->work();
  }
  const bool over = driver_.wait(shrinking->done(), Deadline::never());
  const DriverGuard guard(driver_);
  driver_.remove(*shrinking);
  shrinking_ = nullptr;
  shrink_attempts_ = shrinking->attempt();
  if (!over) throw Error(driver_.status());
  if (!shrinking->status().ok()) throw Error(shrinking->status().with_context(members_.describe_this_rank()));
  const ShrinkNote decision = shrinking->decision();
  // Who is not among them must not come back.
  for (std::size_t i = 0; i < members_.world_ranks().size(); ++i) {
    const int world_rank = members_.world_ranks()[i];
    if (decision.members[i] || decision.spared[i]) continue;
    world_->desk.give_up(
        world_rank, Status(Code::peer_lost, describe(static_cast<int>(i)) + " was left behind", world_rank));
  }
  world_->desk.set_generation(std::max(world_->desk.generation(), decision.generation));
  return decision;
}

}  // namespace tutti
