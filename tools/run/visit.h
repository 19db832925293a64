#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include <tutti/deadline.h>

#include "rendezvous/launch/launch.h"
#include "tools/run/spawn.h"

namespace tutti::tools {

// A `Visit` runs a command that ends the job's remaining processes on a lost host. It runs the
// command once, without input and output, and for five seconds at most.
class Visit {
 public:
  // Starts the command. The visit is over if this fails.
  Visit(const std::vector<std::string>& command, const Environment& environment,
        const SpawnDefaults& defaults);
  // Kills the command if it still runs.
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Returns whether the command has ended. The caller must call this repeatedly, because only this
  // call notices the end and kills the command after its time limit.
  bool is_over();

 private:
  pid_t pid_ = -1;  // negative after the command has ended
  Deadline deadline_;
};

}  // namespace tutti::tools
