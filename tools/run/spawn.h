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

// A `SpawnRequest` names a program to start. `spawn` does not close the descriptors; the caller does.
struct SpawnRequest {
  std::string path;
  std::vector<std::string> arguments;  // including the program's name
  std::vector<std::string> environment;
  int input = -1;
  int output = -1;
  int error = -1;
  ProcessorSet processors = {};
};

// `SpawnDefaults` are the process settings that this process started with and may have changed since. A
// program that we start gets the original settings, as if the shell had started it.
struct SpawnDefaults {
  sigset_t mask;
  struct sigaction broken_pipe;
  struct sigaction file_too_large;
  rlimit open_files;

  static SpawnDefaults of_this_process();
};

// Starts the program. Returns its process id, or a negative errno if the program could not be executed. The
// process leads a session and a process group of its own, and the kernel kills it if the calling thread dies.
pid_t spawn(const SpawnRequest& request, const SpawnDefaults& defaults);

// Makes a pipe for a program's output. Only `ours`, the reading end, is non-blocking. Returns false and sets
// errno if that fails.
bool open_pipe(Descriptor& ours, Descriptor& theirs);

// Returns a descriptor that becomes readable once the process has ended. Returns none and sets errno if that
// fails.
Descriptor process_descriptor(pid_t pid);

// Returns the folders in which programs are found: PATH, or a usual choice if that is not set.
std::string search_path_of(const Environment& environment);

struct FoundProgram {
  std::string path;  // the file that the name stands for, even if it cannot be executed; empty if not found
  int problem = 0;   // 0, or the errno that says why the program cannot be started
};

// Finds the program as mpirun does: first in the folders of `path` (PATH), then in the current folder. A name
// with a slash is taken as a path.
FoundProgram find_program(const std::string& name, const std::string& path);

}  // namespace tutti::tools
