#include "bindings/cpp/offloads.h"

#include <algorithm>
#include <array>
#include <utility>

#include <tutti/log.h>

#include "transport/nccl/factory.h"
#include "transport/staged/factory.h"

namespace tutti {

namespace {

Result<std::unique_ptr<Offload>> create_nccl(const Config& config) {
  return nccl::create(
      {.cuda_library = config.cuda_library, .nccl_library = config.nccl_library, .encrypted = config.tls});
}

Result<std::unique_ptr<Offload>> create_staged(const Config& config) {
  return staged::create({.cuda_library = config.cuda_library});
}

constexpr std::array libraries = {
    OffloadEntry{"nccl", "NCCL, for the memory of CUDA devices", true, &Config::nccl_library, create_nccl},
    OffloadEntry{"staged", "copies between CUDA devices and the host", false, &Config::cuda_library,
                 create_staged},
};

bool is_chosen_offload(const std::string& name) {
  return std::ranges::any_of(
      libraries, [&](const OffloadEntry& entry) { return entry.is_chosen && entry.name == name; });
}

}  // namespace

std::span<const OffloadEntry> offload_entries() { return libraries; }

Result<std::vector<std::string>> without_offloads(const std::vector<std::string>& transports) {
  std::vector<std::string> others;
  std::ranges::remove_copy_if(transports, std::back_inserter(others), is_chosen_offload);
  if (others.empty() && !transports.empty()) {
    return Status(Code::invalid_argument,
                  "\"" + transports.front() +
                      "\" carries out collectives on CUDA devices only; name a transport "
                      "between processes, too, such as tcp");
  }
  return others;
}

Result<std::vector<std::unique_ptr<Offload>>> make_offloads(const std::vector<std::string>& transports,
                                                            const Config& config) {
  const bool all = transports.empty() || transports == std::vector<std::string>{"auto"};
  std::vector<std::unique_ptr<Offload>> offloads;
  for (const OffloadEntry& entry : libraries) {
    const bool named = std::ranges::find(transports, entry.name) != transports.end();
    if (entry.is_chosen && !all && !named) continue;
    Result<std::unique_ptr<Offload>> made = entry.create(config);
    if (made.ok()) {
      offloads.push_back(std::move(made).take());
      continue;
    }
    const Status why = made.status().with_context(entry.name);
    if (named || !(config.*entry.file).empty()) return why;
    log::debug("a library is left out: ", why);
  }
  return offloads;
}

}  // namespace tutti
