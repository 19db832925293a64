// Tests that `init` refuses ranks of another build, and meeting places that contradict each other. Also tests
// which names of transports it accepts.
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/config.h>
#include <tutti/init.h>
#include <tutti/version.h>

#include "rendezvous/meeting/exchange.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/store/memory/memory_store.h"
#include "rendezvous/store/prefix_store.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of_rank_0(const std::shared_ptr<Store>& store) {
  try {
    init(store, 0, 2, {.timeout = seconds(60)});
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::mismatch);
    return error.what();
  }
}

TEST(Init, AnotherBuildIsNamedOnBothSides) {
  const auto store = std::make_shared<MemoryStore>();
  std::string refusal;
  std::jthread rank_0([&] { refusal = refusal_of_rank_0(store); });
  // The build of rank 1 differs from the build of rank 0 in only one digit.
  PrefixStore keys("tutti/" + Config().job_id, store);
  const Deadline ample = Deadline::after(seconds(60));
  Introduction other = decode_introduction(keys.get("session", ample).take()).take();
  EXPECT_EQ(other.version, std::string(version()) + " (build " + std::string(build()) + ")");
  const std::string ours = other.version;
  other.rank = 1;
  other.nonce = "another";
  other.version[other.version.size() - 2] = 'x';
  const Status met = exchange(keys, other, {}, ample).status();
  rank_0.join();
  for (const std::string& text : {met.message(), refusal})
    EXPECT_THAT(text, AllOf(HasSubstr("version " + ours + " on rank 0 (host "),
                            HasSubstr("but " + other.version + " on rank 1 (host ")));
}

TEST(Init, TransportsByName) {
  EXPECT_EQ(init(std::make_shared<MemoryStore>(), 0, 1, {.transports = {"auto"}}).size(), 1);
  const std::vector<std::vector<std::string>> lists = {{"pigeon"}, {"auto", "pigeon"}, {"tcp", "auto"}};
  for (const std::vector<std::string>& unknown : lists) {
    try {
      init(std::make_shared<MemoryStore>(), 0, 1, {.transports = unknown});
      ADD_FAILURE() << unknown.back();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.what(),
                  HasSubstr("there are: shm, verbs, tcp, mpi, nccl, or auto alone, for all that can run"));
    }
  }
}

// MPI must not be initialized for a job that meets elsewhere.
TEST(Init, AnotherPlaceThanMpiIsAContradiction) {
  setenv("TUTTI_INIT_METHOD", "mpi://", 1);
  setenv("TUTTI_MPI_LIBRARY", "/no/libmpi.so", 1);
  try {
    init({.url = "tcp://127.0.0.1:1?rank=0&world_size=1"});
    ADD_FAILURE() << "there is no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("at mpi:// according to TUTTI_INIT_METHOD"));
  }
  unsetenv("TUTTI_INIT_METHOD");
  unsetenv("TUTTI_MPI_LIBRARY");
}

}  // namespace
}  // namespace tutti
