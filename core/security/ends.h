#pragma once

#include <cstdint>
#include <string>

namespace tutti::security {

inline constexpr std::uint32_t nobody = 0xffffffff;  // stands for a store or a tool, which has no rank

// These functions return the address of this end and of the other end of a socket, such as "10.0.0.1:4711" or
// "[::1]:4711". For a local socket they name the process at that end.
std::string own_address(int socket);
std::string peer_address(int socket);
// Returns a text such as "rank 3 at 10.0.0.1:4711", or the address alone if `rank` is `nobody`.
std::string describe_end(std::uint32_t rank, const std::string& address);

}  // namespace tutti::security
