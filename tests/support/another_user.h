#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace tutti::test {

// Makes this process belong to another user. Returns false if it is not permitted to do so.
inline bool become_another_user() {
  constexpr uid_t nobody = 65534;
  return setresuid(nobody, nobody, nobody) == 0;
}

// Runs `body` in a child process that belongs to another user. Returns the child's exit status, or
// -1 if the child ended in another way. `body` must not need a lock that one of the parent's
// threads may hold.
template <class Body>
int as_another_user(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(become_another_user() ? body() : 99);
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tutti::test
