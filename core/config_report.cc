#include <algorithm>

#include <tutti/config.h>

#include "core/shown.h"

namespace tutti {
namespace {

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.resize(std::max(width, text.size()), ' ');
  return result;
}

std::string shown_value(const Config::Setting& setting) {
  return setting.value.empty() ? "" : shown(setting.variable->name, setting.value);
}

}  // namespace

std::string describe(const Config& config) {
  const auto settings = config.settings();
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Config::Setting& setting : settings) {
    name_width = std::max(name_width, setting.variable->name.size());
    value_width = std::max(value_width, shown_value(setting).size());
  }
  value_width = std::min<std::size_t>(value_width, 32);
  std::string text;
  for (const Config::Setting& setting : settings) {
    const std::string value = shown_value(setting);
    const std::string_view source = setting.from_environment ? "environment" : "default";
    text += padded(setting.variable->name, name_width) + "  " + padded(value, value_width) + "  " +
            padded(source, 11) + "  " + padded(setting.variable->type_name(), 10) + "  " +
            std::string(setting.variable->meaning) + "\n";
  }
  for (const std::string& warning : config.warnings()) text += "warning: " + warning + "\n";
  return text;
}

std::string variables_markdown() {
  std::string text = "| variable | type | default | meaning | equal on all ranks |\n|---|---|---|---|---|\n";
  for (const Config::Variable& variable : Config::variables()) {
    const std::string shown =
        variable.default_value.empty() ? "" : "`" + std::string(variable.default_value) + "`";
    text += "| `" + std::string(variable.name) + "` | " + std::string(variable.type_name()) + " | " + shown +
            " | " + std::string(variable.meaning) + " | " + (variable.shapes_wire ? "yes" : "") + " |\n";
  }
  return text;
}

}  // namespace tutti
