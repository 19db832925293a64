#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "tools/run/remote_agent.h"

namespace tutti::tools {

// `ExitOrder` finds out which rank failed first. Ranks on other hosts fail soon after a rank has
// died, and the report of the first failure may arrive last. So after a failure, this class holds
// the exits back for at most a quarter of a second. Meanwhile it asks each agent to confirm that
// all exits have been reported. Then it delivers the exits in the order in which the ranks ended.
class ExitOrder {
 public:
  using Deliver = std::function<void(const RankExit& exit)>;

  ExitOrder(asio::io_context& io, Deliver deliver) : timer_(io), deliver_(std::move(deliver)) {}

  // Takes the exit of a rank. `others` are the agents that may have noticed an earlier failure. If
  // exits are being held back, this exit is held back, too. It is also held back if the rank has failed
  // and `others` is not empty; each of `others` is then asked. In all other cases the exit is delivered
  // at once.
  void add(const RankExit& exit, const std::vector<RemoteAgent*>& others);
  // Takes an agent's answer to the question with this number.
  void settled(const RemoteAgent& agent, std::uint64_t number);
  // Takes note that the agent will not answer.
  void forget(const RemoteAgent& agent);

 private:
  void ask(const std::vector<RemoteAgent*>& agents);
  void deliver_all();

  asio::steady_timer timer_;
  const Deliver deliver_;
  std::vector<RankExit> held_;
  std::set<const RemoteAgent*> awaited_;
  // The number of the current question; answers to earlier questions do not count.
  std::uint64_t number_ = 0;
};

}  // namespace tutti::tools
