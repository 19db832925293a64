#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

namespace tutti::verbs {

// A `PortFilter` is the user's choice of devices and ports: a list such as "mlx5_0,mlx5_2:1". An item takes
// all devices whose names begin with the item's name. If the item also names a port, it takes only that port
// of these devices. If the list begins with =, names must be equal. If it begins with ^, all ports are taken
// except those in the list. ^= combines both rules.
class PortFilter {
 public:
  // Takes every port.
  PortFilter() = default;
  // Fails with `invalid_argument` if there is no item, if an item names no device, or if a port is not a
  // number from 1 to 255. The error says that the text comes from `variable`.
  static Result<PortFilter> parse(std::string_view text, const std::string& variable);

  bool takes(std::string_view device, std::uint8_t port) const;

 private:
  struct Item {
    std::string device;
    std::optional<std::uint8_t> port;
  };

  std::vector<Item> items_;
  bool excludes_ = true;
  bool exact_ = false;
};

}  // namespace tutti::verbs
