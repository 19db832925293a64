#include "tools/run/hostfile.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <arpa/inet.h>

#include <tutti/config_values.h>
#include <tutti/types.h>

#include "core/shown.h"

namespace tutti::tools {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";
constexpr std::string_view name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

Status wrong(const std::string& message) { return Status(Code::invalid_argument, message); }

// Returns the word in quotes for a message. Long words are shortened, since a file that is not a
// hostfile may have very long words.
std::string quoted(std::string_view word) {
  constexpr std::size_t most_shown = 60;
  const bool whole = word.size() <= most_shown;
  return "`" + printable(std::string(word.substr(0, most_shown))) + (whole ? "`" : "...`");
}

// A name must not begin with `-`, since ssh would read it as an option.
bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.find_first_not_of(name_characters) == text.npos;
}

// Returns whether `text` is an IPv6 address. The address may name an interface of the launcher's
// machine ("fe80::1%eth0").
bool is_ipv6(std::string_view text) {
  const std::size_t percent = text.find('%');
  const std::string address(text.substr(0, percent));
  in6_addr parsed;
  // inet_pton() would ignore the text after a zero byte.
  return address.find('\0') == address.npos && inet_pton(AF_INET6, address.c_str(), &parsed) == 1 &&
         (percent == text.npos || is_name(text.substr(percent + 1)));
}

// Sets `count` to the number at the end of `word`.
Status set_count(std::optional<int>& count, std::string_view word, std::string_view number) {
  const std::optional<std::int64_t> parsed = parse_integer(number);
  if (!parsed || *parsed < 1 || *parsed > max_ranks)
    return wrong(quoted(word) + ": the number of slots must be from 1 to " + std::to_string(max_ranks));
  if (count) return wrong(quoted(word) + ": the number is given twice");
  count = static_cast<int>(*parsed);
  return {};
}

// Returns the position at which the name ends in NAME or NAME:N. A text with several colons and no brackets
// is an IPv6 address without a number.
std::size_t end_of_name(std::string_view text) {
  if (text.starts_with('[')) return std::min(text.find(']'), text.size() - 1) + 1;
  const bool is_bare_address = std::ranges::count(text, ':') > 1;
  return is_bare_address ? text.size() : std::min(text.find(':'), text.size());
}

// Parses [USER@]NAME[:N].
Result<ListedHost> parse_host(std::string_view word) {
  ListedHost host;
  std::string_view rest = word;
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    host.user = rest.substr(0, at);
    if (!is_name(host.user)) return wrong(quoted(word) + " does not begin with the name of a user");
    rest.remove_prefix(at + 1);
  }
  std::string_view name = rest.substr(0, end_of_name(rest));
  const std::string_view suffix = rest.substr(name.size());
  const bool in_brackets = name.starts_with('[') && name.ends_with(']');
  if (in_brackets) name = name.substr(1, name.size() - 2);
  const bool is_host = is_ipv6(name) || (!in_brackets && is_name(name));
  if (!is_host || (!suffix.empty() && suffix.front() != ':'))
    return wrong(quoted(word) + " is not a host; a host is NAME, NAME:N or USER@NAME");
  host.name = name;
  if (suffix.empty()) return host;
  if (Status status = set_count(host.slots, word, suffix.substr(1)); !status.ok()) return status;
  return host;
}

// Splits a line at blanks. Blanks around `=` do not split, so `slots = 8` is the word `slots=8`.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t begin = line.find_first_not_of(blanks); begin != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    const std::string_view piece = line.substr(begin, end - begin);
    if (!words.empty() && (piece.starts_with('=') || words.back().ends_with('='))) {
      words.back() += piece;
    } else {
      words.emplace_back(piece);
    }
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

// Parses the words of a line. There must be at least one.
Result<ListedHost> parse_line(const std::vector<std::string>& words) {
  Result<ListedHost> host = parse_host(words.front());
  for (std::size_t i = 1; host.ok() && i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view setting = word.substr(0, equals);
    const bool is_most = setting == "max_slots" || setting == "max-slots";
    if (equals == word.size() || (setting != "slots" && !is_most))
      return wrong(quoted(word) + " is not known here; a line is a host, then slots=N and max_slots=N");
    const Status status = set_count(is_most ? host->most : host->slots, word, word.substr(equals + 1));
    if (!status.ok()) return status;
  }
  return host;
}

