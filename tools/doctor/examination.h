#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include "tools/doctor/examined.h"
#include "tools/doctor/remote_probe.h"
#include "tools/doctor/rounds.h"
#include "tools/run/host_lookup.h"
#include "tools/run/options.h"
#include "tools/run/progress.h"
#include "tools/run/start_command.h"

namespace tutti::tools::doctor {

// An `Examination` starts a probe on each host. The probes test their hosts and the paths between
// them.
class Examination {
 public:
  // `way` says by which command each host is reached.
  Examination(const RunOptions& options, std::vector<LocatedHost> hosts, const StartCommand& way);
  ~Examination();

  // Runs the examination, and returns after all probes have ended. The result is empty if a signal
  // ended the examination.
  std::optional<Examined> run();
  // Returns the signal that ended the examination, or 0.
  int signal() const { return signal_; }

 private:
  // A `Request` is a command to the probe of a host.
  struct Request {
    std::size_t host;
    ProbeCommand command;
  };
  using OnAnswer = std::function<void(std::size_t host, const ProbeAnswer& answer)>;

  // Asks several hosts at the same time. Calls `on_answer` for each answer. Calls `then` after the
  // last answer, when each host has either answered or failed.
  void ask_all(const std::vector<Request>& requests, const OnAnswer& on_answer,
               const std::function<void()>& then);
  // These are the steps of the examination, in their order. When a step has ended, it begins the
  // next step.
  void begin_more();
  void begin(std::size_t host);
  void look_at_clocks(int times);
  void look_for_meeting();
  void look_for_usage(const std::string& meeting);
  void test_next_round();
  void test_cards_of_next_round();
  void finish();

  void await_signals();
  std::vector<std::size_t> hosts_up() const;
  std::vector<std::string> peers_of(std::size_t host) const;
  std::vector<Request> tests_of(const Round& round) const;

  // --- the test of RDMA devices: examination_cards.cc ---

  // `one` has rank 0 in the test.
  struct CardPair {
    std::size_t one;
    std::size_t other;
    CardTest test;
  };
  std::string reached_address(std::size_t one, std::size_t other) const;
  std::vector<CardPair> card_pairs(const Round& round) const;
  void test_cards_of(const std::vector<CardPair>& pairs);

  const RunOptions options_;
  const std::vector<LocatedHost> located_;
  const Environment environment_;
  const std::string pass_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  Progress progress_;
  Examined examined_;
  std::vector<std::unique_ptr<RemoteProbe>> probes_;
  std::size_t begun_ = 0;
  std::size_t beginning_ = 0;
  std::size_t most_beginning_ = 1;
  // These are the remaining rounds. The first host of each pair connects to the second.
  std::deque<Round> rounds_;
  // These are the rounds in which RDMA devices are still to be tested. The first host of each pair has rank
  // 0.
  std::deque<Round> card_rounds_;
  std::size_t ended_ = 0;
  int signal_ = 0;
};

}  // namespace tutti::tools::doctor
