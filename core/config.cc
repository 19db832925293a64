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

constexpr std::uint64_t most_ranks = max_ranks;

constexpr Config::Variable table[] = {
    {.name = "TUTTI_RANK",
     .member = &Config::rank,
     .default_value = "",
     .meaning = "This process's number, from 0. Needs TUTTI_WORLD_SIZE.",
     .most = most_ranks - 1},
    {.name = "TUTTI_WORLD_SIZE",
     .member = &Config::world_size,
     .default_value = "",
     .meaning = "The number of processes.",
     .least = 1,
     .most = most_ranks},
    {.name = "TUTTI_LOCAL_RANK",
     .member = &Config::local_rank,
     .default_value = "",
     .meaning = "This process's number among those on its host.",
     .most = most_ranks - 1},
    {.name = "TUTTI_LOCAL_WORLD_SIZE",
     .member = &Config::local_world_size,
     .default_value = "",
     .meaning = "The number of processes on this host.",
     .least = 1,
     .most = most_ranks},
    {.name = "TUTTI_INIT_METHOD",
     .member = &Config::init_method,
     .default_value = "",
     .meaning = "Where the processes meet, as a URL: env://, tcp://host:port or file:///path."},
    {.name = "TUTTI_STORE",
     .member = &Config::store,
     .default_value = "",
     .meaning = "host:port of a store that is served already, by the launcher or by `tutti store`."},
    {.name = "TUTTI_JOB_ID",
     .member = &Config::job_id,
     .default_value = "",
     .meaning = "A name for the job. It keeps jobs apart that share a store or a folder."},
    {.name = "TUTTI_TOKEN",
     .member = &Config::token,
     .default_value = "",
     .meaning = "The job's secret: on every connection both processes prove that they have it. It is "
                "never sent or shown. `tutti run` makes one for each job. Not set: everybody who reaches a "
                "port may connect."},
    {.name = "TUTTI_TOKEN_FILE",
     .member = &Config::token_file,
     .default_value = "",
     .meaning = "A file whose first line is the token, in place of TUTTI_TOKEN."},
    {.name = "TUTTI_TLS",
     .member = &Config::tls,
     .default_value = "0",
     .meaning = "Whether connections are encrypted by TLS 1.3, with keys made of the token or by the "
                "certificates below. Memory that the ranks of a host share is not encrypted.",
     .shapes_wire = true},
    {.name = "TUTTI_TLS_CERT",
     .member = &Config::tls_cert,
     .default_value = "",
     .meaning = "For TUTTI_TLS: this process's certificate and its chain, a PEM file."},
    {.name = "TUTTI_TLS_KEY",
     .member = &Config::tls_key,
     .default_value = "",
     .meaning = "For TUTTI_TLS: the certificate's private key, a PEM file."},
    {.name = "TUTTI_TLS_CA",
     .member = &Config::tls_ca,
     .default_value = "",
     .meaning = "For TUTTI_TLS: the authority that must have signed the other processes' certificates, a "
                "PEM file."},
    {.name = "TUTTI_TIMEOUT",
     .member = &Config::timeout,
     .default_value = "5m",
     .meaning = "How long an operation may take, unless the call says otherwise.",
     .least = 1},
    {.name = "TUTTI_INIT_TIMEOUT",
     .member = &Config::init_timeout,
     .default_value = "2m",
     .meaning = "How long the processes wait for each other at the start.",
     .least = 1},
    {.name = "TUTTI_HEARTBEAT",
     .member = &Config::heartbeat,
     .default_value = "10s",
     .meaning = "A process that was not heard of for this long counts as lost. A process that computes "
                "is still heard of, by its background thread; one that is stopped or cut off is not.",
     .least = 1,
     .shapes_wire = true},
    {.name = "TUTTI_TRANSPORTS",
     .member = &Config::transports,
     .default_value = "",
     .meaning =
         "The transports to use, in order of preference. Not set, or auto: all that can run, fastest first.",
     .shapes_wire = true},
    {.name = "TUTTI_SOCKET_IFNAME",
     .member = &Config::socket_ifname,
     .default_value = "",
     .meaning = "Network interfaces: prefixes separated by commas, or a CIDR; a leading ^ excludes, a "
                "leading = matches exactly. Not set: the one that routes to the store."},
    {.name = "TUTTI_BIND_ADDRESS",
     .member = &Config::bind_address,
     .default_value = "",
     .meaning = "The address to listen on. Not set: that of the chosen interface."},
    {.name = "TUTTI_ADVERTISE_ADDRESS",
     .member = &Config::advertise_address,
     .default_value = "",
     .meaning = "The address that the other processes are told, if it differs from the one listened on "
                "(NAT)."},
    {.name = "TUTTI_PORT_RANGE",
     .member = &Config::port_range,
     .default_value = "",
     .meaning =
         "The ports to listen on, for example 20000-21000: two for each process of a host, and one for "
         "rank 0's store where they meet by file://. Not set: any free one."},
    {.name = "TUTTI_LOG_LEVEL",
     .member = &Config::log_level,
     .default_value = "warn",
     .meaning = "How much is written to the log."},
    {.name = "TUTTI_LOG_FILE",
     .member = &Config::log_file,
     .default_value = "",
     .meaning = "The file that the log is appended to. Not set: stderr."},
    {.name = "TUTTI_ALGORITHM",
     .member = &Config::algorithm,
     .default_value = "",
     .meaning = "Algorithms to use in place of the selector's choice: all_reduce:ring,broadcast:binomial.",
     .shapes_wire = true},
    {.name = "TUTTI_DETERMINISTIC",
     .member = &Config::deterministic,
     .default_value = "0",
     .meaning = "Whether algorithms are chosen by shipped costs instead of measured ones, so that every run "
                "chooses alike.",
     .shapes_wire = true},
    {.name = "TUTTI_EAGER_LIMIT",
     .member = &Config::eager_limit,
     .default_value = "128K",
     .meaning = "Messages up to this size are sent at once; larger ones wait until the receiver is ready.",
     .most = 1 << 30,
     .shapes_wire = true},
    {.name = "TUTTI_EAGER_CREDIT",
     .member = &Config::eager_credit,
     .default_value = "1M",
     .meaning = "The most bytes that one peer may send before a receive asks for them; bounds memory per "
                "peer.",
     .least = 1024,
     .most = 1 << 30,
     .shapes_wire = true},
    {.name = "TUTTI_TCP_SOCKET_BUFFER",
     .member = &Config::tcp_socket_buffer,
     .default_value = "0",
     .meaning = "The send and receive buffer of each TCP socket. 0: the kernel's choice.",
     .most = 1 << 30},
    {.name = "TUTTI_TCP_CONGESTION",
     .member = &Config::tcp_congestion,
     .default_value = "",
     .meaning =
         "The congestion control of TCP connections; \"system\" leaves the kernel's. Not set: reno within a "
         "host and on private networks, else the kernel's."},
    {.name = "TUTTI_TCP_SOCKETS",
     .member = &Config::tcp_sockets,
     .default_value = "0",
     .meaning = "Connections between two processes that share the payloads of large messages. 0: as many as "
                "there are "
                "network interfaces to use.",
     .most = 16},
    {.name = "TUTTI_SPIN",
     .member = &Config::spin,
     .default_value = "50us",
     .meaning =
         "How long a waiting process polls before it sleeps. Hosts with more ranks than cores never poll."},
    {.name = "TUTTI_FRAGMENT",
     .member = &Config::fragment,
     .default_value = "128K",
     .meaning = "The largest piece in which a message's payload travels.",
     .least = 1024,
     .most = 128 * 1024,
     .shapes_wire = true},
    {.name = "TUTTI_SHM_WINDOW",
     .member = &Config::shm_window,
     .default_value = "1M",
     .meaning = "Memory of each rank through which collectives on one host move their data, for each "
                "communicator. 0: collectives are made of messages on one host, too.",
     .most = 1 << 30,
     .shapes_wire = true},
    {.name = "TUTTI_SHM_RING",
     .member = &Config::shm_ring,
     .default_value = "128K",
     .meaning =
         "Shared memory in each direction between two ranks of a host that exchange messages; rounded up "
         "to a power of two.",
     .least = 4096,
     .most = 1 << 30},
    {.name = "TUTTI_DUMP",
     .member = &Config::dump,
     .default_value = "",
     .meaning = "The file, or the folder, to which a rank writes what it did last when a communicator "
                "fails. %r in it is the rank, %h the host, %p the process, %j the job."},
    {.name = "TUTTI_TRACE",
     .member = &Config::trace,
     .default_value = "",
     .meaning = "The file, or the folder, to which a rank writes what it does as Chrome trace events, "
                "for Perfetto. Its name is built as that of TUTTI_DUMP."},
    {.name = "TUTTI_DEBUG",
     .member = &Config::debug,
     .default_value = "1",
     .meaning = "Whether `tutti debug` of the same user can ask this process what it does."},
};

