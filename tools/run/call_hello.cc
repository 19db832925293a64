#include "tools/run/call_hello.h"

#include <algorithm>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/security/messages.h"

namespace tutti::tools {
namespace {

// These are the fields of a hello, with their sizes in bytes: magic 8 | version 2 | zeros 2 | host 4
constexpr std::array<unsigned char, 8> call_magic = {'T', 'U', 'T', 'T', 'I', 'L', 'N', '\n'};
constexpr std::uint16_t call_version = 1;

}  // namespace

CallHello encode_call_hello(std::uint32_t host) {
  CallHello hello{};
  std::memcpy(hello.data(), call_magic.data(), call_magic.size());
  security::put(hello, 8, call_version);
  security::put(hello, 12, host);
  return hello;
}

bool begins_like_call_hello(std::span<const std::byte> bytes) {
  return security::begins_with(bytes, call_magic);
}

std::optional<std::uint32_t> decode_call_hello(std::span<const std::byte> hello) {
  const auto host = security::take<std::uint32_t>(hello, 12);
  const CallHello expected = encode_call_hello(host);
  return std::equal(hello.begin(), hello.end(), expected.begin()) ? std::optional(host) : std::nullopt;
}

void prepare_call_socket(int socket) {
  const int on = 1;
  static_cast<void>(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

Result<security::SharedCredentials> call_credentials(const std::string& job, std::string_view secret) {
  security::Settings settings;
  settings.token = Secret(secret);
  settings.job = job;
  settings.tls = true;
  return security::Credentials::create(settings);
}

}  // namespace tutti::tools
