// This is a program for the ranks of a test. It calls several collectives, and then prints the resources that
// it holds.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <dirent.h>
#include <unistd.h>

#include <tutti/tutti.h>

namespace {

// Returns the number of entries in a folder of /proc/self. If `kind` is not empty, counts only links whose
// target begins with `kind`.
int count(const std::string& folder, const std::string& kind) {
  int found = 0;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return -1;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    char target[64] = {};
    const ssize_t length = readlink((folder + "/" + name).c_str(), target, sizeof target - 1);
    found += kind.empty() || (length > 0 && std::string(target).starts_with(kind)) ? 1 : 0;
  }
  closedir(directory);
  return found;
}

}  // namespace

int main() try {
  tutti::Communicator comm = tutti::init();
  std::vector<float> data(static_cast<std::size_t>(comm.size()) * 1000, 1.0f);
  comm.all_reduce(data, tutti::ReduceOp::sum).wait();
  comm.broadcast(data, 0).wait();
  comm.all_gather(data).wait();
  comm.reduce(data, tutti::ReduceOp::max, comm.size() - 1).wait();
  comm.barrier().wait();
  const int sockets = count("/proc/self/fd", "socket:");
  const int descriptors = count("/proc/self/fd", "");
  const int threads = count("/proc/self/task", "");
  std::printf("rank %d sockets %d descriptors %d threads %d\n", comm.rank(), sockets, descriptors, threads);
  comm.barrier().wait();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