Status check_slots(const ListedHost& host) {
  if (!host.slots) return {};
  const int most = host.most.value_or(max_ranks);
  if (*host.slots <= most) return {};
  return wrong(host.name + " has " + std::to_string(*host.slots) + " slots, more than " +
               (host.most ? "max_slots=" : "") + std::to_string(most));
}

// Adds the user and max_slots of another line to `host`. Several lines together may describe one
// host.
Status unite(ListedHost& host, const ListedHost& line) {
  if (host.user.empty()) host.user = line.user;
  if (!line.user.empty() && line.user != host.user)
    return wrong(host.name + " is listed for two users, " + host.user + " and " + line.user);
  if (!host.most) host.most = line.most;
  if (line.most && line.most != host.most) {
    return wrong(host.name + " is listed with max_slots=" + std::to_string(*host.most) +
                 " and max_slots=" + std::to_string(*line.most));
  }
  return {};
}

// `Listing` collects hosts in the order in which they first appear.
class Listing {
 public:
  Status add(const ListedHost& line) {
    const auto [place, is_new] = places_.emplace(line.name, hosts_.size());
    if (is_new) {
      hosts_.push_back(line);
      return check_slots(line);
    }
    ListedHost& host = hosts_[place->second];
    if (Status status = unite(host, line); !status.ok()) return status;
    host.slots = host.slots.value_or(1) + line.slots.value_or(1);
    return check_slots(host);
  }

  // Returns the hosts, or an error if there is none. `source` is the name of the list.
  Result<std::vector<ListedHost>> take(const std::string& source) {
    if (hosts_.empty()) return wrong(source + ": no host in it");
    return std::move(hosts_);
  }

 private:
  std::vector<ListedHost> hosts_;
  std::unordered_map<std::string, std::size_t> places_;  // the index of each name in `hosts_`
};

// Reads the values of -H. Each value is a list of hosts, separated by commas.
Result<std::vector<ListedHost>> read_values(const std::vector<std::string>& values) {
  Listing listing;
  for (const std::string& value : values) {
    for (const std::string& word : parse_list(value)) {
      const Result<ListedHost> host = parse_host(word);
      const Status status = host.ok() ? listing.add(*host) : host.status();
      if (!status.ok()) return status.with_context("-H");
    }
  }
  return listing.take("-H");
}

}  // namespace

Result<std::vector<ListedHost>> parse_hostfile(const std::string& name, std::string_view text) {
  Listing listing;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const Result<ListedHost> host = parse_line(words);
    const Status status = host.ok() ? listing.add(*host) : host.status();
    if (!status.ok()) return status.with_context(name + ":" + std::to_string(number));
  }
  return listing.take(name);
}

Result<std::vector<ListedHost>> parse_host_list(const std::vector<std::string>& values) {
  Result<std::vector<ListedHost>> hosts = read_values(values);
  if (!hosts.ok() || hosts->size() == 1) return hosts;
  for (ListedHost& host : *hosts) host.slots = host.slots.value_or(1);
  return hosts;
}

Result<std::vector<ListedHost>> choose_hosts(const std::vector<ListedHost>& of_file,
                                             const std::vector<std::string>& values) {
  Result<std::vector<ListedHost>> chosen = read_values(values);
  if (!chosen.ok()) return chosen;
  for (ListedHost& host : *chosen) {
    const auto listed = std::ranges::find(of_file, host.name, &ListedHost::name);
    if (listed == of_file.end()) return wrong("-H: " + host.name + " is not in the hostfile");
    if (!host.slots) host.slots = listed->slots;
    Status status = unite(host, *listed);
    if (status.ok()) status = check_slots(host);
    if (!status.ok()) return status.with_context("-H");
  }
  return chosen;
}

}  // namespace tutti::tools
