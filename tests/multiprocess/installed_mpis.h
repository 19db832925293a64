#pragma once

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

// These helpers are for tests that run under the launcher of each MPI that is installed.
namespace tutti::test {

inline const std::string mpi_rank = TUTTI_BIN_DIR "/tests/mpi_meeting_rank";

// `Mpi` is an MPI that may be installed.
struct Mpi {
  std::string name;
  Words launcher;
  std::string package;
  std::string library;
  std::string other_library;
};

inline std::ostream& operator<<(std::ostream& out, const Mpi& mpi) { return out << mpi.name; }

inline const Mpi open_mpi = {
    "OpenMpi", {"mpirun.openmpi", "--oversubscribe"}, "openmpi-bin", "libmpi.so.40", "libmpich.so.12"};
inline const Mpi mpich = {"Mpich", {"mpiexec.hydra"}, "mpich", "libmpich.so.12", "libmpi.so.40"};

inline const auto each_mpi = testing::Values(open_mpi, mpich);
inline std::string name_of_mpi(const testing::TestParamInfo<Mpi>& tested) { return tested.param.name; }

// `UnderEachMpi` is a suite that is skipped if the launcher of its MPI is not installed.
class UnderEachMpi : public testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    const std::string& program = GetParam().launcher.front();
    if (!is_installed(program))
      GTEST_SKIP() << program << " (Debian's package " << GetParam().package << ") is not installed";
  }
  static Words ranks(int number, const Words& command) {
    return GetParam().launcher + Words{"-n", std::to_string(number)} + command;
  }
  static Process::Environment with(Process::Environment environment = {}) {
    environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
    return environment;
  }
};

}  // namespace tutti::test
