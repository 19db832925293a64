// Tests which MPI launcher is recognised, and which MPI libraries are tried.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/mpi/library.h"
#include "transport/mpi/search.h"

namespace tutti::mpi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MpiSearch, TheLauncherIsKnownByItsVariables) {
  EXPECT_FALSE(launcher_of({}).has_value());
  EXPECT_FALSE(launcher_of({{"PMI_SIZE", "four"}}).has_value());
  EXPECT_FALSE(launcher_of({{"PMI_SIZE", "0"}}).has_value());
  const auto open_mpi = launcher_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "9"}});
  ASSERT_TRUE(open_mpi.has_value());
  EXPECT_TRUE(open_mpi->is_open_mpi);
  EXPECT_EQ(open_mpi->size, 4);
  EXPECT_THAT(open_mpi->description, HasSubstr("OMPI_COMM_WORLD_SIZE=4"));
  const auto hydra = launcher_of({{"PMI_SIZE", "9"}});
  ASSERT_TRUE(hydra.has_value());
  EXPECT_FALSE(hydra->is_open_mpi);
  EXPECT_EQ(hydra->size, 9);
}

TEST(MpiSearch, TheLibraryOfTheLauncherComesFirst) {
  EXPECT_EQ(library_names("", Launcher{"", 2, true}).front(), "libmpi.so.40");
  EXPECT_EQ(library_names("", Launcher{"", 2, false}).front(), "libmpich.so.12");
  EXPECT_EQ(library_names("", {}).size(), 5u);
}

TEST(MpiSearch, TheUsersChoiceIsTheOnlyOne) {
  EXPECT_THAT(library_names("/opt/libmpi.so", Launcher{"", 2, true}), ElementsAre("/opt/libmpi.so"));
}

TEST(MpiLibrary, AFileThatIsMissingIsNamed) {
  const auto library = Library::open(std::vector<std::string>{"/no/libmpi.so"});
  EXPECT_EQ(library.status().code(), Code::unsupported);
  EXPECT_THAT(library.status().message(), HasSubstr("/no/libmpi.so"));
}

TEST(MpiLibrary, ALibraryThatIsNoMpiIsRefused) {
  const auto library = Library::open(std::vector<std::string>{"libc.so.6"});
  EXPECT_EQ(library.status().code(), Code::unsupported);
  EXPECT_THAT(library.status().message(), HasSubstr("libc.so.6 is no MPI library"));
}

// The process has not started MPI, so only the functions that work before MPI_Init_thread are called.
void expect_family(const std::string& name, Family family, const std::string& maker) {
  const auto library = Library::open(std::vector<std::string>{name});
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  EXPECT_EQ((*library)->family(), family);
  EXPECT_THAT((*library)->describe(), HasSubstr(name));
  EXPECT_THAT((*library)->describe(), HasSubstr(maker));
  EXPECT_FALSE((*library)->is_initialized());
  EXPECT_FALSE((*library)->is_finalized());
}

TEST(MpiLibrary, OpenMpiIsRecognised) { expect_family("libmpi.so.40", Family::open_mpi, "Open MPI"); }
TEST(MpiLibrary, MpichIsRecognised) { expect_family("libmpich.so.12", Family::mpich, "MPICH"); }
TEST(MpiLibrary, TheStandardAbiIsRecognised) { expect_family("libmpi_abi.so.1", Family::standard, ""); }

}  // namespace
}  // namespace tutti::mpi
