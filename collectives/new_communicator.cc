#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tutti/communicator.h>
#include <tutti/log.h>

#include "collectives/group/group.h"
#include "collectives/group/splitting.h"
#include "collectives/group/world.h"

// This file makes communicators, for `init`, `split` and `shrink`.
namespace tutti {

namespace {

// The last handle of a group may be destroyed inside a `then` callback, on the driving thread. Tearing down
// needs the baton and waits for goodbyes. So in that case a separate thread tears down, once the driving
// thread has left the callback.
//
// In a forked child nothing is torn down. Threads that do not exist there may have been changing the state,
// and the parent says goodbye.
void retire(Group* group) {
  const Driver& driver = group->world().engine->driver;
  if (driver.forked()) {
    static auto* const left_alone = new std::vector<Group*>;  // leak checkers find the groups here
    left_alone->push_back(group);
  } else if (driver.driven_by_this_thread()) {
    std::thread([group] { delete group; }).detach();
  } else {
    delete group;
  }
}

// If `shares` is true, the ranks try to share memory. It is equal on all ranks.
std::shared_ptr<Group> make_group(const std::shared_ptr<World>& world, std::uint32_t context,
                                  std::vector<int> ranks, bool shares = true) {
  std::shared_ptr<Group> group(new Group(world, context, std::move(ranks)), retire);
  if (shares) group->share_windows(world->window_bytes, Deadline::after(world->sharing_limit));
  return group;
}

void say_once_why_not_shared(const std::string& in_want) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  log::warn("file descriptors are short at ", in_want,
            " (RLIMIT_NOFILE, ulimit -n): new communicators exchange messages instead of sharing memory");
}

}  // namespace

Communicator create_communicator(const std::shared_ptr<World>& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world->mesh->size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  // This is the first number of this process, and so equal on all ranks.
  const std::uint32_t context = world->contexts.propose();
  world->contexts.take(context);
  return Communicator(make_group(world, context, std::move(ranks)));
}

std::optional<Communicator> Communicator::split(int color, int key) {
  Splitting splitting(group(), color, key);
  const std::uint32_t number = splitting.agree_on_number();
  if (color == no_color) return std::nullopt;
  World& world = group().world();
  const std::optional<int> in_want = splitting.first_in_want();
  if (in_want && world.window_bytes != 0 && world.mesh->can_share(splitting.ranks()))
    say_once_why_not_shared(describe(*in_want));
  return Communicator(make_group(group().shared_world(), number, splitting.ranks(), !in_want));
}

Shrunk Communicator::shrink(int min_size) {
  const ShrinkNote decision = group().agree_to_shrink(min_size);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < decision.members.size(); ++i) {
    if (decision.members[i]) ranks.push_back(group().ranks()[i]);
  }
  return {Communicator(make_group(group().shared_world(), decision.number, std::move(ranks))),
          decision.completed};
}

}  // namespace tutti
