#pragma once

#include <optional>
#include <string>

#include <tutti/config.h>

namespace tutti::verbs {

// `Settings` are what users say about devices and packets, through the variables TUTTI_IB_*.
struct Settings {
  std::string devices;           // the text of a `PortFilter`; empty if all devices may be used
  std::string devices_variable;  // the variable that the text comes from
  std::optional<int> gid_index;
  int traffic_class = 0;
  int service_level = 0;
  int timeout = 20;  // a packet is sent again after 4.096 us times two to this power
  int retries = 7;
};

// Returns the settings. If a TUTTI_IB_* variable is not set, NCCL's variable of the same meaning (NCCL_IB_*)
// in the process's environment counts. If a number in one of NCCL's variables is out of range, it is ignored,
// with a warning.
Settings settings_from(const Config& config);

// Returns whether the user wants NCCL not to use InfiniBand and RoCE (NCCL_IB_DISABLE=1), and names no
// devices for tutti.
bool is_switched_off(const Config& config);

}  // namespace tutti::verbs
