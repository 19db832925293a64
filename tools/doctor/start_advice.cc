#include "tools/doctor/start_advice.h"

#include <string_view>

namespace tutti::tools::doctor {
namespace {

struct Advice {
  // Part of an error text of the launcher, the agent, ssh or the dynamic loader.
  std::string_view phrase;
  std::string_view text;  // HOST stands for the host's name
};

// The first entry whose phrase occurs in the error text gives the advice.
constexpr Advice advices[] = {
    {"runs tutti",
     "install the same build of tutti on HOST, or give the place of such a build by --prefix DIR"},
    {"install it there", "install tutti on HOST at the same path, or name its folder with --prefix DIR"},
    {"shared librar", "install the library on HOST; ldd shows where it is looked for"},
    {"called back",
     "let HOST connect to this machine: open the ports of TUTTI_PORT_RANGE in the firewall here, or name an "
     "address that HOST reaches by --call-back ADDRESS"},
    {"ssh: not found",
     "install an ssh client on this machine (apt-get install openssh-client), or name another way by "
     "--agent"},
    {"Permission denied", "ssh-copy-id HOST"},
    {"Host key verification failed",
     "ssh-keyscan HOST >> ~/.ssh/known_hosts (with -p PORT if its sshd has another port than 22), once you "
     "have compared the key with HOST's own"},
    {"Could not resolve hostname", "an entry for HOST in /etc/hosts, or its address in place of its name"},
    {"port in TUTTI_PORT_RANGE", "a wider TUTTI_PORT_RANGE"},
    {"(TUTTI_PORT_RANGE) is free", "a wider TUTTI_PORT_RANGE"},
    {"Connection refused",
     "start sshd on HOST (systemctl start ssh), or name its port by --ssh-port, or another way by --agent"},
    {"No route to host", "switch HOST on, connect it, or open the port of its sshd in the firewalls"},
    {"timed out", "switch HOST on, connect it, or open the port of its sshd in the firewalls"},
    {"did not come up within", "see whether `ssh HOST true` ends; --start-timeout allows more time"},
    {"is lost", "see whether HOST still answers, and the log of its kernel (dmesg)"},
};

}  // namespace

std::string start_advice(const std::string& host, const std::string& failure) {
  for (const Advice& advice : advices) {
    if (failure.find(advice.phrase) == failure.npos) continue;
    std::string text(advice.text);
    constexpr std::string_view placeholder = "HOST";
    for (std::size_t at = 0; (at = text.find(placeholder, at)) != text.npos; at += host.size()) {
      text.replace(at, placeholder.size(), host);
    }
    return text;
  }
  return "see what `ssh " + host + " true` says";
}

}  // namespace tutti::tools::doctor
