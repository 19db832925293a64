#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tutti::tools::doctor {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct AddressFacts {
  std::string address = {};  // literal
  int prefix = 0;            // the length of the network's part, in bits
  std::uint16_t port = 0;    // where the probe listens; 0 if it does not
};

struct InterfaceFacts {
  std::string name = {};
  bool loopback = false;
  int mtu = 0;                               // 0 if it is not known
  std::int64_t speed = 0;                    // in Mb/s; 0 if it is not known
  std::vector<AddressFacts> addresses = {};  // in the order of `Interface`
};

struct RdmaPort {
  std::string name = {};  // "mlx5_0", or "mlx5_0:2" if it is not the first port
  bool active = false;
};

// `HostFacts` are what a probe can tell about its host without any other host.
struct HostFacts {
  std::string version = {};
  std::string build = {};
  std::string kernel = {};
  std::string processor = {};  // the name of the model
  int cores = 0;               // that a process may use
  std::uint64_t memlock = 0;
  std::uint64_t open_files = 0;
  std::uint64_t shm_bytes = 0;  // 0 if there is no /dev/shm
  std::uint64_t shm_free = 0;
  std::vector<InterfaceFacts> interfaces = {};
  std::string filter = {};  // the choice of interfaces by a variable; empty if there is none
  std::string filter_variable = {};
  std::string port_range = {};  // TUTTI_PORT_RANGE
  std::string route = {};  // the address from which packets to the launcher leave; empty if there is none
  std::string listen_problem = {};  // why the probe does not listen on one of the addresses; may be empty
  bool has_folder = true;           // in which a job would start its ranks
  std::vector<RdmaPort> rdma = {};
  std::vector<std::string> gpus = {};  // their models
};

// Looks at this machine. What depends on variables, on the launcher or on the responder is left out.
HostFacts look_at_host();

}  // namespace tutti::tools::doctor
