// Tests that transport/mpi/abi.h agrees with the header of the MPI standard's ABI, if CMake has found it.
#include <gtest/gtest.h>

#if __has_include(<mpi_abi.h>)
#include <mpi_abi.h>

#include "tests/unit/transport/mpi/compare.h"

namespace tutti::mpi {
namespace {

TUTTI_ALL_AGREE(void*);
TUTTI_LEVELS_AGREE(standard_abi.levels);
static_assert(MPI_ANY_SOURCE == standard_abi.any_source);
static_assert(std::is_pointer_v<MPI_Comm> && std::is_pointer_v<MPI_Request>);

template <class Pointer>
std::uintptr_t number(Pointer pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// A pointer is not a constant at compile time, so this comparison happens at run time.
TEST(MpiStandardHeader, AgreesWithTheDeclarations) {
  EXPECT_EQ(number(MPI_COMM_WORLD), standard_abi.comm_world);
  EXPECT_EQ(number(MPI_BYTE), standard_abi.byte);
  EXPECT_EQ(number(MPI_ERRORS_RETURN), standard_abi.errors_return);
  EXPECT_EQ(number(MPI_STATUS_IGNORE), standard_abi.status_ignore);
}

}  // namespace
}  // namespace tutti::mpi

#else

TEST(MpiStandardHeader, AgreesWithTheDeclarations) {
  GTEST_SKIP() << "mpi_abi.h, the header of the MPI standard's ABI (MPICH 5 has it), is not installed";
}

#endif
