#include "tests/support/ssh_hosts.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace tutti::test {
namespace {

constexpr const char* server = "/usr/sbin/sshd";
constexpr std::array host_names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"};

std::string missing_program() {
  for (const char* const program : {server, "/usr/bin/ssh", "/usr/bin/ssh-keygen"}) {
    if (access(program, X_OK) != 0) return std::string("no hosts with ssh: there is no ") + program;
  }
  return {};
}

void make_key(const std::string& path) {
  Process process({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path});
  if (process.wait() != 0) throw std::runtime_error(process.report());
}

}  // namespace

SshHosts::SshHosts(int count, int cards) : count_(count), network_(count + 1, cards) {
  problem_ = network_.problem();
  if (problem_.empty()) problem_ = missing_program();
  if (!problem_.empty()) return;
  write_files();
  start_servers();
}

std::string SshHosts::name(int host) const {
  return host == desk() ? "desk" : host_names.at(static_cast<std::size_t>(host));
}

// The mounts below vanish when the command ends, because `ip netns exec` gives the command its own mount
// namespace.
std::vector<std::string> SshHosts::on(int host, std::vector<std::string> command) const {
  constexpr const char* enter = R"(
    mount --bind "$1" /etc/hosts && mount -t tmpfs none /run && hostname "$2" && shift 2 && exec "$@")";
  command.insert(command.begin(),
                 {"unshare", "--uts", "sh", "-c", enter, "enter", folder_ / "hosts", name(host)});
  return network_.on(host, std::move(command));
}

Process SshHosts::launch(int host, const std::vector<std::string>& words,
                         const Process::Environment& environment) const {
  const std::string program = std::string(TUTTI_BIN_DIR) + "/tutti";
  std::vector<std::string> command = {program, "run",        "--ssh-port",
                                      "2222",  "--ssh-args", "-F " + (folder_ / "ssh_config")};
  command.insert(command.end(), words.begin(), words.end());
  return Process(on(host, command), environment);
}

std::vector<pid_t> SshHosts::pids_in(int host) const {
  std::vector<pid_t> pids = network_.pids_in(host);
  std::erase_if(pids, [](pid_t pid) {
    const std::string program = program_of(pid);
    return program.empty() || program.starts_with("sshd");
  });
  return pids;
}

void SshHosts::write_files() const {
  std::ofstream hosts(folder_ / "hosts");
  hosts << "127.0.0.1 localhost\n";
  for (int host = 0; host <= desk(); ++host) hosts << address(host) << ' ' << name(host) << '\n';

  make_key(folder_ / "user_key");
  make_key(folder_ / "host_key");
  std::ofstream(folder_ / "known_hosts") << "* " << std::ifstream(folder_ / "host_key.pub").rdbuf();
  std::ofstream(folder_ / "ssh_config") << "IdentitiesOnly yes\nIdentityFile " << folder_ / "user_key"
                                        << "\nUserKnownHostsFile " << folder_ / "known_hosts" << '\n';
  // This key exchange is fast. The default key exchange takes more processor time than the rest of a login.
  std::ofstream(folder_ / "sshd_config") << "AuthorizedKeysFile " << folder_ / "user_key.pub"
                                         << "\nHostKey " << folder_ / "host_key"
                                         << "\nSetEnv HOME=" << folder_ / "home"
                                         << R"(
AddressFamily inet
KbdInteractiveAuthentication no
KexAlgorithms curve25519-sha256
MaxStartups 200
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
Port 2222
StrictModes no
UseDNS no
UsePAM no
)";
  std::filesystem::create_directory(folder_ / "home");
}

void SshHosts::start_servers() {
  const std::string command =
      "mkdir /run/sshd && exec " + std::string(server) + " -D -e -f " + folder_ / "sshd_config" + " 2>&1";
  for (int host = 0; host < count_; ++host) servers_.emplace_back(on(host, {"sh", "-c", command}));
  for (Process& process : servers_) {
    if (!process.wait_for_output("Server listening")) throw std::runtime_error(process.report());
  }
}

}  // namespace tutti::test
