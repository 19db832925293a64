// bench/starting.py runs this program as the ranks of a job, and measures how they start. Each rank prints
// when it began, when `init` had ended, and how many connections it had after that:
//   rank R began NANOSECONDS met NANOSECONDS tcp N local N
// The times are read from CLOCK_MONOTONIC, a clock that all processes of a machine share.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <dirent.h>
#include <sys/socket.h>

#include <tutti/tutti.h>

namespace {

struct Connections {
  int tcp = 0;
  int local = 0;
};

long long now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Counts the sockets of this process that are connected to a peer.
Connections connections() {
  Connections found;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder)) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    const int descriptor = std::atoi(entry->d_name);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    ++(address.ss_family == AF_UNIX ? found.local : found.tcp);
  }
  if (folder != nullptr) closedir(folder);
  return found;
}

}  // namespace

int main() try {
  const long long began = now();
  tutti::Communicator comm = tutti::init();
  const long long met = now();
  const Connections open = connections();
  std::printf("rank %d began %lld met %lld tcp %d local %d\n", comm.rank(), began, met, open.tcp, open.local);
  std::fflush(stdout);
  comm.barrier().wait();  // no rank ends before all have counted their connections
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "starting: %s\n", error.what());
  return 1;
}
