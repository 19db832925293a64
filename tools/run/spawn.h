#pragma once

#include <string>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/descriptor.h"
#include "rendezvous/launch/environment.h"
#include "tools/run/binding.h"

namespace tutti::tools {

// A `SpawnRequest` names a program to start. The caller, not `spawn`, closes the descriptors.
struct SpawnRequest {
  std::string path;
  std::vector<std::string> arguments;  // including the program's name
  std::vector<std::string> environment;
  int input = -1;
  int output = -1;
  int error = -1;
  ProcessorSet processors = {};
};

// `SpawnDefaults` are the process settings with which this process started. This process may have changed
// them since. A program that it starts gets the original settings, as if the shell had started that program.
struct SpawnDefaults {
  sigset_t mask;
  struct sigaction broken_pipe;
  struct sigaction file_too_large;
  rlimit open_files;

  static SpawnDefaults of_this_process();
};

// Starts the program. Returns its process id, or a negative errno if the program could not be
// executed. The process leads a new process group, in the caller's session. The kernel kills it if the
// calling thread dies.
pid_t spawn(const SpawnRequest& request, const SpawnDefaults& defaults);

// Makes a pipe for a program's output. Only `ours`, the reading end, is non-blocking. Returns false and sets
// errno on failure.
bool open_pipe(Descriptor& ours, Descriptor& theirs);

// Returns a descriptor that becomes readable when the process ends. Returns no descriptor and sets
// errno on failure.
Descriptor process_descriptor(pid_t pid);

// Returns the folders in which programs are looked up: PATH, or a usual default if PATH is not set.
std::string search_path_of(const Environment& environment);

struct FoundProgram {
  // The file that was found, even if it cannot be executed; empty if none was found. A program's name with a
  // slash is not looked up, and is returned unchanged.
  std::string path;
  int problem = 0;  // 0, or the errno that says why the program cannot be started
};

// Finds the program as mpirun does: first in the folders of `path` (PATH), then in the current
// folder. A name with a slash is a path.
FoundProgram find_program(const std::string& name, const std::string& path);

}  // namespace tutti::tools
