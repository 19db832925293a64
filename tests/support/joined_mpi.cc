#include "tests/support/joined_mpi.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/launch/environment.h"
#include "transport/mpi/search.h"

namespace tutti::test {
namespace {

std::unique_ptr<mpi::Library> open_library() {
  const char* const which = std::getenv("TUTTI_TEST_MPI");
  std::vector<std::string> names = {TUTTI_FAKE_MPI};
  if (which != nullptr && std::string_view(which) == "launcher")
    names = mpi::library_names("", mpi::launcher_of(environment_of_process()));
  return mpi::Library::open(names).take();
}

bool has_joined = false;

class FinalizeAtTheEnd final : public testing::Environment {
 public:
  // The ranks of the tests are threads of this process, so MPI_Finalize waits for no other process.
  void TearDown() override {
    if (has_joined && !JoinedMpi::instance().library().is_finalized())
      JoinedMpi::instance().library().finalize();
  }
};

const auto* const at_the_end = testing::AddGlobalTestEnvironment(new FinalizeAtTheEnd);

}  // namespace

// The object is never destroyed, since MPI may still hold its memory.
JoinedMpi& JoinedMpi::instance() {
  static auto* const joined = new JoinedMpi;
  return *joined;
}

JoinedMpi::JoinedMpi() : library_(open_library()) {
  require(library_->initialize(), "MPI_Init_thread");
  has_joined = true;
}

std::unique_ptr<mpi::Messenger> JoinedMpi::messenger(std::uint64_t world) const {
  mpi::Handle copy, request;
  require(library_->start_copy(library_->world(), copy, request), "MPI_Comm_idup");
  for (bool done = false; !done;) require(library_->test(request, done), "MPI_Test");
  require(library_->return_errors(copy), "MPI_Comm_set_errhandler");
  int rank = 0;
  require(library_->rank_in(copy, rank), "MPI_Comm_rank");
  return std::make_unique<mpi::Messenger>(*library_, copy, world, rank);
}

void JoinedMpi::require(mpi::Outcome outcome, const char* call) const {
  if (const Status status = library_->status_of(outcome, call); !status.ok()) throw Error(status);
}

}  // namespace tutti::test
