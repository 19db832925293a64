#pragma once

#include <memory>

#include "transport/mpi/messenger.h"

namespace tutti::test {

// `JoinedMpi` is this process's part in an MPI. The MPI is the tests' fake, unless TUTTI_TEST_MPI is
// "launcher": then it is the MPI of the launcher. MPI is finalized after all tests, unless a test does so.
class JoinedMpi {
 public:
  static JoinedMpi& instance();

  const mpi::Library& library() const { return *library_; }
  // Returns a messenger with a communicator of its own. `world` is the number of its MPI world.
  std::unique_ptr<mpi::Messenger> messenger(std::uint64_t world = 1) const;

 private:
  JoinedMpi();
  void require(mpi::Outcome outcome, const char* call) const;

  const std::unique_ptr<mpi::Library> library_;
};

}  // namespace tutti::test
