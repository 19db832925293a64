#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tutti/credentials.h>
#include <tutti/status.h>

namespace tutti::tools {

// A `CallHello` is the first message from an agent to its launcher, after both have proved that
// they know the agent's secret (docs/protocol.md, "Launcher and agents").
using CallHello = std::array<std::byte, 16>;

CallHello encode_call_hello(std::uint32_t host);
bool begins_like_call_hello(std::span<const std::byte> bytes);
// Returns the number of the host, or nothing if the bytes are not a hello of our version.
std::optional<std::uint32_t> decode_call_hello(std::span<const std::byte> hello);

// Makes a socket send each record at once. Connections inherit this setting from the listening
// socket that accepts them.
void prepare_call_socket(int socket);

// Makes the credentials with which the launcher and the agent prove that they know the secret. The
// connection is encrypted afterwards.
Result<security::SharedCredentials> call_credentials(const std::string& job, std::string_view secret);

}  // namespace tutti::tools
