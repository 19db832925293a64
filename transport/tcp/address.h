#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/ip/tcp.hpp>

namespace tutti::tcp {

using Endpoint = asio::ip::tcp::endpoint;

// "10.0.0.1:4711,[2001:db8::1]:4711": what a transport publishes about its listeners.
std::string format_endpoints(const std::vector<Endpoint>& endpoints);
// Nothing if any part of it is not of that form. Comes from a peer: everything is checked, at most 16 are
// taken.
std::optional<std::vector<Endpoint>> parse_endpoints(std::string_view text);

}  // namespace tutti::tcp
