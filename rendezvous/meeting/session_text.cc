#include "rendezvous/meeting/session_text.h"

#include <algorithm>
#include <optional>

#include <tutti/address.h>
#include <tutti/config_values.h>

namespace tutti {
namespace {

using Endpoint = SessionText::Endpoint;

constexpr std::string_view heading = "tutti-session 1";
constexpr std::size_t max_endpoints = 16;
constexpr std::size_t nonce_digits = 32;
constexpr std::size_t token_digits = 64;

Status malformed(const std::string& what) { return Status(Code::protocol_error, what); }

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// `Lines` reads the lines of a text one after another.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // Returns the value if the next line is "name value", and then moves on.
  std::optional<std::string_view> value_of(std::string_view name) {
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    if (end == rest_.npos || !line.starts_with(name) || line.size() <= name.size() + 1 ||
        line[name.size()] != ' ') {
      return std::nullopt;
    }
    rest_ = rest_.substr(end + 1);
    return line.substr(name.size() + 1);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  const std::optional<std::int64_t> port = parse_integer(text.substr(space + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  Endpoint endpoint{std::string(text.substr(0, space)), static_cast<std::uint16_t>(*port)};
  if (endpoint.address.empty() || endpoint.address.size() > 255) return std::nullopt;
  return endpoint;
}

}  // namespace

Secret format_session(const SessionText& session) {
  std::string rest = "\nboot " + session.boot_id + "\n";
  for (const Endpoint& endpoint : session.endpoints) {
    rest += "endpoint " + endpoint.address + " " + std::to_string(endpoint.port) + "\n";
  }
  return Secret::joined(
      {heading, "\nnonce ", session.nonce, "\ntoken ", session.token.reveal(), rest, "end\n"});
}

Result<SessionText> parse_session(std::string_view text) {
  if (text.size() > max_session_bytes) return malformed("it is too long");
  if (text.empty()) return malformed("it is empty");
  if (!text.starts_with(session_magic)) return malformed("it is not a tutti session");
  Lines lines(text.substr(std::min(text.size(), heading.size() + 1)));
  if (!text.starts_with(std::string(heading) + "\n")) return malformed("it is of another version");
  const auto nonce = lines.value_of("nonce");
  if (!nonce || !is_hex(*nonce, nonce_digits)) return malformed("its nonce is missing or damaged");
  const auto token = lines.value_of("token");
  if (!token || !is_hex(*token, token_digits)) return malformed("its token is missing or damaged");
  const auto boot = lines.value_of("boot");
  if (!boot) return malformed("its boot id is missing");
  SessionText session{std::string(*nonce), Secret(*token), std::string(*boot), {}};
  while (const auto value = lines.value_of("endpoint")) {
    const std::optional<Endpoint> endpoint = parse_endpoint(*value);
    if (!endpoint || session.endpoints.size() == max_endpoints) return malformed("an endpoint is damaged");
    session.endpoints.push_back(*endpoint);
  }
  if (session.endpoints.empty()) return malformed("it has no endpoint");
  if (lines.rest() != "end\n") return malformed("its end is missing");
  return session;
}

}  // namespace tutti
