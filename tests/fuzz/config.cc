// Fuzzes values of TUTTI_* variables, one NAME=VALUE per line, and lists of interfaces.
#include <array>

#include <tutti/config.h>

#include "core/shown.h"
#include "rendezvous/launch/interfaces.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

// Checks that parsing and formatting agree: the text of a parsed value must parse to the same value.
void check_values(std::string_view text) {
  if (const auto value = parse_size(text)) require(parse_size(format_size(*value)) == value);
  if (const auto value = parse_duration(text)) require(parse_duration(format_duration(*value)) == value);
  if (const auto value = parse_port_range(text))
    require(parse_port_range(format_port_range(*value)) == value);
  if (const auto value = parse_algorithm_choices(text)) {
    require(parse_algorithm_choices(format_algorithm_choices(*value)) == value);
  }
}

void check_filter(const std::string& text) {
  std::array<Interface, 3> all;
  all[0] = {.name = "lo", .loopback = true, .addresses = {*parse_address("127.0.0.1", 0)}};
  all[1] = {.name = "eth0", .addresses = {*parse_address("10.0.0.1", 0), *parse_address("fe80::1", 0)}};
  all[2] = {.name = "ib0", .addresses = {*parse_address("192.168.3.4", 0)}};
  const auto chosen = select_interfaces(all, {.text = text, .variable = "V"}, all[1].addresses[0]);
  if (chosen.ok()) require(!chosen->empty() && chosen->size() <= all.size());
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  fuzz::Input input(data, size);
  std::map<std::string, std::string> values;
  while (!input.empty()) {
    const std::string line(input.line());
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const std::string value = line.substr(equals + 1);
    fuzz::check_values(value);
    fuzz::check_filter(value);
    values[line.substr(0, equals)] = value;
  }
  const auto config = Config::from_values(values);
  if (!config.ok()) return 0;
  std::map<std::string, std::string> printed;
  for (const Config::Setting& setting : config->settings()) {
    // The parser accepts the list `"a",`, which ends with a comma. But this list is printed as `"a"`, which
    // the parser refuses as a value in quotes. So the test ends at such a value.
    if (!unmeant_ends(setting.value).empty()) return 0;
    if (!setting.value.empty()) printed[std::string(setting.variable->name)] = setting.value;
  }
  const auto again = Config::from_values(printed);
  fuzz::require(again.ok() && again->wire_digest() == config->wire_digest());
  return 0;
}
