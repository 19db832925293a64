#include "tests/faults/soak/player.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

namespace tutti::soak {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

void end_by(int signal) {
  kill(getpid(), signal);
  if (signal == SIGKILL) wait_for_the_end();
}

bool names(const Status& why, int rank) {
  return why.message().find("rank " + std::to_string(rank) + " (host ") != std::string::npos;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

// Waits for all operations, and then throws the first failure. It must wait even after a failure,
// since the caller destroys the operations' buffers.
void wait_for_all(std::vector<Work>& works) {
  std::exception_ptr first;
  for (Work& work : works) {
    try {
      work.wait();
    } catch (const Error&) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace

Player::Player(Episode episode) : episode_(std::move(episode)), comm_(init()), rank_(comm_.rank()) {
  for (int rank = 0; rank < comm_.size(); ++rank) left_.push_back(rank);
}

void Player::play() {
  for (std::size_t i = 0; i < episode_.rounds.size(); ++i) {
    const Round& round = episode_.rounds[i];
    std::fprintf(stderr, "round %zu\n", i);
    try {
      agree_on(i);
      play(round);
      expect(!round.fault.ends_the_communicator(), "nothing has failed: " + round.fault.describe());
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      judge(round.fault, cause());
      regroup(round.fault);
    }
  }
}

// Checks that all ranks are in the same round. (A failure ends the round on every rank, so no rank may be
// ahead.)
void Player::agree_on(std::size_t round) {
  const auto own = static_cast<std::int64_t>(round);
  std::int64_t furthest = own;
  comm_.all_reduce(std::span(&furthest, 1), ReduceOp::max).wait();
  expect(furthest == own, "another rank is further");
}

void Player::play(const Round& round) {
  const Fault& fault = round.fault;
  std::jthread doing;
  for (std::size_t i = 0; i < round.steps.size(); ++i) {
    const bool late = fault.kind == Fault::Kind::late && i >= fault.step;
    if (i == fault.step && rank_ == fault.rank) doing = std::jthread([this, &fault] { come_to(fault); });
    if (i == fault.step && rank_ == fault.rank &&
        (late || fault.kind == Fault::Kind::delay || fault.kind == Fault::Kind::disagree))
      doing.join();
    run(round.steps[i], late ? milliseconds(fault.milliseconds) : milliseconds(0));
  }
  if (doing.joinable()) doing.join();
  const bool late = fault.kind == Fault::Kind::late;
  comm_.barrier({.timeout = late ? milliseconds(fault.milliseconds) : milliseconds(0)}).wait();
}

// `play` calls this function in a second thread. If the fault is `late`, `delay` or `disagree`, `play` waits
// for that thread before it runs the step. With any other fault, `play` continues at once.
void Player::come_to(const Fault& fault) {
  std::this_thread::sleep_for(microseconds(fault.microseconds));
  switch (fault.kind) {
    case Fault::Kind::kill:
    case Fault::Kind::pair:
      return end_by(SIGKILL);
    case Fault::Kind::leave:
      _exit(0);
    case Fault::Kind::abort:
      return comm_.abort("enough of episode " + std::to_string(episode_.number));
    case Fault::Kind::late:
      while (comm_.status().ok()) std::this_thread::sleep_for(milliseconds(1));
      return;
    case Fault::Kind::disagree: {
      std::vector<float> others_have_none(7777);
      try {
        comm_.all_reduce(others_have_none, ReduceOp::min).wait();
      } catch (const Error&) {  // the next step also gets the error
      }
      return;
    }
    case Fault::Kind::stop:
      return end_by(SIGSTOP);
    case Fault::Kind::delay:
      return std::this_thread::sleep_for(milliseconds(fault.milliseconds));
    case Fault::Kind::none:
      return;
  }
}

void Player::run(const Step& step, std::chrono::nanoseconds timeout) {
  switch (step.kind) {
    case Step::Kind::burst:
      return run_burst(step);
    case Step::Kind::ring:
      return run_ring(step);
    case Step::Kind::allocated:
      return run_allocated(step);
    case Step::Kind::split:
      return run_split(step);
    case Step::Kind::collective:
      break;
  }
  test::CollectiveCase test = step.test;
  test.root %= comm_.size();
  test.timeout = timeout;
  const std::string problem = test::attempt_case(comm_, test);
  expect(problem.empty(), problem);
}

void Player::run_burst(const Step& step) {
  const auto parts = static_cast<std::size_t>(step.parts);
  std::vector<std::vector<std::int64_t>> sums(parts, std::vector<std::int64_t>(step.test.count));
  std::vector<Work> works;
  for (std::size_t i = 0; i < parts; ++i) {
    for (std::size_t k = 0; k < sums[i].size(); ++k)
      sums[i][k] = comm_.rank() + static_cast<std::int64_t>(i * k);
    works.push_back(comm_.all_reduce(sums[i], ReduceOp::sum));
  }
  wait_for_all(works);
  const int p = comm_.size();
  for (std::size_t i = 0; i < parts; ++i) {
    for (std::size_t k = 0; k < sums[i].size(); ++k)
      expect(sums[i][k] == p * (p - 1) / 2 + p * static_cast<std::int64_t>(i * k), "wrong sum in a burst");
  }
}

void Player::run_ring(const Step& step) {
  const int p = comm_.size(), next = (comm_.rank() + 1) % p, previous = (comm_.rank() + p - 1) % p;
  std::vector<std::int32_t> in(step.test.count, -1), out(step.test.count, comm_.rank());
  std::vector<Work> works;
  works.push_back(comm_.recv(in, previous, 5));
  works.push_back(comm_.send(out, next, 5));
  wait_for_all(works);
  for (const std::int32_t value : in) expect(value == previous, "wrong element of a message");
}

void Player::run_allocated(const Step& step) {
  const std::size_t bytes = (step.test.count + 1) * sizeof(std::int64_t);
  const Allocation memory = comm_.allocate(bytes);
  const auto all = memory.as<std::int64_t>().first(step.test.count + 1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = comm_.rank() + static_cast<std::int64_t>(i);
  comm_.all_reduce(all, ReduceOp::sum).wait();
  const int p = comm_.size();
  for (std::size_t i = 0; i < all.size(); ++i)
    expect(all[i] == p * (p - 1) / 2 + p * static_cast<std::int64_t>(i), "wrong sum in allocated memory");
  comm_.barrier().wait();  // other ranks may read this memory until then
}

void Player::run_split(const Step& step) {
  std::optional<Communicator> part = comm_.split(comm_.rank() % step.parts);
  test::CollectiveCase test = step.test;
  test.root %= part->size();
  const std::string problem = test::attempt_case(*part, test);
  expect(problem.empty(), problem);
}

// Waits until `comm_` has failed, and returns its error. The first error that `play` sees may come from a
// communicator that was split from `comm_`, before `comm_` itself has failed.
Status Player::cause() const {
  for (int i = 0; i < 20'000 && comm_.status().ok(); ++i) std::this_thread::sleep_for(milliseconds(1));
  return comm_.status();
}

void Player::judge(const Fault& fault, const Status& why) const {
  const std::string told = fault.describe() + ", but: " + why.to_string();
  switch (fault.kind) {
    case Fault::Kind::kill:
    case Fault::Kind::leave:
      return expect(why.code() == Code::peer_lost && names(why, fault.rank), told);
    case Fault::Kind::pair:
      return expect(why.code() == Code::peer_lost && (names(why, fault.rank) || names(why, fault.second)),
                    told);
    case Fault::Kind::abort:
      return expect(why.code() == Code::aborted && names(why, fault.rank) &&
                        why.message().find("enough of episode") != std::string::npos,
                    told);
    case Fault::Kind::late:
      return expect(why.code() == Code::timeout && names(why, fault.rank), told);
    case Fault::Kind::disagree:
      return expect(why.code() == Code::mismatch, told);
    case Fault::Kind::none:
    case Fault::Kind::stop:
    case Fault::Kind::delay:
      throw std::runtime_error(told);
  }
}

void Player::regroup(const Fault& fault) {
  if (fault.kills()) std::erase(left_, fault.rank);
  const bool dies = fault.kind == Fault::Kind::pair && rank_ == fault.second;
  if (fault.kind == Fault::Kind::pair) std::erase(left_, fault.second);
  std::jthread doing;
  if (dies) {
    doing = std::jthread([&fault] {
      std::this_thread::sleep_for(microseconds(fault.microseconds));
      end_by(SIGKILL);
    });
  }
  for (;;) {
    comm_ = comm_.shrink(1).communicator;
    if (dies) wait_for_the_end();
    if (comm_.size() == static_cast<int>(left_.size())) return;
    const bool with_the_second =
        fault.kind == Fault::Kind::pair && comm_.size() == static_cast<int>(left_.size()) + 1;
    expect(with_the_second, "shrunk to " + std::to_string(comm_.size()) + " ranks");
    const Status why = cause();
    expect(why.code() == Code::peer_lost && names(why, fault.second), why.to_string());
  }
}

}  // namespace tutti::soak
