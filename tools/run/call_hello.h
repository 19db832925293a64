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

// A `CallHello` is what an agent sends first to its launcher, once both have proved that they have the
// agent's secret (docs/protocol.md, "Launcher and agents").
using CallHello = std::array<std::byte, 16>;

CallHello encode_call_hello(std::uint32_t host);
bool begins_like_call_hello(std::span<const std::byte> bytes);
// Returns the number of the host, or nothing if this is no hello of our version.
std::optional<std::uint32_t> decode_call_hello(std::span<const std::byte> hello);

// Makes a socket send each record at once. The connections that a listening socket accepts inherit this.
void prepare_call_socket(int socket);

// Makes the credentials with which the two prove that they have the secret. They encrypt what follows.
Result<security::SharedCredentials> call_credentials(const std::string& job, std::string_view secret);

}  // namespace tutti::tools
