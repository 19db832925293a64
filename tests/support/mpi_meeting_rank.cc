// This is a program for the ranks of a test under the launcher of an MPI: `mpi_meeting_rank MODE [MEETINGS]`.
// The ranks meet through MPI (mpi://), and add up their rank numbers. Rank 0 prints "sum SUM of SIZE" for
// each meeting. The modes say what else the program does:
//   plain       nothing
//   first       it initializes MPI before tutti, uses MPI after tutti, and finalizes MPI
//   second      it uses MPI after tutti, which has initialized MPI; tutti finalizes MPI
//   ends        like `second`, but it finalizes MPI itself
//   twice       it initializes MPI although tutti has done so, which MPI does not allow
//   finalized   it initializes and finalizes MPI before tutti
//   killed      rank 1 kills itself after the meeting
//   absent      rank 1 kills itself before the meeting
//   late        rank 1 sleeps instead of meeting the others
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <tutti/tutti.h>

#include "rendezvous/launch/environment.h"
#include "transport/mpi/library.h"
#include "transport/mpi/search.h"

namespace {

using tutti::mpi::Handle;
using tutti::mpi::Library;

// Returns the same MPI library that tutti uses.
std::unique_ptr<Library> load_mpi() {
  const char* const chosen = std::getenv("TUTTI_MPI_LIBRARY");
  const auto launcher = tutti::mpi::launcher_of(tutti::environment_of_process());
  return Library::open(tutti::mpi::library_names(chosen == nullptr ? "" : chosen, launcher)).take();
}

// Uses MPI as a program would: rank 0 sends a number to all ranks.
void use(const Library& mpi) {
  int rank = -1;
  mpi.rank_in(mpi.world(), rank);
  std::byte number{static_cast<unsigned char>(rank == 0 ? 42 : 0)};
  Handle request;
  mpi.start_broadcast(std::span(&number, 1), 0, mpi.world(), request);
  for (bool done = false; !done;) mpi.test(request, done);
  if (number != std::byte{42}) throw std::runtime_error("MPI's broadcast is wrong");
}

// Returns the rank that the launcher has given to this process.
int launched_rank() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* const text = std::getenv(name)) return std::atoi(text);
  return 0;
}

void meet() {
  tutti::Communicator comm = tutti::init("mpi://");
  std::int32_t sum = comm.rank();
  comm.all_reduce(std::span(&sum, 1), tutti::ReduceOp::sum).wait();
  if (comm.rank() == 0) std::printf("sum %d of %d\n", sum, comm.size());
}

// Meets the other ranks. Then rank 1 kills itself, and the others make collective calls until one fails.
void work_until_killed() {
  tutti::Communicator comm = tutti::init("mpi://");
  if (comm.rank() == 1) std::raise(SIGKILL);
  std::int32_t sum = 0;
  for (;;) comm.all_reduce(std::span(&sum, 1), tutti::ReduceOp::sum).wait();
}

void run(const std::string& mode, int meetings) {
  const std::unique_ptr<Library> mpi = mode == "plain" ? nullptr : load_mpi();
  if (mode == "first" || mode == "finalized") mpi->initialize();
  if (mode == "finalized") mpi->finalize();
  if (mode == "killed") return work_until_killed();
  if (mode == "absent" && launched_rank() == 1) std::raise(SIGKILL);
  if (mode == "late" && launched_rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  for (int i = 0; i < meetings; ++i) meet();
  if (mode == "first" || mode == "second" || mode == "ends") use(*mpi);
  if (mode == "first" || mode == "ends") mpi->finalize();
  if (mode == "twice") mpi->initialize();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(count > 1 ? arguments[1] : "plain", count > 2 ? std::atoi(arguments[2]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