// What a value of each type looks like, for the table and for messages about bad ones.
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
           ", like 4096, 64K, 1M or 2G";
  }
  if (type == "boolean") return "1, 0, true, false, yes, no, on or off";
  if (type == "duration") {
    return std::string("a duration like 500ms, 10s or 2m") + (variable.least > 0 ? ", longer than 0" : "");
  }
  if (type == "port range") return "ports like 20000-21000, between 1 and 65535";
  if (type == "level") return "off, error, warn, info, debug or trace";
  return "collective:algorithm pairs like all_reduce:ring,broadcast:binomial, each collective once";
}

// Sets one member of a Config from text; false if the text does not fit.
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

// The canonical text of a member: equal values give equal text.
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
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [&](const Config::Variable& variable) { return variable.name == name; });
  return found == std::end(table) ? nullptr : found;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == text.npos; }

// A token that a script leaves empty by mistake must not open the ports.
bool may_not_be_blank(const Config::Variable& variable) {
  return variable.member == Config::Member(&Config::token) ||
         variable.member == Config::Member(&Config::token_file);
}

std::string unknown_name_warning(std::string_view name) {
  const Config::Variable* nearest = nullptr;
  std::size_t distance = std::numeric_limits<std::size_t>::max();
  for (const Config::Variable& variable : table) {
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
  for (const Variable& variable : table) {
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
  for (auto& [name, value] : values) security::wipe(value);  // a token too
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
      return Status(Code::invalid_argument, name +
                                                " is set but empty, which would let everybody connect: give "
                                                "it a value, or unset it if that is meant");
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

std::span<const Config::Variable> Config::variables() { return table; }

std::vector<Config::Setting> Config::settings() const {
  std::vector<Setting> result;
  for (const Variable& variable : table) {
    std::string value = std::visit(Print{*this}, variable.member);
    result.push_back({&variable, std::move(value), given_.contains(std::string(variable.name))});
  }
  return result;
}

std::string Config::wire_digest() const {
  std::string text;
  for (const Variable& variable : table) {
    if (!variable.shapes_wire) continue;
    text += std::string(variable.name) + "=" + std::visit(Print{*this}, variable.member) + ";";
  }
  return text;
}

}  // namespace tutti
