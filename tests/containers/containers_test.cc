// Tests the images of docker/Dockerfile. Ranks in containers meet, share memory (or do not), read
// secrets and end as docs/docker.md says. The commands are those that a user would type.
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/containers/container_hosts.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

constexpr uid_t image_user = 1000;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Containers : public testing::Test {
 protected:
  static void SetUpTestSuite() { hosts_ = std::make_unique<ContainerHosts>(2); }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_->problem().empty()) GTEST_SKIP() << hosts_->problem();
  }

  static std::string address(int host) { return hosts_->address(host); }

  // Starts `docker WORDS...` on a host. If the command still runs at the end of the test, it is killed.
  Process& docker(int host, const Words& words) {
    return clients_.emplace_back(Words{"docker"} + words, hosts_->service(host));
  }
  // Returns the output of `docker WORDS...` on stdout.
  std::string output(int host, const Words& words) {
    Process& client = docker(host, words);
    EXPECT_EQ(client.wait(), 0) << client.report();
    return client.out();
  }
  // Starts a rank of a world of two. If a test expects a failure, the options must not contain --rm. With
  // --rm, older versions of podman lose the exit status, which is then always 0.
  Process& start(int host, int rank, const Words& options, const std::string& program,
                 const std::string& url) {
    return docker(host, Words{"run"} + options +
                            Words{"tutti", program, "--rank", std::to_string(rank), "--world-size", "2",
                                  "--init-method", url, "--backend", "tutti"});
  }
  // Waits until the container of `client` runs. `client` is a `docker run` on host 0, which writes the
  // container's id to `id_file`. Returns this id.
  std::string id_when_running(Process& client, const std::string& id_file) {
    std::string id;
    for (std::string running; running != "true\n";) {
      const std::optional<int> ended = client.wait(std::chrono::milliseconds(100));
      EXPECT_EQ(ended, std::nullopt) << client.report();
      if (ended) break;
      if (!(std::ifstream(id_file) >> id)) continue;
      Process& inspector = docker(0, {"inspect", "--format", "{{.State.Running}}", id});
      inspector.wait();
      running = inspector.out();
    }
    return id;
  }
  // Writes a file that only the image's user can read, and returns its path.
  std::string secret(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), 0400), 0);
    EXPECT_EQ(chown(path.c_str(), image_user, image_user), 0);
    return path;
  }
  // Makes a folder that belongs to the image's user. The folder has an ssh key that permits logins.
  // Returns the folder's path.
  std::string make_keys(const std::string& name) const {
    const std::string key = folder_ / name;
    Process made({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key});
    EXPECT_EQ(made.wait(), 0) << made.report();
    std::filesystem::copy_file(key + ".pub", folder_ / "authorized_keys");
    for (const std::string& path : {key, key + ".pub", folder_ / "authorized_keys", folder_.path()})
      EXPECT_EQ(chown(path.c_str(), image_user, image_user), 0);
    return folder_.path();
  }
  // Runs both ranks, and expects that both succeed. Returns what rank 0 wrote to stdout.
  std::string run_two(const std::vector<int>& hosts, const Words& options, const std::string& program,
                      const std::string& url) {
    Process& zero = start(hosts[0], 0, options, program, url);
    Process& one = start(hosts[1], 1, options, program, url);
    EXPECT_EQ(zero.wait(), 0) << zero.report();
    EXPECT_EQ(one.wait(), 0) << one.report();
    return zero.out();
  }

  // Removes what remains of a test, so that the next test finds free ports and addresses. After a failure,
  // also prints what podman has printed, since docker seldom says why it could not start a container.
  void TearDown() override {
    if (!hosts_->problem().empty()) return;
    hosts_->remove_containers();
    if (HasFailure()) std::cerr << hosts_->service_reports();
  }

  const ScratchFolder folder_;

 private:
  static inline std::unique_ptr<ContainerHosts> hosts_;
  std::deque<Process> clients_;
};

TEST_F(Containers, OnTwoMachinesMeetByTheEnvironment) {
  std::ofstream(folder_ / "env.list") << "MASTER_ADDR=" << address(0) << "\nMASTER_PORT=29500\n";
  EXPECT_THAT(run_two({0, 1}, {"--rm", "--net=host", "--env-file", folder_ / "env.list"}, "05_train_digits",
                      "env://"),
              HasSubstr("all 2 ranks hold bitwise equal weights"));
}

TEST_F(Containers, OnTwoMachinesMeetAtAnAddress) {
  EXPECT_THAT(run_two({0, 1}, {"--net=host"}, "02_all_reduce", "tcp://" + address(0) + ":29500"),
              HasSubstr("sum, in place: [2, 1, 10]"));
}

TEST_F(Containers, OnTwoMachinesMeetByAFileOnASharedMount) {
  const Words shared = {"--net=host", "-v", folder_.path() + ":/shared"};
  const std::string other_user = std::to_string(image_user + 1) + ":" + std::to_string(image_user + 1);
  ASSERT_EQ(chown(folder_.path().c_str(), image_user, image_user), 0);
  EXPECT_THAT(run_two({0, 1}, shared, "02_all_reduce", "file:///shared/meet"),
              HasSubstr("sum, in place: [2, 1, 10]"));
  ASSERT_EQ(chown(folder_.path().c_str(), image_user + 1, image_user + 1), 0);
  EXPECT_THAT(run_two({0, 1}, shared + Words{"--user", other_user}, "02_all_reduce", "file:///shared/other"),
              HasSubstr("sum, in place: [2, 1, 10]"));
}

