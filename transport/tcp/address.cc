#include <charconv>

#include <tutti/transport/tcp/address.h>

namespace tutti::tcp {
namespace {

constexpr std::size_t max_endpoints = 16;

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return std::nullopt;
  asio::error_code failure;
  const asio::ip::address address = asio::ip::make_address(std::string(host), failure);
  if (failure || address.is_v6() != bracketed) return std::nullopt;
  return Endpoint(address, port);
}

}  // namespace

std::string format_endpoints(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    if (!text.empty()) text += ',';
    const std::string host = endpoint.address().to_string();
    text += endpoint.address().is_v6() ? "[" + host + "]" : host;
    text += ':' + std::to_string(endpoint.port());
  }
  return text;
}

std::optional<std::vector<Endpoint>> parse_endpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto endpoint = parse_endpoint(text.substr(0, comma));
    if (!endpoint || endpoints.size() == max_endpoints) return std::nullopt;
    endpoints.push_back(*endpoint);
    if (comma == text.npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace tutti::tcp
