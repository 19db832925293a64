#pragma once

#include <string>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

namespace tutti::tools {

// A `SpawnRequest` names a program to start. Descriptors stay the caller's.
struct SpawnRequest {
  std::string path;
  std::vector<std::string> arguments;  // the program's name included
  std::vector<std::string> environment;
  int input = -1;
  int output = -1;
  int error = -1;
};

// `SpawnDefaults` are settings that a started program would inherit from us but should have as if the shell
// had started it.
struct SpawnDefaults {
  sigset_t mask;
  struct sigaction broken_pipe;
  struct sigaction file_too_large;
  rlimit open_files;

  static SpawnDefaults of_this_process();
};

// Returns the process id, or the reason why the program could not be executed (an errno, negative). The
// process leads a session and a process group of its own, and the kernel kills it if the calling thread dies.
pid_t spawn(const SpawnRequest& request, const SpawnDefaults& defaults);

struct FoundProgram {
  std::string path;  // of the file that has the name, whether or not it can be executed
  int problem = 0;   // ENOENT or EACCES
};

// Finds the program where mpirun would: by `path` (PATH) and then in the current folder, unless the name has
// a slash.
FoundProgram find_program(const std::string& name, const std::string& path);

}  // namespace tutti::tools