// Containers have 64 MB in /dev/shm by default. --shm-size gives them far less here.
TEST_F(Containers, InTheNetworkOfOneMachineShareMemory) {
  EXPECT_THAT(run_two({0, 0}, {"--net=host", "--shm-size=64k", "-e", "TUTTI_TRANSPORTS=shm"}, "02_all_reduce",
                      "tcp://127.0.0.1:29500"),
              HasSubstr("sum, in place: [2, 1, 10]"));
}

TEST_F(Containers, WithNetworksOfTheirOwnUseTcp) {
  // podman keeps the addresses of containers that were killed, under the name of their network. So each run
  // of this test makes a network with a new name.
  const std::string job = "job" + std::to_string(getpid());
  Process& network = docker(0, {"network", "create", "--subnet", "10.204.0.0/24", job});
  ASSERT_EQ(network.wait(), 0) << network.report();
  const Words own = {"--net", job, "-e", "TUTTI_INIT_TIMEOUT=60s"};
  for (const bool only_shm : {true, false}) {
    const Words transports = only_shm ? Words{"-e", "TUTTI_TRANSPORTS=shm"} : Words{};
    // podman frees an address only some time after its container has ended. So each world has
    // its own address.
    const std::string ip = only_shm ? "10.204.0.10" : "10.204.0.11";
    const std::string url = "tcp://" + ip + ":29500";
    const std::string id_file = folder_ / (ip + ".id");
    Process& zero =
        start(0, 0, own + transports + Words{"--cidfile", id_file, "--ip", ip}, "02_all_reduce", url);
    // podman 4.3 sometimes fails if two containers of one network are made at the same time.
    id_when_running(zero, id_file);
    Process& one = start(0, 1, own + transports, "02_all_reduce", url);
    for (Process* const rank : {&zero, &one}) {
      EXPECT_EQ(rank->wait(), only_shm ? 1 : 0) << rank->report();
      const bool explained = rank->err().find("is in another network namespace") != std::string::npos;
      EXPECT_EQ(explained, only_shm) << rank->report();
    }
    EXPECT_EQ(zero.out().find("sum, in place: [2, 1, 10]") == std::string::npos, only_shm);
  }
}

TEST_F(Containers, NeedNoShmSize) {
  const Words small = {"run", "--shm-size=64k", "-e", "TUTTI_TRANSPORTS=shm", "tutti"};
  EXPECT_THAT(output(0, small + Words{"df", "--output=size", "-k", "/dev/shm"}), HasSubstr(" 64\n"));
  output(0, small + Words{"tutti", "bench", "all_reduce", "-n", "2", "--min-bytes", "96M", "--max-bytes",
                          "96M", "--iterations", "1", "--batch", "1"});
}

// The doctor warns of a small /dev/shm because other programs in the container may need it.
TEST_F(Containers, AreWarnedOfASmallShmByTheDoctor) {
  Process& doctor = docker(0, {"run", "--net=host", "--shm-size=64k", "tutti", "tutti", "doctor"});
  EXPECT_EQ(doctor.wait(), 0) << doctor.report();
  EXPECT_THAT(doctor.out(), HasSubstr("note: /dev/shm has only 64K of 64K free"));
  EXPECT_THAT(doctor.out(), HasSubstr("docker run --shm-size=1g"));
}

TEST_F(Containers, NeedNeitherRootNorAHome) {
  EXPECT_EQ(output(0, {"run", "tutti", "id", "-u"}), "1000\n");
  EXPECT_THAT(output(0, {"run", "--user", "4321:4321", "--read-only", "--cap-drop=ALL", "tutti", "tutti",
                         "run", "-n", "2", "--", "02_all_reduce"}),
              HasSubstr("sum, in place: [2, 1, 10]"));
}

TEST_F(Containers, RunAProgramThatWasBuiltInOne) {
  std::ofstream(folder_ / "Dockerfile") << R"(
FROM tutti:build AS build
COPY . /src
RUN cmake -S /src -B /build && cmake --build /build

FROM tutti
COPY --from=build /build/my_program /usr/local/bin/
)";
  std::ofstream(folder_ / "CMakeLists.txt") << R"(
cmake_minimum_required(VERSION 3.23)
project(my_program LANGUAGES CXX)
find_package(tutti REQUIRED)
add_executable(my_program my_program.cc)
target_link_libraries(my_program PRIVATE tutti::tutti)
)";
  std::ofstream(folder_ / "my_program.cc") << R"(
#include <cstdio>
#include <tutti/tutti.h>
int main() { std::printf("%d ranks\n", tutti::init().size()); }
)";
  output(0, {"build", "-t", "my_program", folder_.path()});
  EXPECT_EQ(output(0, {"run", "my_program", "tutti", "run", "-n", "2", "--", "my_program"}),
            "2 ranks\n2 ranks\n");
}

