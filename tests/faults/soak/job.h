#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/faults/soak/plan.h"

namespace tutti::soak {

// A `Job` runs the processes of an episode. The processes stay in the process group of this
// process, so that a signal to the group reaches all of them.
class Job {
 public:
  Job(std::uint64_t seed, const Episode& episode);
  ~Job();  // kills the remaining processes
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Watches the ranks until all have ended or one has failed, and resumes those that were stopped. Returns an
  // empty text if all ranks ended as planned, and otherwise a description of the problem. The time limit is a
  // number of checks of the ranks. So time in which the ranks and this process are all stopped does not
  // count.
  std::string watch();
  // Returns the longest time in seconds during which this process did not run. A long time may mean
  // that the whole machine was suspended.
  double longest_gap() const { return longest_gap_; }

 private:
  struct Rank {
    pid_t pid = -1;
    int err = -1;              // descriptor of a file in memory
    std::optional<int> ended;  // the status from `waitpid`
    int stopped_for = 0;       // a number of checks
  };
  void start(Rank& rank, std::vector<std::string> words, std::vector<std::string> variables);
  bool look(Rank& rank);
  std::string judge(int number) const;
  std::string report() const;
  bool dies(int number) const;
  int pause_of(int number) const;

  const Episode& episode_;
  std::vector<Rank> ranks_;
  double longest_gap_ = 0;  // seconds
};

}  // namespace tutti::soak
