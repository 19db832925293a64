#include "collectives/group/survivors.h"

#include <algorithm>
#include <string>

namespace tutti {

Survivors::Survivors(std::uint32_t context, const Members& members, World& world, Failure& failure,
                     const Journal& journal, LiveOperations& live, Gate& gate)
    : context_(context),
      members_(members),
      world_(world),
      driver_(world.engine->driver),
      failure_(failure),
      journal_(journal),
      live_(live),
      gate_(gate) {}

ShrinkNote Survivors::agree(int min_size) {
  check(min_size);
  gate_.settle();
  gate_.abort(Status(Code::aborted, members_.describe_this_rank() + " shrinks the communicator",
                     members_.own_world_rank()));
  const std::unique_ptr<Shrinking> shrinking = begin(min_size);
  live_.await_ending();  // the caller may use the operations' memory after this call
  const bool over = driver_.wait(shrinking->done(), Deadline::never());
  const DriverGuard guard(driver_);
  end(*shrinking);
  if (!over) throw Error(driver_.status());
  if (!shrinking->status().ok()) throw Error(shrinking->status().with_context(members_.describe_this_rank()));
  leave_behind(shrinking->decision());
  return shrinking->decision();
}

void Survivors::check(int min_size) const {
  if (min_size < 0 || min_size > members_.size()) {
    throw Error(Status(Code::invalid_argument, "shrink: min_size " + std::to_string(min_size) + " of " +
                                                   std::to_string(members_.size()) + " ranks"));
  }
  if (driver_.forked()) throw Error(forked_child());
  if (driver_.driven_by_this_thread())
    throw Error(Status(Code::invalid_argument, "shrink inside a `then` callback"));
}

std::unique_ptr<Shrinking> Survivors::begin(int min_size) {
  Shrinking::Options options;
  options.needed = static_cast<std::uint32_t>(min_size > 0 ? min_size : members_.size() / 2 + 1);
  options.deadline = Deadline::after(world_.default_timeout);
  const DriverGuard guard(driver_);
  ControlDesk& desk = world_.desk;
  if (!desk.listens() && members_.size() > 1) {
    throw Error(desk.is_fenced() ? failure_.status()
                                 : Status(Code::unsupported, "shrink needs control connections"));
  }
  if (under_way_ != nullptr)
    throw Error(Status(Code::invalid_argument, "shrink is under way in another thread"));
  failure_.act();
  options.attempt = ++attempts_;
  options.numbers = numbers_;
  options.completed = journal_.completed();
  options.generation = desk.generation();
  auto shrinking = std::make_unique<Shrinking>(context_, members_, failure_, world_, options);
  under_way_ = shrinking.get();
  driver_.add(*shrinking);
  shrinking->work();
  return shrinking;
}

void Survivors::end(Shrinking& shrinking) TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // the caller drives
  driver_.remove(shrinking);
  under_way_ = nullptr;
  attempts_ = shrinking.attempt();
  numbers_ = shrinking.numbers();
}

// Gives up the members that did not survive and did not leave by themselves, so that they cannot come back.
void Survivors::leave_behind(const ShrinkNote& decision) {
  for (int rank = 0; rank < members_.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (decision.members[at] || decision.spared[at]) continue;
    const int world_rank = members_.world_rank(rank);
    world_.desk.give_up(world_rank,
                        Status(Code::peer_lost, members_.describe(rank) + " was left behind", world_rank));
  }
  world_.desk.set_generation(std::max(world_.desk.generation(), decision.generation));
}

void Survivors::on_note(int origin, const ShrinkNote& note) {
  if (under_way_ != nullptr) under_way_->on_note(members_.rank_of(origin), note);
}

void Survivors::on_loss() {
  if (under_way_ != nullptr) under_way_->work();
}

}  // namespace tutti
