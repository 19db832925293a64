#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "tools/commands.h"

namespace tutti::tools {

// A `Translation` is a command line that was translated to the options of `tutti run`. The original
// may be for `tutti run`, mpirun, Hydra's mpiexec or horovodrun.
struct Translation {
  Arguments options;
  Arguments program;
  // The value for TUTTI_SOCKET_IFNAME; empty if no option gives it.
  std::string socket_ifname;
  bool abort_on_non_zero = true;  // a rank's exit status other than 0 ends the job
  // Parameters of Open MPI that have no effect here, such as "-mca pml ob1".
  std::vector<std::string> ignored;
};

// Returns whether `option` takes a value. `option` is one of the launcher's own options, such as "--wdir".
using TakesValue = std::function<bool(const std::string& option)>;

// Translates a command line (docs/from-mpirun.md, docs/from-horovodrun.md). The program begins
// after `--`, or at the first word that is neither an option nor an option's value. All words from
// there on belong to the program, even if they look like options. Unknown options stay unchanged.
// Returns `invalid_argument` if a value is missing or wrong, or if there are several programs.
Result<Translation> translate(const Arguments& words, const TakesValue& takes_value);

}  // namespace tutti::tools
