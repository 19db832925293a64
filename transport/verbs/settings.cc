#include "transport/verbs/settings.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <tutti/config_values.h>
#include <tutti/log.h>

namespace tutti::verbs {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Returns the value of one of NCCL's variables, or nothing if it is not set or not in the range.
std::optional<int> number(const char* name, int least, int most) {
  const std::string_view text = environment(name);
  if (text.empty()) return std::nullopt;
  const std::optional<std::int64_t> value = parse_integer(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  log::warn(name, "=", text, " is ignored: it is not a number from ", least, " to ", most);
  return std::nullopt;
}

}  // namespace

Settings settings_from(const Config& config) {
  Settings settings;
  settings.devices = config.ib_hca;
  settings.devices_variable = "TUTTI_IB_HCA";
  if (settings.devices.empty()) {
    settings.devices = environment("NCCL_IB_HCA");
    settings.devices_variable = "NCCL_IB_HCA";
  }
  const auto choose = [](std::optional<int> ours, const char* theirs, int most, int otherwise,
                         int least = 0) {
    return ours ? *ours : number(theirs, least, most).value_or(otherwise);
  };
  settings.gid_index = config.ib_gid_index;
  // In NCCL's variable, -1 means that the index is chosen automatically.
  if (!settings.gid_index) settings.gid_index = number("NCCL_IB_GID_INDEX", -1, 255);
  if (settings.gid_index == -1) settings.gid_index.reset();
  settings.traffic_class = choose(config.ib_tc, "NCCL_IB_TC", 255, settings.traffic_class);
  settings.service_level = choose(config.ib_sl, "NCCL_IB_SL", 15, settings.service_level);
  // For a device, 0 means waiting for ever, so the least value is 1.
  settings.timeout = choose(config.ib_timeout, "NCCL_IB_TIMEOUT", 31, settings.timeout, 1);
  settings.retries = choose(config.ib_retry_cnt, "NCCL_IB_RETRY_CNT", 7, settings.retries);
  return settings;
}

bool is_switched_off(const Config& config) {
  return config.ib_hca.empty() && number("NCCL_IB_DISABLE", 0, 1) == 1;
}

}  // namespace tutti::verbs
