#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "tools/commands.h"

namespace tutti::tools {

// A `Translation` is a command line of `tutti run`, of mpirun, of Hydra's mpiexec or of horovodrun, in the
// launcher's own options.
struct Translation {
  Arguments options;
  Arguments program;
  std::string socket_ifname;         // for TUTTI_SOCKET_IFNAME; empty if nothing chooses it
  bool abort_on_non_zero = true;     // whether a rank's exit status other than 0 ends the job
  std::vector<std::string> ignored;  // parameters of Open MPI that mean nothing here: "-mca pml ob1"
};

// Returns whether one of the launcher's own options ("--wdir") takes a value.
using TakesValue = std::function<bool(const std::string& option)>;

// Translates a command line (docs/from-mpirun.md, docs/from-horovodrun.md). The program begins after `--`, or
// at the first word that is neither an option nor an option's value. All words from there on belong to the
// program, even if they look like options. Options that are not known stay as they are. Returns
// `invalid_argument` if a value is missing or wrong, or if there are several programs.
Result<Translation> translate(const Arguments& words, const TakesValue& takes_value);

}  // namespace tutti::tools
