#include "rendezvous/launch/url.h"

#include <set>
#include <string_view>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "core/shown.h"

namespace tutti {
namespace {

Status wrong(const std::string& url, const std::string& what) {
  return Status(Code::invalid_argument, "init URL '" + shown("", url) + "': " + what);
}

std::optional<std::string> percent_decoded(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return std::nullopt;
    decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos) return std::nullopt;
  return decoded;
}

// Parses "host:port" or "[v6]:port". Returns what is wrong with the text, or an empty text if nothing is
// wrong.
std::string parse_authority(std::string_view authority, InitUrl& parsed) {
  if (authority.find('@') != authority.npos)
    return "a user name before the host ('user@host') is not allowed";
  std::string_view host, port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == authority.npos) return "the '[' before the IPv6 address has no ']'";
    host = authority.substr(1, close - 1);
    const std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return "expected ':port' after ']'";
    port = rest.empty() ? rest : rest.substr(1);
  } else {
    const std::size_t colon = authority.rfind(':');
    host = authority.substr(0, colon);
    if (colon != authority.npos) port = authority.substr(colon + 1);
    if (host.find(':') != host.npos) return "an IPv6 address needs brackets: tcp://[::1]:29500";
  }
  if (host.empty()) return "the host is missing: tcp://host:port";
  if (port.empty()) return "the port is missing: tcp://host:port";
  const std::optional<std::int64_t> number = parse_integer(port);
  if (!number || *number < 1 || *number > 65535) {
    return "the port '" + std::string(port) + "' is not a number from 1 to 65535";
  }
  parsed.host = host;
  parsed.port = static_cast<std::uint16_t>(*number);
  return {};
}

std::string parse_number(std::string_view name, std::string_view value, std::int64_t least,
                         std::optional<int>& out) {
  const std::optional<std::int64_t> number = parse_integer(value);
  if (!number || *number < least || *number > max_ranks) {
    return std::string(name) + " is '" + std::string(value) + "'; expected an integer from " +
           std::to_string(least) + " to " + std::to_string(max_ranks);
  }
  out = static_cast<int>(*number);
  return {};
}

std::string parse_parameter(std::string_view name, std::string_view value, InitUrl& parsed) {
  if (name == "rank") return parse_number(name, value, 0, parsed.rank);
  if (name == "world_size") return parse_number(name, value, 1, parsed.world_size);
  if (name == "timeout") {
    parsed.timeout = parse_duration(value);
    if (!parsed.timeout) return "timeout is '" + std::string(value) + "'; expected a duration like 30s or 5m";
    return {};
  }
  return "unknown parameter '" + std::string(name) + "'; known are rank, world_size and timeout";
}

std::string parse_query(std::string_view query, InitUrl& parsed) {
  std::set<std::string_view> seen;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view parameter = query.substr(0, end);
    query = end == query.npos ? std::string_view() : query.substr(end + 1);
    if (parameter.empty()) continue;
    const std::size_t equals = parameter.find('=');
    if (equals == parameter.npos) return "parameter '" + std::string(parameter) + "' has no value";
    const std::string_view name = parameter.substr(0, equals);
    if (!seen.insert(name).second) return "parameter '" + std::string(name) + "' is given twice";
    if (std::string error = parse_parameter(name, parameter.substr(equals + 1), parsed); !error.empty())
      return error;
  }
  if (parsed.rank && parsed.world_size && *parsed.rank >= *parsed.world_size) {
    return "rank " + std::to_string(*parsed.rank) + " is not below world_size " +
           std::to_string(*parsed.world_size);
  }
  return {};
}

std::string parse_file(std::string_view place, InitUrl& parsed) {
  if (!place.starts_with('/')) return "the path must be absolute: file:///path";
  const std::optional<std::string> path = percent_decoded(place);
  if (!path) return "the path has a bad %-escape";
  if (path->ends_with('/')) return "the path names a folder; it must name a file in it";
  parsed.path = *path;
  return {};
}

}  // namespace

Result<InitUrl> parse_url(const std::string& url) {
  const std::size_t colon = url.find("://");
  const std::string scheme = url.substr(0, colon);
  if (colon == std::string::npos)
    return wrong(url, "expected env://, tcp://host:port, file:///path or mpi://");
  const std::string_view rest = std::string_view(url).substr(colon + 3);
  const std::size_t question = rest.find('?');
  std::string_view place = rest.substr(0, question);
  const std::string_view query = question == rest.npos ? std::string_view() : rest.substr(question + 1);

  InitUrl parsed;
  std::string error;
  if (scheme == "env") {
    parsed.scheme = InitUrl::Scheme::env;
    if (!place.empty()) error = "nothing may follow env:// but parameters";
  } else if (scheme == "mpi") {
    parsed.scheme = InitUrl::Scheme::mpi;
    if (!place.empty()) error = "nothing may follow mpi:// but parameters";
  } else if (scheme == "tcp") {
    parsed.scheme = InitUrl::Scheme::tcp;
    if (place.ends_with('/')) place.remove_suffix(1);
    error = parse_authority(place, parsed);
  } else if (scheme == "file") {
    parsed.scheme = InitUrl::Scheme::file;
    error = parse_file(place, parsed);
  } else {
    error = "unknown scheme '" + scheme + "'; expected env://, tcp://host:port, file:///path or mpi://";
  }
  if (error.empty()) error = parse_query(query, parsed);
  if (!error.empty()) return wrong(url, error);
  return parsed;
}

}  // namespace tutti
