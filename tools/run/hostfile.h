#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

namespace tutti::tools {

// A `ListedHost` is a host of a hostfile or of -H. It holds what all lines that name the host say together.
struct ListedHost {
  std::string name;          // in the form that ssh takes: an IPv6 address has no brackets
  std::string user;          // empty if no line names a user
  std::optional<int> slots;  // empty if the host has as many slots as processors
  std::optional<int> most;   // max_slots; not less than `slots`

  friend bool operator==(const ListedHost&, const ListedHost&) = default;
};

// Each of these functions returns at least one host, and each host once. Its errors are `invalid_argument`.

// Parses the text of the hostfile `name`. The hosts are in the order of their first lines. Errors begin with
// the name and the line: "hosts:3: ...".
Result<std::vector<ListedHost>> parse_hostfile(const std::string& name, std::string_view text);

// Parses the values of -H. Each value lists hosts, separated by commas. A host without a number has one slot,
// unless it is the only host.
Result<std::vector<ListedHost>> parse_host_list(const std::vector<std::string>& values);

// Returns those hosts of a hostfile that -H names, in the order of -H. A number of slots in -H replaces that
// of the file.
Result<std::vector<ListedHost>> choose_hosts(const std::vector<ListedHost>& of_file,
                                             const std::vector<std::string>& values);

}  // namespace tutti::tools
