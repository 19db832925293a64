#include "transport/verbs/port_filter.h"

#include <algorithm>

#include <tutti/config_values.h>

namespace tutti::verbs {

Result<PortFilter> PortFilter::parse(std::string_view text, const std::string& variable) {
  PortFilter filter;
  std::string_view list = text;
  filter.excludes_ = list.starts_with('^');
  if (filter.excludes_) list.remove_prefix(1);
  filter.exact_ = list.starts_with('=');
  if (filter.exact_) list.remove_prefix(1);
  const auto wrong = [&](const std::string& why) {
    return Status(Code::invalid_argument, variable + " is '" + std::string(text) + "': " + why);
  };
  for (const std::string& each : parse_list(list)) {
    const std::size_t colon = each.find(':');
    Item item{.device = each.substr(0, colon), .port = {}};
    if (colon != std::string::npos) {
      const std::optional<std::int64_t> port = parse_integer(each.substr(colon + 1));
      if (!port || *port < 1 || *port > 255) return wrong("'" + each + "' names no port");
      item.port = static_cast<std::uint8_t>(*port);
    }
    if (item.device.empty()) return wrong("'" + each + "' names no device");
    filter.items_.push_back(std::move(item));
  }
  if (filter.items_.empty()) return wrong("it names no device");
  return filter;
}

bool PortFilter::takes(std::string_view device, std::uint8_t port) const {
  const bool listed = std::ranges::any_of(items_, [&](const Item& item) {
    const bool named = exact_ ? device == item.device : device.starts_with(item.device);
    return named && item.port.value_or(port) == port;
  });
  return listed != excludes_;
}

}  // namespace tutti::verbs
