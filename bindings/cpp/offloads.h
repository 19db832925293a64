#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/config.h>
#include <tutti/status.h>

#include "transport/offload/offload.h"

namespace tutti {

// An `OffloadEntry` describes a library that carries out whole collectives.
struct OffloadEntry {
  std::string_view name;
  std::string_view meaning;
  bool is_chosen;  // `transports` chooses it by its name; if false, it is used wherever it works
  Result<std::unique_ptr<Offload>> (*create)(const Config& config);
};

// Returns every such library, in order of preference.
std::span<const OffloadEntry> offload_entries();

// Returns the names in `transports` that are not names of such libraries. Fails if there are only names of
// libraries: ranks also need a transport.
Result<std::vector<std::string>> without_offloads(const std::vector<std::string>& transports);

// Makes the libraries that this rank uses, in order of preference. If `transports` is empty or is "auto"
// alone, these are all that work here. Otherwise those that are chosen by name are left out unless
// `transports` contains the name; then they must work. A library that a variable names must work, too.
Result<std::vector<std::unique_ptr<Offload>>> make_offloads(const std::vector<std::string>& transports,
                                                            const Config& config);

}  // namespace tutti
