#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tutti/config_values.h>
#include <tutti/export.h>
#include <tutti/log.h>
#include <tutti/secret.h>
#include <tutti/status.h>

namespace tutti {

// A `Config` holds the values of all `TUTTI_*` variables, each with its type. `variables()` returns the table
// of names, defaults and meanings; the members start with that table's defaults. Different threads may use
// different objects.
struct TUTTI_API Config {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> local_rank;
  std::optional<int> local_world_size;
  std::string init_method;
  std::string store;
  std::string job_id;
  Secret token;
  std::string token_file;
  bool tls{};
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::chrono::nanoseconds timeout{};
  std::chrono::nanoseconds init_timeout{};
  std::chrono::nanoseconds heartbeat{};
  std::vector<std::string> transports;
  std::string cuda_library;
  std::string nccl_library;
  std::string pmix_library;
  std::string mpi_library;
  std::string socket_ifname;
  std::string bind_address;
  std::string advertise_address;
  std::optional<PortRange> port_range;
  log::Level log_level{};
  std::string log_file;
  std::vector<AlgorithmChoice> algorithm;
  bool deterministic{};
  std::uint64_t eager_limit{};
  std::uint64_t eager_credit{};
  std::uint64_t tcp_socket_buffer{};
  std::string tcp_congestion;
  std::uint64_t tcp_sockets{};
  std::string ib_hca;
  std::optional<int> ib_gid_index;
  std::optional<int> ib_tc;
  std::optional<int> ib_sl;
  std::optional<int> ib_timeout;
  std::optional<int> ib_retry_cnt;
  std::chrono::nanoseconds spin{};
  std::uint64_t fragment{};
  std::uint64_t shm_window{};
  std::uint64_t shm_ring{};
  std::string dump;
  std::string trace;
  bool debug{};

  using Member = std::variant<bool Config::*, std::optional<int> Config::*, std::uint64_t Config::*,
                              std::chrono::nanoseconds Config::*, std::string Config::*, Secret Config::*,
                              std::vector<std::string> Config::*, std::optional<PortRange> Config::*,
                              log::Level Config::*, std::vector<AlgorithmChoice> Config::*>;

  // A `Variable` is a row of the table.
  struct Variable {
    std::string_view name;
    Member member;
    std::string_view default_value;  // as in the environment; empty: not set
    std::string_view meaning;
    std::uint64_t least = 0;  // bounds of integers, sizes and (in nanoseconds) durations
    std::uint64_t most = UINT64_MAX;
    bool shapes_wire = false;  // must be equal on all ranks; see `wire_digest`

    // Returns "integer", "duration", "size", ...
    std::string_view type_name() const;
  };

  // A `Setting` is a row of the table with its present value. For a secret, `value` only says whether the
  // secret is set.
  struct Setting {
    const Variable* variable;
    std::string value;
    bool from_environment;
  };

  // Makes a `Config` with all defaults.
  Config();
  // Reads the process's environment. An empty value counts as not set, except for a token, where it is an
  // error. A wrong value fails with `invalid_argument`, which names the variable, the value and the expected
  // form.
  static Result<Config> from_environment();
  // Reads the given names and values in the same way.
  static Result<Config> from_values(const std::map<std::string, std::string>& values);

  static std::span<const Variable> variables();
  std::vector<Setting> settings() const;
  // Returns a line for each `TUTTI_*` name that is not in the table. The line suggests the most similar name
  // in the table.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Returns the text that ranks compare when they meet: "NAME=value;", in canonical form, for every variable
  // with `shapes_wire`.
  std::string wire_digest() const;

 private:
  std::set<std::string> given_;  // names that came from the environment
  std::vector<std::string> warnings_;
};

// Returns the table as text for a terminal, with the values of `config` and their origins.
TUTTI_API std::string describe(const Config& config);
// Returns the table as Markdown, with defaults. This is docs/variables.md.
TUTTI_API std::string variables_markdown();

}  // namespace tutti
