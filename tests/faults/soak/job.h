#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/faults/soak/plan.h"

namespace tutti::soak {

// A `Job` is the processes of an episode. They stay in this process's group, so that a signal to the group
// reaches them all.
class Job {
 public:
  Job(std::uint64_t seed, const Episode& episode);
  ~Job();  // kills the processes that are left
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Watches the ranks until all have ended, and continues those that have been stopped. Returns an empty text
  // if all ended as planned, else what is wrong. Patience is counted in looks, so that a job that is stopped
  // as a whole, this process included, has all of its time afterwards.
  std::string watch();
  // The longest time for which this process did not run: the whole machine may have been suspended.
  double longest_gap() const { return longest_gap_; }

 private:
  struct Rank {
    pid_t pid = -1;
    int err = -1;              // a file in memory
    std::optional<int> ended;  // as `waitpid` says
    int stopped_for = 0;       // looks
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
