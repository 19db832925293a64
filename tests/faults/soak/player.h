#pragma once

#include <vector>

#include <tutti/tutti.h>

#include "tests/faults/soak/plan.h"

namespace tutti::soak {

// A `Player` is one rank of an episode. It throws std::runtime_error if it finds an error, such as a wrong
// element in a result.
class Player {
 public:
  explicit Player(Episode episode);
  // Runs until the last round has ended, or until this rank ends.
  void play();

 private:
  void agree_on(std::size_t round);
  void play(const Round& round);
  void come_to(const Fault& fault);
  void run(const Step& step, std::chrono::nanoseconds timeout);
  void run_burst(const Step& step);
  void run_ring(const Step& step);
  void run_allocated(const Step& step);
  void run_split(const Step& step);
  Status cause() const;
  void judge(const Fault& fault, const Status& why) const;
  void regroup(const Fault& fault);

  const Episode episode_;
  Communicator comm_;
  const int rank_;         // the rank in the world
  std::vector<int> left_;  // the world ranks of the remaining ranks, by rank in `comm_`
};

}  // namespace tutti::soak
