#pragma once

#include <cstdint>
#include <string>

namespace tutti::security {

inline constexpr std::uint32_t nobody = 0xffffffff;  // in place of a rank: a store, a tool

// The address of a socket's end: "10.0.0.1:4711", "[::1]:4711", or the process behind a local socket.
std::string own_address(int socket);
std::string peer_address(int socket);
// "rank 3 at 10.0.0.1:4711"; without the rank if it is `nobody`.
std::string describe_end(std::uint32_t rank, const std::string& address);

}  // namespace tutti::security
