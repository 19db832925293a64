#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// `LinkCost` is the cost of messages between two ranks in the LogGP model (Alexandrov, Ionescu, Schauser,
// Scheiman 1995). The model separates the time that a message keeps a core busy from the time that it
// occupies a connection. Ranks that share cores compete for the cores, but not for the connections. A message
// of n bytes
//   - occupies the sender's and the receiver's port for gap + n * beta,
//   - keeps a core busy at either end for busy + n * busy_byte,
//   - arrives alpha + n * beta after it has left; `handshake` is added if it is not sent eagerly.
struct LinkCost {
  double alpha = 20e-6;        // seconds
  double gap = 5e-6;           // seconds per message
  double beta = 0.4e-9;        // seconds per byte
  double busy = 2.5e-6;        // core seconds per message, at each end
  double busy_byte = 0.15e-9;  // core seconds per byte, at each end
  double handshake = 0;        // seconds, for messages above CostModel::eager
  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

// `CostModel` is the model of the machine that all ranks agree on.
struct CostModel {
  LinkCost near;           // between ranks of one host
  LinkCost far;            // between hosts; the ranks of a host share its port to other hosts
  double gamma = 0.1e-9;   // core seconds per byte combined or copied
  double signal = 0.3e-6;  // seconds until a rank that shares memory sees another rank's signal
  // The cost of a byte is multiplied by this factor if all ranks send to distant ranks at once, instead of to
  // their neighbours. In that case messages that are due at the same time compete for the ports.
  double congestion = 1.15;
  std::uint64_t eager = UINT64_MAX;  // messages up to this size are sent eagerly
  int cores = 0;                     // the cores of a host; 0: at least one per rank
  int hosts_per_machine = 1;         // hosts that share these cores, such as containers
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

// Returns whether a machine can have these costs. Costs that another rank has sent must pass this check,
// since they may be any numbers.
bool is_possible(const CostModel& model);

// Returns costs that were measured on one machine, for ranks that do not measure. `near_transport` ("tcp",
// "shm", ...) is the transport between ranks of one host.
CostModel shipped_model(std::string_view near_transport);

// These functions describe costs for people: "alpha 12.1 us, gap 3.2 us, ...", "8 cores a host".
std::string describe(const LinkCost& link);
std::string describe(const CostModel& model);
std::string describe_cores(const CostModel& model);

}  // namespace tutti
