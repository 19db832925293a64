#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::tools {

// The launcher and the agents share these limits for a link (tools/run/link.proto).

// A record to an agent may hold all arguments and variables of a program.
inline constexpr std::size_t longest_from_launcher = 4 * 1024 * 1024;
inline constexpr std::size_t longest_from_agent = 256 * 1024;
// An agent sends at most this much output before the launcher has taken some of it. The launcher
// sends at most this much input before the agent has taken some of it.
inline constexpr std::uint64_t output_credit = 1024 * 1024;
inline constexpr std::uint64_t input_credit = 64 * 1024;

}  // namespace tutti::tools
