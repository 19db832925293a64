#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>

#include <unistd.h>

#include <tutti/config.h>

#include "core/edit_distance.h"
#include "core/security/digest.h"
#include "core/shown.h"

namespace tutti {
namespace {

// `TypeName` gives the name of each type, for the table and for messages about invalid values.
struct TypeName {
  std::string_view operator()(bool Config::*) const { return "boolean"; }
  std::string_view operator()(std::optional<int> Config::*) const { return "integer"; }
  std::string_view operator()(std::uint64_t Config::*) const { return "size"; }
  std::string_view operator()(std::chrono::nanoseconds Config::*) const { return "duration"; }
  std::string_view operator()(std::string Config::*) const { return "text"; }
  std::string_view operator()(Secret Config::*) const { return "secret"; }
  std::string_view operator()(std::vector<std::string> Config::*) const { return "list"; }
  std::string_view operator()(std::optional<PortRange> Config::*) const { return "port range"; }
  std::string_view operator()(log::Level Config::*) const { return "level"; }
  std::string_view operator()(std::vector<AlgorithmChoice> Config::*) const { return "algorithms"; }
};

std::string expectation(const Config::Variable& variable) {
  const std::string_view type = variable.type_name();
  if (type == "integer") {
    return "an integer from " + std::to_string(variable.least) + " to " + std::to_string(variable.most);
  }
  if (type == "size") {
    return "a size from " + format_size(variable.least) + " to " + format_size(variable.most) +
           ", like 4096, 64K or 1M";
  }
  if (type == "boolean") return "1, 0, true, false, yes, no, on or off";
  if (type == "duration") {
    return std::string("a duration like 500ms, 10s or 2m") + (variable.least > 0 ? ", longer than 0" : "");
  }
  if (type == "port range") return "ports like 20000-21000, between 1 and 65535";
  if (type == "level") return "off, error, warn, info, debug or trace";
  return "collective:algorithm pairs like all_reduce:ring,broadcast:binomial, each collective once";
}

// `Assign` sets one member of a Config from text, and returns false if the text is invalid.
struct Assign {
  Config& config;
  const Config::Variable& variable;
  std::string_view text;

  template <class T, class Parsed>
  bool take(T Config::*member, Parsed value) const {
    if (!value) return false;
    config.*member = *std::move(value);
    return true;
  }
  template <class Number>
  bool in_bounds(const std::optional<Number>& value) const {
    return value && *value >= 0 && static_cast<std::uint64_t>(*value) >= variable.least &&
           static_cast<std::uint64_t>(*value) <= variable.most;
  }

  bool operator()(bool Config::*member) const { return take(member, parse_boolean(text)); }
  bool operator()(std::optional<int> Config::*member) const {
    const auto value = parse_integer(text);
    if (!in_bounds(value)) return false;
    config.*member = static_cast<int>(*value);
    return true;
  }
  bool operator()(std::uint64_t Config::*member) const {
    const auto value = parse_size(text);
    return in_bounds(value) && take(member, value);
  }
  bool operator()(std::chrono::nanoseconds Config::*member) const {
    const auto value = parse_duration(text);
    return value && in_bounds(std::optional(value->count())) && take(member, value);
  }
  bool operator()(std::string Config::*member) const {
    return take(member, std::optional<std::string>(text));
  }
  bool operator()(Secret Config::*member) const { return take(member, std::optional(Secret(text))); }
  bool operator()(std::vector<std::string> Config::*member) const {
    return take(member, std::optional(parse_list(text)));
  }
  bool operator()(std::optional<PortRange> Config::*member) const {
    return take(member, parse_port_range(text));
  }
  bool operator()(log::Level Config::*member) const { return take(member, log::parse_level(text)); }
  bool operator()(std::vector<AlgorithmChoice> Config::*member) const {
    return take(member, parse_algorithm_choices(text));
  }
};

// `Print` returns the text of a member's value. Equal values have equal texts.
struct Print {
  const Config& config;

