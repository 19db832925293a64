#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include <tutti/deadline.h>

#include "rendezvous/launch/launch.h"
#include "tools/run/spawn.h"

namespace tutti::tools {

// A `Visit` runs a command that ends what is left of the job on a host that is lost. It does so once, without
// input and output, and for five seconds at most.
class Visit {
 public:
  // Starts the command. If that fails, the visit is over.
  Visit(const std::vector<std::string>& command, const Environment& environment,
        const SpawnDefaults& defaults);
  // Kills the command if it still runs.
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Returns whether the command has ended. The caller asks again and again, since this also notices the end,
  // and kills a command whose time is up.
  bool is_over();

 private:
  pid_t pid_ = -1;  // negative once the command has ended
  Deadline deadline_;
};

}  // namespace tutti::tools
