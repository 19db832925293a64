#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/collective_case.h"

// This is the plan of a soak, as data. It is drawn from the seed before anything runs.
namespace tutti::soak {

struct Step {
  enum class Kind : std::uint8_t {
    collective,
    burst,      // several operations in flight
    ring,       // messages to the next rank and from the previous one
    split,      // a collective on communicators of some ranks each
    allocated,  // an all_reduce on memory of `Communicator::allocate`
  };
  Kind kind = Kind::collective;
  test::CollectiveCase test;  // its root: to be taken modulo the world's size
  int parts = 1;              // of a burst or a split

  std::string describe() const;
};

// A fault that happens to one rank, or that it causes, when it reaches a step.
struct Fault {
  enum class Kind : std::uint8_t {
    none,
    kill,      // SIGKILL
    leave,     // the process ends without a goodbye
    pair,      // SIGKILL, and another rank dies of it while the survivors shrink
    abort,     // Communicator::abort, from another thread
    late,      // does not call; the others' operations have `milliseconds` from that step on
    disagree,  // calls something else first
    stop,      // SIGSTOP, and SIGCONT `milliseconds` later
    delay,     // comes `milliseconds` later
  };
  Kind kind = Kind::none;
  int rank = 0;    // these are world ranks
  int second = 0;  // pair
  std::size_t step = 0;
  int microseconds = 0;  // from the beginning of the step; pair: of the shrink for the second
  int milliseconds = 0;

  bool kills() const { return kind == Kind::kill || kind == Kind::leave || kind == Kind::pair; }
  // The communicator ends, and a new one is agreed on.
  bool ends_the_communicator() const {
    return kills() || kind == Kind::abort || kind == Kind::late || kind == Kind::disagree;
  }
  std::string describe() const;
};

// A round ends with a barrier. By then a communicator that is planned to fail has failed on every rank.
struct Round {
  std::vector<Step> steps;
  Fault fault;
};

// One job, from its `init` on.
struct Episode {
  std::uint64_t number = 0;
  int size = 2;
  std::map<std::string, std::string> variables;
  std::vector<Round> rounds;

  // Returns the same plan for the same arguments, on every machine.
  static Episode draw(std::uint64_t seed, std::uint64_t number);
  std::string describe() const;
};

}  // namespace tutti::soak
