#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tutti::tools::doctor {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// `AddressFacts` describes one address of an interface.
struct AddressFacts {
  std::string address = {};  // literal
  int prefix = 0;            // the number of bits in the network prefix
  std::uint16_t port = 0;    // the port on which the probe listens; 0 if it does not listen
};

struct InterfaceFacts {
  std::string name = {};
  bool loopback = false;
  int mtu = 0;                               // 0 if it is not known
  std::int64_t speed = 0;                    // in Mb/s; 0 if it is not known
  std::vector<AddressFacts> addresses = {};  // in the same order as in `Interface`
};

struct RdmaPort {
  std::string name = {};  // "mlx5_0", or "mlx5_0:2" if it is not the first port
  bool active = false;
};

// `HostFacts` holds what the probe of a host can find out without the help of other hosts.
struct HostFacts {
  std::string version = {};
  std::string build = {};
  std::string kernel = {};
  std::string processor = {};  // the name of the model
  int cores = 0;               // the number that a process may use
  std::uint64_t memlock = 0;
  std::uint64_t open_files = 0;
  std::uint64_t shm_bytes = 0;  // 0 if there is no /dev/shm
  std::uint64_t shm_free = 0;
  std::vector<InterfaceFacts> interfaces = {};
  // The value of the variable that chooses interfaces; empty if no such variable is set.
  std::string filter = {};
  std::string filter_variable = {};
  std::string port_range = {};  // the value of TUTTI_PORT_RANGE
  std::string route = {};  // the address from which packets to the launcher leave; empty if there is no route
  // This says why the probe cannot listen on one of the addresses. It is empty if the probe listens on all of
  // them.
  std::string listen_problem = {};
  // True if the host has the folder in which a job would start its ranks.
  bool has_folder = true;
  std::vector<RdmaPort> rdma = {};
  // The ports of RDMA devices that ranks would use, such as "mlx5_0 port 1, RoCEv2, IPv4 10.7.0.1". If
  // `cards` is empty, `no_cards` says why ranks would use none.
  std::string cards = {};
  std::string no_cards = {};
  std::vector<std::string> gpus = {};  // their models
};

// Returns facts about this machine. The caller must add the facts that depend on environment
// variables, on the launcher, or on the `Responder`, which answers the probes of other hosts.
HostFacts look_at_host();

}  // namespace tutti::tools::doctor
