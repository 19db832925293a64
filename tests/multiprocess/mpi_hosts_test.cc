// Tests that ranks on two hosts meet under Open MPI's mpirun and MPICH's mpiexec without settings.
// The hosts are network namespaces that the launchers reach by ssh.
#include <fstream>
#include <string>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/ssh_hosts.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// `LauncherOnHosts` is a launcher that starts ranks on two hosts.
class LauncherOnHosts {
 public:
  virtual ~LauncherOnHosts() = default;
  virtual std::string program() const = 0;
  virtual std::string package() const = 0;
  // Returns the options that let the launcher reach the hosts and start two ranks on each host.
  virtual Words options(const SshHosts& hosts) const = 0;
  // Returns a text that the error must contain if rank 3 never arrives.
  virtual std::string absence() const = 0;
};

class OpenMpi final : public LauncherOnHosts {
 public:
  std::string program() const override { return "mpirun.openmpi"; }
  std::string package() const override { return "openmpi-bin"; }
  Words options(const SshHosts& hosts) const override {
    std::string words;
    for (const std::string& word : hosts.ssh_options()) words += word + " ";
    return {"--allow-run-as-root", "-mca", "plm_rsh_agent", "ssh",           "-mca",
            "plm_rsh_args",        words,  "--host",        "alpha:2,beta:2"};
  }
  std::string absence() const override { return "rank 3 has not arrived"; }
};

class Mpich final : public LauncherOnHosts {
 public:
  std::string program() const override { return "mpiexec.hydra"; }
  std::string package() const override { return "mpich"; }
  Words options(const SshHosts& hosts) const override {
    // mpiexec runs this command in place of ssh.
    const std::string command = folder_ / "ssh";
    std::ofstream script(command);
    script << "#!/bin/sh\nexec ssh";
    for (const std::string& word : hosts.ssh_options()) script << ' ' << word;
    script << " \"$@\"\n";
    script.close();
    chmod(command.c_str(), 0700);
    return {"-launcher", "ssh", "-launcher-exec", command, "-hosts", "alpha,beta", "-ppn", "2"};
  }
  std::string absence() const override { return "not all ranks have come to the launcher's fence"; }

 private:
  ScratchFolder folder_;
};

template <class Launcher>
class OnTwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_installed(launcher_.program())) {
      GTEST_SKIP() << launcher_.program() << " (Debian's package " << launcher_.package()
                   << ") is not installed";
    }
    if (!hosts_.problem().empty()) GTEST_SKIP() << hosts_.problem();
  }
  // Returns the command that starts the launcher on the first host. `ranks` begins with -n.
  Words start(const Words& ranks) const {
    return hosts_.on(0, Words{launcher_.program()} + launcher_.options(hosts_) + ranks);
  }

  const Launcher launcher_;
  const SshHosts hosts_{2};
};

using Launchers = testing::Types<OpenMpi, Mpich>;

class LauncherNames {
 public:
  template <class Launcher>
  static std::string GetName(int) {
    return std::is_same_v<Launcher, OpenMpi> ? "OpenMpi" : "Mpich";
  }
};
TYPED_TEST_SUITE(OnTwoHosts, Launchers, LauncherNames);

TYPED_TEST(OnTwoHosts, RanksMeetWithoutSettings) {
  Process job(this->start({"-n", "4", pmi_rank, "2"}));
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(4) + sum_on(4) + "stayed\n") << job.report();
}

TYPED_TEST(OnTwoHosts, RanksMeetThroughMpi) {
  Process job(this->start({"-n", "4", TUTTI_BIN_DIR "/tests/mpi_meeting_rank", "second", "2"}));
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(4) + sum_on(4)) << job.report();
}

TYPED_TEST(OnTwoHosts, ARankThatDoesNotComeEndsInAnError) {
  const Errors errors;
  const Words absent = {":", "-n", "1", "sleep", "1000"};
  Process job(this->start(Words{"-n", "3"} + errors.rank() + absent), {{"TUTTI_INIT_TIMEOUT", "6s"}});
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr(this->launcher_.absence())) << job.report();
  EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
}

TYPED_TEST(OnTwoHosts, ARankThatIsKilledEndsTheJob) {
  const Words killed = {":", "-n", "1", "sh", "-c", "kill -9 $$"};
  Process job(this->start(Words{"-n", "3", pmi_rank, "1"} + killed));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
}

}  // namespace
}  // namespace tutti::test
