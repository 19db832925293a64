// This is a program for the ranks of a test. Its argument says what it does: most modes get stuck or fail. A
// stuck rank prints that it is stuck, and stays until it is killed.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.h>

namespace {

using tutti::Communicator;
using tutti::ReduceOp;

[[noreturn]] void stay() {
  std::printf("stuck\n");
  std::fflush(stdout);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void issued() {
  std::printf("stuck\n");
  std::fflush(stdout);
}

// The last rank makes no call.
void late(Communicator& comm, std::vector<float>& data) {
  if (comm.rank() == comm.size() - 1) stay();
  tutti::Work work = comm.all_reduce(data, ReduceOp::sum);
  issued();
  work.wait();
}

// The last rank does not call `split`.
void late_to_split(Communicator& comm) {
  if (comm.rank() == comm.size() - 1) stay();
  issued();
  comm.split(0);
}

// The last rank's callback does not return. No rank sends before the callback has been set. So the
// receive completes when the callback is already set, and the driver's thread runs the callback.
void callback(Communicator& comm, std::vector<float>& data) {
  if (comm.rank() == comm.size() - 1) {
    comm.recv(data, 0, 1).then([](const tutti::Status&) { stay(); });
    const tutti::Work in_place = comm.barrier();
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  comm.barrier().wait();
  if (comm.rank() == 0) comm.send(data, comm.size() - 1, 1).wait();
  late(comm, data);
}

// Each of the first two ranks waits for a message from the other before it sends its own message.
void circle(Communicator& comm, std::vector<float>& data) {
  if (comm.rank() > 1) stay();
  tutti::Work work = comm.recv(data, 1 - comm.rank(), 7);
  issued();
  work.wait();
}

// All ranks repeat the same calls, so there is no error.
[[noreturn]] void busy(Communicator& comm, std::vector<float>& data) {
  issued();
  for (;;) comm.all_reduce(data, ReduceOp::sum).wait();
}

// The first rank makes a different call. The other ranks may learn of this while they are still in
// their previous call (the barrier in `run`).
void mismatch(Communicator& comm, std::vector<float>& data) {
  if (comm.rank() == 0) {
    comm.broadcast(data, 0).wait();
  } else {
    comm.all_reduce(data, ReduceOp::sum).wait();
  }
  comm.barrier().wait();
}

void forked_child(Communicator& comm) {
  const pid_t child = fork();
  if (child == 0) {
    comm = Communicator();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended with %d\n", status);
}

// Makes calls of several kinds for a trace. `mode` says how the program ends after that.
void work(Communicator& comm, std::vector<float>& data, const std::string& mode) {
  tutti::Work first = comm.all_reduce(data, ReduceOp::sum);
  comm.broadcast(data, 0).wait();
  first.wait();
  if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  comm.barrier().wait();
  if (comm.rank() == 0) comm.send(data, 1, 5).wait();
  if (comm.rank() == 1) comm.recv(data, 0, 5).wait();
  comm.split(tutti::no_color);
  if (mode == "work") return;
  std::this_thread::sleep_for(std::chrono::seconds(4));  // the trace is written during this time
  if (mode == "abort") std::abort();
  std::_Exit(0);
}

void run(Communicator& comm, const std::string& mode) {
  std::vector<float> data(100, 1.0f);
  for (int i = 0; i < 20; ++i) comm.all_reduce(data, ReduceOp::sum).wait();
  comm.barrier().wait();
  if (mode == "late") late(comm, data);
  if (mode == "split") late_to_split(comm);
  if (mode == "callback") callback(comm, data);
  if (mode == "circle") circle(comm, data);
  if (mode == "busy") busy(comm, data);
  if (mode == "mismatch") mismatch(comm, data);
  if (mode == "child") forked_child(comm);
  if (mode == "work" || mode == "abort" || mode == "exit") work(comm, data, mode);
}

}  // namespace

int main(int argc, char** argv) try {
  Communicator comm = tutti::init();
  try {
    run(comm, argc > 1 ? argv[1] : "");
  } catch (const tutti::Error& error) {
    std::printf("failed: %s\n", error.what());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
