#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::tools {

// These limits of the records on a link (tools/run/link.proto) are known to the launcher and the agents.

// A record to an agent may hold all arguments and variables of a program.
inline constexpr std::size_t longest_from_launcher = 4 * 1024 * 1024;
inline constexpr std::size_t longest_from_agent = 256 * 1024;
// An agent sends at most so much output, and the launcher so much input, before the other side has taken some
// of it.
inline constexpr std::uint64_t output_credit = 1024 * 1024;
inline constexpr std::uint64_t input_credit = 64 * 1024;

}  // namespace tutti::tools
