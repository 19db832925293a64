#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/collective_case.h"

// This file describes the plan of a soak (random collectives with random faults). The plan is drawn from
// the seed before any process starts.
namespace tutti::soak {

struct Step {
  enum class Kind : std::uint8_t {
    collective,
    burst,      // several operations in flight
    ring,       // messages to the next rank and from the previous one
    split,      // a collective on each of several smaller communicators
    allocated,  // an all_reduce on memory of `Communicator::allocate`
  };
  Kind kind = Kind::collective;
  test::CollectiveCase test;  // its `root` is taken modulo the size of the world
  int parts = 1;              // operations of a burst, or communicators of a split

  std::string describe() const;
};

// A `Fault` happens when `rank` reaches `step`.
struct Fault {
  enum class Kind : std::uint8_t {
    none,
    kill,   // SIGKILL
    leave,  // the process ends without a goodbye
    pair,   // SIGKILL, and another SIGKILL to rank `second` while the survivors shrink
    abort,  // Communicator::abort, from another thread
    // The rank makes no call. From this step on, all ranks use the time limit `milliseconds`.
    late,
    disagree,  // the rank first makes a call that no other rank makes
    stop,      // SIGSTOP, and SIGCONT `milliseconds` later
    delay,     // the rank pauses for `milliseconds` before the step
  };
  Kind kind = Kind::none;
  int rank = 0;    // a world rank
  int second = 0;  // another world rank, only for `pair`
  std::size_t step = 0;
  // The fault happens this long after the beginning of `step`. Rank `second` is killed this long
  // after it has begun to shrink.
  int microseconds = 0;
  int milliseconds = 0;  // see `Kind`

  bool kills() const { return kind == Kind::kill || kind == Kind::leave || kind == Kind::pair; }
  // Returns whether the fault ends the communicator, so that the ranks must agree on a new communicator.
  bool ends_the_communicator() const {
    return kills() || kind == Kind::abort || kind == Kind::late || kind == Kind::disagree;
  }
  std::string describe() const;
};

// A `Round` ends with a barrier. A fault may end the communicator. In that case every rank has
// noticed the fault by the end of the round.
struct Round {
  std::vector<Step> steps;
  Fault fault;
};

// An `Episode` is the plan of one job.
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
