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
  // True means that the list of transports decides whether the library is used (see
  // `make_offloads`). False means that the library is used wherever it works.
  bool is_chosen;
  // The setting that names the library's file. The library must work if the setting is not empty.
  std::string Config::*file;
  Result<std::unique_ptr<Offload>> (*create)(const Config& config);
};

// Returns every library that carries out whole collectives, in order of preference.
std::span<const OffloadEntry> offload_entries();

// Returns `transports` without the names of libraries whose `is_chosen` is true. Fails if no other
// name remains, because ranks also need a transport.
Result<std::vector<std::string>> without_offloads(const std::vector<std::string>& transports);

// Makes the libraries that this rank uses, in order of preference. All libraries that work here are
// made if `transports` is empty or only "auto". Otherwise a library whose `is_chosen` is true is made
// only if `transports` contains its name, and then it must work. A library must also work if `config`
// names its file (`OffloadEntry::file`).
Result<std::vector<std::unique_ptr<Offload>>> make_offloads(const std::vector<std::string>& transports,
                                                            const Config& config);

}  // namespace tutti