TEST_F(Containers, ReadASecretFromAFile) {
  const std::string token = secret("token", "0123456789abcdef0123456789abcdef\n");
  const Words options = {"--net=host", "-e", "TUTTI_TLS=1", "-e", "TUTTI_TOKEN_FILE=/run/secrets/token"};
  const std::string url = "tcp://" + address(0) + ":29500";
  const Words mounted = options + Words{"-v", token + ":/run/secrets/token:ro"};
  const std::string id_file = folder_ / "zero.id";
  Process& zero = start(0, 0, mounted + Words{"--cidfile", id_file}, "01_hello", url);
  const std::string shown = output(0, {"inspect", id_when_running(zero, id_file)});
  EXPECT_THAT(shown, HasSubstr("TUTTI_TOKEN_FILE=/run/secrets/token"));
  EXPECT_THAT(shown, Not(HasSubstr("0123456789abcdef")));

  const std::string other = secret("other", "fedcba9876543210fedcba9876543210\n");
  Process& stranger = start(1, 1, options + Words{"-v", other + ":/run/secrets/token:ro"}, "01_hello", url);
  EXPECT_EQ(stranger.wait(), 1) << stranger.report();
  EXPECT_THAT(stranger.err(), HasSubstr("TUTTI_TOKEN"));
  Process& one = start(1, 1, mounted, "01_hello", url);
  EXPECT_EQ(one.wait(), 0) << one.report();
  EXPECT_EQ(one.err(), "");  // no warning that others can read the file
  EXPECT_EQ(zero.wait(), 0) << zero.report();
  EXPECT_THAT(zero.err(), HasSubstr("rank 1 at " + address(1)));
}

TEST_F(Containers, TellWhichSecretTheyCannotRead) {
  const std::string token = secret("token", "0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(chown(token.c_str(), 0, 0), 0);
  Process& client = docker(0, {"run", "-v", token + ":/run/secrets/token:ro", "-e",
                               "TUTTI_TOKEN_FILE=/run/secrets/token", "tutti", "01_hello"});
  EXPECT_EQ(client.wait(), 1) << client.report();
  EXPECT_THAT(client.err(), HasSubstr("/run/secrets/token"));
  EXPECT_THAT(client.err(), HasSubstr("Permission denied"));
}

// A container without an init process would ignore SIGTERM until `docker stop` kills it. The images have an
// init process.
TEST_F(Containers, EndAtOnceWhenTheyAreStopped) {
  output(0, {"run", "-d", "--name=waiting", "--net=host", "tutti", "01_hello", "--rank", "0", "--world-size",
             "2", "--init-method", "tcp://127.0.0.1:29500"});
  const std::string is_running = "until grep -q 01_hello /proc/[0-9]*/comm; do sleep 0.1; done";
  output(0, {"exec", "waiting", "timeout", "60", "sh", "-c", is_running});
  output(0, {"stop", "--time=200", "waiting"});
  EXPECT_EQ(output(0, {"wait", "waiting"}), "143\n");
}

// The whole job has one key. The key permits logins, and the hosts prove their identity with it.
// Kubeflow's MPI operator mounts such a key, and starts sshd with the second command.
TEST_F(Containers, AreHostsOfTheLauncher) {
  const std::string keys = make_keys("id_rsa");
  const Words job = {"--net=host", "-v", keys + ":/home/tutti/.ssh:ro"};
  output(0, Words{"run", "-d"} + job + Words{"tutti:sshd"});
  output(1, Words{"run", "-d"} + job + Words{"tutti:sshd", "/usr/sbin/sshd", "-De"});
  EXPECT_THAT(output(0, Words{"run"} + job +
                            Words{"tutti:sshd", "tutti", "run", "-H", address(0) + ":2," + address(1) + ":2",
                                  "--", "02_all_reduce"}),
              HasSubstr("sum, in place: [4, 6, 60]"));
}

// Each host makes its own key when it starts, so no other host knows that key yet.
TEST_F(Containers, WithKeysOfTheirOwnAreTrustedOnlyIfAsked) {
  const std::string keys = make_keys("id_ed25519");
  output(1, {"run", "-d", "--net=host", "-v", keys + "/authorized_keys:/home/tutti/.ssh/authorized_keys:ro",
             "tutti:sshd"});
  const Words launch = {
      "run", "--net=host",     "-v", keys + ":/home/tutti/.ssh:ro", "tutti:sshd", "tutti", "run",
      "-H",  address(1) + ":2"};
  const Words program = {"--", "02_all_reduce"};
  Process& refused = docker(0, launch + program);
  EXPECT_EQ(refused.wait(), 1) << refused.report();
  EXPECT_THAT(refused.err(), HasSubstr("Host key verification failed"));
  EXPECT_THAT(output(0, launch + Words{"--ssh-args", "-o StrictHostKeyChecking=accept-new"} + program),
              HasSubstr("sum, in place: [2, 1, 10]"));
}

}  // namespace
}  // namespace tutti::test
