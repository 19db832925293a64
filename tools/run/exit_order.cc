#include "tools/run/exit_order.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <tools/run/link.pb.h>

namespace tutti::tools {
namespace {

constexpr std::chrono::milliseconds longest_settling(250);

}  // namespace

void ExitOrder::add(const RankExit& exit, const std::vector<RemoteAgent*>& others) {
  const bool settling = !awaited_.empty();
  if (!settling && (exit.status.success() || others.empty())) return deliver_(exit);
  held_.push_back(exit);
  if (!settling) ask(others);
}

void ExitOrder::ask(const std::vector<RemoteAgent*>& agents) {
  record::FromLauncher record;
  record.set_settle(++number_);
  for (RemoteAgent* agent : agents) {
    awaited_.insert(agent);
    agent->send(record);
  }
  timer_.expires_after(longest_settling);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) deliver_all();
  });
}

void ExitOrder::settled(const RemoteAgent& agent, std::uint64_t number) {
  if (number == number_) forget(agent);
}

void ExitOrder::forget(const RemoteAgent& agent) {
  if (awaited_.erase(&agent) == 1 && awaited_.empty()) deliver_all();
}

void ExitOrder::deliver_all() {
  timer_.cancel();
  awaited_.clear();
  std::vector<RankExit> exits = std::exchange(held_, {});
  std::ranges::stable_sort(exits, {}, &RankExit::when);
  for (const RankExit& exit : exits) deliver_(exit);
}

}  // namespace tutti::tools
