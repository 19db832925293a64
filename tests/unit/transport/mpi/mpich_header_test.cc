// Tests that transport/mpi/abi.h agrees with the mpi.h of MPICH, if CMake has found it.
#include <gtest/gtest.h>

#if __has_include(<mpi.h>)
#define MPICH_SKIP_MPICXX 1  // without the C++ functions of MPI 2, which would need a library
#include <mpi.h>

#include "tests/unit/transport/mpi/compare.h"

namespace tutti::mpi {
namespace {

TUTTI_ALL_AGREE(int);
TUTTI_LEVELS_AGREE(mpich_abi.levels);
static_assert(MPI_ANY_SOURCE == mpich_abi.any_source);
static_assert(std::is_same_v<MPI_Comm, int> && std::is_same_v<MPI_Request, int>);
static_assert(MPI_COMM_WORLD == static_cast<int>(mpich_abi.comm_world));
static_assert(MPI_BYTE == static_cast<int>(mpich_abi.byte));
static_assert(MPI_ERRORS_RETURN == static_cast<int>(mpich_abi.errors_return));

// A pointer is not a constant at compile time, so this comparison happens at run time.
TEST(MpichHeader, AgreesWithTheDeclarations) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(MPI_STATUS_IGNORE), mpich_abi.status_ignore);
}

}  // namespace
}  // namespace tutti::mpi

#else

TEST(MpichHeader, AgreesWithTheDeclarations) {
  GTEST_SKIP() << "MPICH's mpi.h (Debian's package libmpich-dev) is not installed";
}

#endif
