// This is a program for the ranks of a test under Open MPI's mpirun. It uses both MPI and tutti.
// `mpi_rank first` initializes MPI before tutti, and `mpi_rank second` initializes it after tutti.
// The ranks add up their rank numbers and pass MPI's barrier. Rank 0 prints "sum SUM of SIZE". The
// program loads MPI at run time. It prints "no MPI" if no MPI is installed.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>

#include <dlfcn.h>

#include <tutti/tutti.h>

namespace {

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

int meet(int (*init_mpi)(int*, char***), bool mpi_first) {
  if (mpi_first) init_mpi(nullptr, nullptr);
  tutti::Communicator comm = tutti::init();
  if (!mpi_first) init_mpi(nullptr, nullptr);
  std::int32_t sum = comm.rank();
  comm.all_reduce(std::span(&sum, 1), tutti::ReduceOp::sum).wait();
  if (comm.rank() == 0) std::printf("sum %d of %d\n", sum, comm.size());
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  void* const mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (mpi == nullptr) {
    std::printf("no MPI\n");
    return 0;
  }
  const bool mpi_first = count > 1 && std::string_view(arguments[1]) == "first";
  const int outcome = meet(find<int(int*, char***)>(mpi, "MPI_Init"), mpi_first);
  void* const world = dlsym(mpi, "ompi_mpi_comm_world");
  if (find<int(void*)>(mpi, "MPI_Barrier")(world) != 0) return 1;
  return find<int()>(mpi, "MPI_Finalize")() == 0 ? outcome : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
