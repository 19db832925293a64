#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/status.h>

namespace tutti::tools {

// A `ListedHost` is a host of a hostfile or of -H. It combines all lines that name the host.
struct ListedHost {
  std::string name;          // in the form that ssh expects; an IPv6 address has no brackets
  std::string user;          // empty if no line names a user
  std::optional<int> slots;  // empty if the number of slots is the number of processors
  std::optional<int> most;   // max_slots; not less than `slots`

  friend bool operator==(const ListedHost&, const ListedHost&) = default;
};

// Each of the following functions returns at least one host, and no host twice. All errors are
// `invalid_argument`.

// Parses the text of the hostfile `name`. The hosts are in the order of their first lines. Errors begin with
// the name and the line: "hosts:3: ...".
Result<std::vector<ListedHost>> parse_hostfile(const std::string& name, std::string_view text);

// Parses the values of -H. Each value lists hosts, separated by commas. A host without a number has one slot.
// There is one exception: the number stays empty if the list has only one host.
Result<std::vector<ListedHost>> parse_host_list(const std::vector<std::string>& values);

// Returns those hosts of a hostfile that -H also names, in the order of -H. A number of slots in -H
// replaces the number in the file.
Result<std::vector<ListedHost>> choose_hosts(const std::vector<ListedHost>& of_file,
                                             const std::vector<std::string>& values);

}  // namespace tutti::tools
