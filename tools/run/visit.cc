#include "tools/run/visit.h"

#include <chrono>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/descriptor.h"
#include "tools/run/environment.h"

namespace tutti::tools {
namespace {

constexpr std::chrono::seconds longest_visit(5);

}  // namespace

Visit::Visit(const std::vector<std::string>& command, const Environment& environment,
             const SpawnDefaults& defaults)
    : deadline_(Deadline::after(longest_visit)) {
  const FoundProgram program = find_program(command.front(), search_path_of(environment));
  const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (program.problem != 0 || !nothing) return;
  pid_ = spawn({.path = program.path,
                .arguments = command,
                .environment = to_strings(environment),
                .input = nothing.get(),
                .output = nothing.get(),
                .error = nothing.get()},
               defaults);
}

Visit::~Visit() {
  if (is_over()) return;
  ::kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Visit::is_over() {
  if (pid_ > 0 && deadline_.expired()) ::kill(-pid_, SIGKILL);
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ <= 0;
}

}  // namespace tutti::tools