  std::string operator()(bool Config::*member) const { return config.*member ? "1" : "0"; }
  std::string operator()(std::optional<int> Config::*member) const {
    return config.*member ? std::to_string(*(config.*member)) : "";
  }
  std::string operator()(std::uint64_t Config::*member) const { return format_size(config.*member); }
  std::string operator()(std::chrono::nanoseconds Config::*member) const {
    return format_duration(config.*member);
  }
  std::string operator()(std::string Config::*member) const { return config.*member; }
  std::string operator()(Secret Config::*member) const { return (config.*member).empty() ? "" : "(set)"; }
  std::string operator()(std::vector<std::string> Config::*member) const {
    return format_list(config.*member);
  }
  std::string operator()(std::optional<PortRange> Config::*member) const {
    return config.*member ? format_port_range(*(config.*member)) : "";
  }
  std::string operator()(log::Level Config::*member) const { return std::string(to_string(config.*member)); }
  std::string operator()(std::vector<AlgorithmChoice> Config::*member) const {
    return format_algorithm_choices(config.*member);
  }
};

const Config::Variable* find(std::string_view name) {
  const std::span<const Config::Variable> table = Config::variables();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Config::Variable& variable) { return variable.name == name; });
  return found == table.end() ? nullptr : &*found;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == text.npos; }

// Returns whether a blank value of this variable is an error. A blank token is an error, since a script that
// leaves the token empty by mistake must not open the ports to everybody.
bool may_not_be_blank(const Config::Variable& variable) {
  return variable.member == Config::Member(&Config::token) ||
         variable.member == Config::Member(&Config::token_file);
}

std::string unknown_name_warning(std::string_view name) {
  const Config::Variable* nearest = nullptr;
  std::size_t distance = std::numeric_limits<std::size_t>::max();
  for (const Config::Variable& variable : Config::variables()) {
    const std::size_t candidate = edit_distance(name, variable.name);
    if (candidate < distance) {
      distance = candidate;
      nearest = &variable;
    }
  }
  return std::string(name) + " is not a variable that tutti knows; the nearest name is " +
         std::string(nearest->name);
}

}  // namespace

std::string_view Config::Variable::type_name() const { return std::visit(TypeName{}, member); }

Config::Config() {
  for (const Variable& variable : variables()) {
    if (!variable.default_value.empty()) {
      std::visit(Assign{*this, variable, variable.default_value}, variable.member);
    }
  }
}

Result<Config> Config::from_environment() {
  std::map<std::string, std::string> values;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with("TUTTI_") || equals == text.npos) continue;
    values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  Result<Config> config = from_values(values);
  for (auto& [name, value] : values) security::wipe(value);  // one of them may be the token
  return config;
}

Result<Config> Config::from_values(const std::map<std::string, std::string>& values) {
  Config config;
  for (const auto& [name, value] : values) {
    const Variable* variable = find(name);
    if (variable == nullptr) {
      if (name.starts_with("TUTTI_")) config.warnings_.push_back(unknown_name_warning(name));
      continue;
    }
    if (is_blank(value) && may_not_be_blank(*variable)) {
      return Status(Code::invalid_argument,
                    name +
                        " is set but empty, which would let any process connect: give "
                        "it a value, or unset it if that is intended");
    }
    if (value.empty()) continue;
    if (const std::string_view unmeant = unmeant_ends(value); !unmeant.empty()) {
      return Status(Code::invalid_argument,
                    name + " is '" + shown(name, value) + "': " + std::string(unmeant));
    }
    if (!std::visit(Assign{config, *variable, value}, variable->member)) {
      return Status(Code::invalid_argument,
                    name + " is '" + shown(name, value) + "'; expected " + expectation(*variable));
    }
    config.given_.insert(name);
  }
  if (config.transports == std::vector<std::string>{"auto"}) config.transports.clear();
  return config;
}

std::vector<Config::Setting> Config::settings() const {
  std::vector<Setting> result;
  for (const Variable& variable : variables()) {
    std::string value = std::visit(Print{*this}, variable.member);
    result.push_back({&variable, std::move(value), given_.contains(std::string(variable.name))});
  }
  return result;
}

std::string Config::wire_digest() const {
  std::string text;
  for (const Variable& variable : variables()) {
    if (!variable.shapes_wire) continue;
    text += std::string(variable.name) + "=" + std::visit(Print{*this}, variable.member) + ";";
  }
  return text;
}

}  // namespace tutti
