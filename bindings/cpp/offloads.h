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
  // If true, a list of transports may leave the library out (see `make_offloads`). If false, the library is
  // used wherever it works.
  bool is_chosen;
  // The setting that names a file for the library. If it is set, the library must work.
  std::string Config::*file;
  Result<std::unique_ptr<Offload>> (*create)(const Config& config);
};

// Returns every such library, in order of preference.
std::span<const OffloadEntry> offload_entries();

// Returns `transports` without the names of libraries with `is_chosen`. Fails if only such libraries are
// named: ranks also need a transport.
Result<std::vector<std::string>> without_offloads(const std::vector<std::string>& transports);

// Makes the libraries that this rank uses, in order of preference. If `transports` is empty or is "auto"
// alone, makes all libraries that work here. Otherwise, a library with `is_chosen` is used only if
// `transports` contains its name, and then it must work. A library must also work if `config` names its file
// (`OffloadEntry::file`).
Result<std::vector<std::unique_ptr<Offload>>> make_offloads(const std::vector<std::string>& transports,
                                                            const Config& config);

}  // namespace tutti
