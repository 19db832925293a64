#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "tools/run/remote_agent.h"

namespace tutti::tools {

// `ExitOrder` finds out which rank failed first. Ranks on other hosts fail soon after a rank has died, and
// the report of the first failure may arrive last. So when a rank has failed, the exits are held back until
// each agent has answered that it has reported all exits that it has noticed, or a quarter of a second has
// passed. Then they are delivered in the order in which the ranks ended.
class ExitOrder {
 public:
  using Deliver = std::function<void(const RankExit& exit)>;

  ExitOrder(asio::io_context& io, Deliver deliver) : timer_(io), deliver_(std::move(deliver)) {}

  // Takes the exit of a rank. `others` are the agents that may have noticed an earlier failure: each of them
  // is asked. If there are none, the exit is delivered at once, unless other exits are being held back.
  void add(const RankExit& exit, const std::vector<RemoteAgent*>& others);
  // Takes an agent's answer.
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
  std::uint64_t number_ = 0;  // of the question; an answer to an earlier one does not count
};

}  // namespace tutti::tools
