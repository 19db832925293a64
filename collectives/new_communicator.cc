#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/founding.h"
#include "collectives/group/group.h"
#include "collectives/group/retire.h"
#include "collectives/group/roll_call.h"
#include "collectives/group/world.h"

// This file makes communicators, for `init`, `split`, `group` and `shrink`.
namespace tutti {

namespace {

// If the ranks share memory, `place` is where their range of that memory lies.
std::shared_ptr<Group> make_group(const std::shared_ptr<World>& world, std::uint32_t context,
                                  std::vector<int> ranks, std::optional<std::uint64_t> place = {}) {
  const auto destroy = [](Group* made) { retire(made->world().engine->driver, made); };
  std::shared_ptr<Group> group(new Group(world, context, std::move(ranks)), destroy);
  if (place) group->use_range(*place);
  return group;
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Exchanges votes among all ranks of a communicator.
void exchange_by_collective(Group& group, Composite part_of, const CallOptions& options, const Vote& mine,
                            std::span<Vote> votes) {
  group
      .collective({.kind = CollectiveKind::all_gather,
                   .part_of = part_of,
                   .in = ConstBuffer(&mine, vote_words, DataType::int64),
                   .out = Buffer(votes.data(), votes.size() * vote_words, DataType::int64)},
                  options)
      .wait();
}

// `PrivateCalls` issues collectives on a communicator that the program does not see. All of them are marked
// as tutti's own, so they are never offloaded to a library such as NCCL.
class PrivateCalls final : public HostCalls {
 public:
  explicit PrivateCalls(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  void issue(const Call& call, std::function<void(const Status&)> done) override {
    Call own = call;
    own.part_of = Composite::offload;
    Work work = group_->collective(own, {.timeout = Deadline::never().remaining()});
    work.then([group = group_.get(), done = std::move(done)](const Status& status) {
      done(status.ok() || group->status().ok() ? status : group->status());
    });
  }
  void abort(const Status& why) override { group_->abort(why); }

 private:
  const std::shared_ptr<Group> group_;
};

Result<std::unique_ptr<HostCalls>> found_host_calls(Group& from, Deadline deadline) try {
  Founding founding(from, all_ranks(from.size()), [&](const Vote& mine, std::span<Vote> votes) {
    // A timeout of zero would mean the default.
    const CallOptions options{.timeout = std::max(deadline.remaining(), std::chrono::nanoseconds(1))};
    exchange_by_collective(from, Composite::offload, options, mine, votes);
  });
  founding.agree_together(0);
  std::shared_ptr<Group> group =
      make_group(from.shared_world(), founding.number(), founding.ranks(), founding.place());
  return std::unique_ptr<HostCalls>(std::make_unique<PrivateCalls>(std::move(group)));
} catch (const Error& error) {
  return error.status();
}

}  // namespace

Communicator create_communicator(const std::shared_ptr<World>& world) {
  // All ranks of the world have made the same communicators so far, so this number is equal on all ranks.
  const std::uint32_t context = world->contexts.propose();
  world->contexts.take(context);
  world->found_host_calls = found_host_calls;
  std::shared_ptr<Group> group = make_group(world, context, all_ranks(world->mesh->size()));
  if (world->window_bytes != 0) group->open_host_memory(Deadline::after(world->sharing_limit));
  return Communicator(std::move(group));
}

std::optional<Communicator> Communicator::split(int color, int key) {
  Group& from = group();
  Founding founding(from, all_ranks(size()), [&from](const Vote& mine, std::span<Vote> votes) {
    exchange_by_collective(from, Composite::split, {}, mine, votes);
  });
  founding.agree(color, key);
  if (color == no_color) return std::nullopt;
  return Communicator(make_group(from.shared_world(), founding.number(), founding.ranks(), founding.place()));
}

Communicator Communicator::group(std::span<const int> ranks, int key, const CallOptions& options) {
  Group& from = group();
  if (options.stream != nullptr) throw Error(useless_stream("it makes a communicator"));
  if (options.region != nullptr) throw Error(useless_region());
  const std::vector<int> members(ranks.begin(), ranks.end());
  RollCall roll_call(from, members, key, options.timeout);
  if (const Status listed = roll_call.check(); !listed.ok()) throw Error(listed);
  Founding founding(from, members, [&roll_call](const Vote& mine, std::span<Vote> votes) {
    roll_call.exchange(mine, votes);
  });
  founding.agree_together(roll_call.digest());
  return Communicator(make_group(from.shared_world(), founding.number(), founding.ranks(), founding.place()));
}

Shrunk Communicator::shrink(int min_size) {
  const ShrinkNote decision = group().agree_to_shrink(min_size);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < decision.members.size(); ++i) {
    if (decision.members[i]) ranks.push_back(group().ranks()[i]);
  }
  return {Communicator(make_group(group().shared_world(), decision.number, std::move(ranks), decision.place)),
          decision.completed};
}

}  // namespace tutti
