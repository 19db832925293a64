#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <tutti/status.h>

namespace tutti {

// `InitUrl` is the place where ranks meet, as users write it:
//   env://
//   tcp://host:port?rank=0&world_size=2&timeout=30s     (tcp://[::1]:29500 for IPv6)
//   file:///path?rank=0&world_size=2
//   mpi://?timeout=30s
struct InitUrl {
  enum class Scheme { env, tcp, file, mpi };

  Scheme scheme = Scheme::env;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::string path;
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<std::chrono::nanoseconds> timeout;
};

// Parses a URL. Fails with `invalid_argument`, which names the URL and what is wrong with it.
Result<InitUrl> parse_url(const std::string& url);

}  // namespace tutti
