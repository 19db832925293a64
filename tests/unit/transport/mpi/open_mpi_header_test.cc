// Tests that transport/mpi/abi.h agrees with the mpi.h of Open MPI, if CMake has found it.
#include <gtest/gtest.h>

#if __has_include(<mpi.h>)
#include <string_view>

#define OMPI_SKIP_MPICXX 1  // without the C++ functions of MPI 2, which would need a library
#include <mpi.h>

#include "tests/unit/transport/mpi/compare.h"

namespace tutti::mpi {
namespace {

// A handle is the address of a symbol, so the macro for the handle must expand to words that name the symbol.
constexpr bool names(std::string_view words, std::string_view symbol) {
  return words.find(symbol) != std::string_view::npos;
}
#define TUTTI_WORDS_OF(...) #__VA_ARGS__
#define TUTTI_EXPANDED(...) TUTTI_WORDS_OF(__VA_ARGS__)

TUTTI_ALL_AGREE(void*);
TUTTI_LEVELS_AGREE(open_mpi_abi::levels);
static_assert(MPI_ANY_SOURCE == open_mpi_abi::any_source);
static_assert(std::is_pointer_v<MPI_Comm> && std::is_pointer_v<MPI_Request>);
static_assert(names(TUTTI_EXPANDED(MPI_COMM_WORLD), open_mpi_abi::comm_world));
static_assert(names(TUTTI_EXPANDED(MPI_BYTE), open_mpi_abi::byte));
static_assert(names(TUTTI_EXPANDED(MPI_ERRORS_RETURN), open_mpi_abi::errors_return));

// A pointer is not a constant at compile time, so this comparison happens at run time.
TEST(OpenMpiHeader, AgreesWithTheDeclarations) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(MPI_STATUS_IGNORE), open_mpi_abi::status_ignore);
}

}  // namespace
}  // namespace tutti::mpi

#else

TEST(OpenMpiHeader, AgreesWithTheDeclarations) {
  GTEST_SKIP() << "Open MPI's mpi.h (Debian's package libopenmpi-dev) is not installed";
}

#endif
