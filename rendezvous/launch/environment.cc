#include "rendezvous/launch/environment.h"

#include <span>
#include <string_view>

#include <unistd.h>

#include "core/security/digest.h"
#include "core/shown.h"
#include "rendezvous/launch/environment_sources.h"
#include "rendezvous/launch/interfaces.h"
#include "rendezvous/launch/url.h"

namespace tutti {
namespace {

using launch::Found;
using launch::Reader;
using launch::Source;

Status invalid(const std::string& message) { return Status(Code::invalid_argument, message); }

// `Explicit` collects what the arguments, the URL and the TUTTI_* variables say. Each setting may come from
// any of them.
class Explicit {
 public:
  Status say_rank(const std::optional<Found>& found) { return say("rank", rank_, found); }
  Status say_world_size(const std::optional<Found>& found) { return say("world size", world_size_, found); }
  Status say_store(const StoreLocation& location, const std::string& from);
  Status say_url(const std::string& url, const std::string& from);

  std::optional<Found> rank_;
  std::optional<Found> world_size_;
  StoreLocation store_;
  std::string store_from_;
  bool has_url_ = false;
  std::optional<std::chrono::nanoseconds> timeout_;

 private:
  static Status say(const char* what, std::optional<Found>& known, const std::optional<Found>& found);
};

Status Explicit::say(const char* what, std::optional<Found>& known, const std::optional<Found>& found) {
  if (!found) return {};
  if (!known) known = found;
  if (known->value == found->value) return {};
  return invalid(std::string(what) + " is " + std::to_string(known->value) + " in " + known->from + " but " +
                 std::to_string(found->value) + " in " + found->from);
}

Status Explicit::say_store(const StoreLocation& location, const std::string& from) {
  if (store_.kind == StoreLocation::Kind::none) {
    store_ = location;
    store_from_ = from;
    return {};
  }
  // The store counts as already served if either location says so.
  const bool served = store_.served || location.served;
  StoreLocation known = store_, said = location;
  known.served = said.served = served;
  if (known != said) {
    return invalid("the ranks meet at " + to_string(store_) + " according to " + store_from_ + " but at " +
                   to_string(location) + " according to " + from);
  }
  store_.served = served;
  return {};
}

Status Explicit::say_url(const std::string& url, const std::string& from) {
  if (url.empty()) return {};
  Result<InitUrl> parsed = parse_url(url);
  if (!parsed.ok()) return from.empty() ? parsed.status() : parsed.status().with_context(from);
  has_url_ = true;
  const std::string where = (from.empty() ? "the URL" : from) + " " + shown("", url);
  if (!timeout_) timeout_ = parsed->timeout;
  const auto found = [&](std::optional<int> value) {
    return value ? std::optional(Found{*value, where}) : std::nullopt;
  };
  if (Status status = say_rank(found(parsed->rank)); !status.ok()) return status;
  if (Status status = say_world_size(found(parsed->world_size)); !status.ok()) return status;
  if (parsed->scheme == InitUrl::Scheme::tcp) {
    return say_store({StoreLocation::Kind::tcp, parsed->host, parsed->port, false, {}}, where);
  }
  if (parsed->scheme == InitUrl::Scheme::file) {
    return say_store({StoreLocation::Kind::file, {}, 0, false, parsed->path}, where);
  }
  if (parsed->scheme == InitUrl::Scheme::mpi) {
    return say_store({StoreLocation::Kind::mpi, {}, 0, false, {}}, where);
  }
  return {};
}

Status read_arguments(const LaunchArguments& arguments, Explicit& known) {
  const auto found = [&](std::optional<int> value) {
    return value ? std::optional(Found{*value, arguments.said_by}) : std::nullopt;
  };
  if (arguments.rank && *arguments.rank < 0) {
    return invalid("rank is " + std::to_string(*arguments.rank) +
                   " in the arguments; it must not be negative");
  }
  if (arguments.world_size && *arguments.world_size < 1) {
    return invalid("world size is " + std::to_string(*arguments.world_size) +
                   " in the arguments; it must be at least 1");
  }
  if (Status status = known.say_rank(found(arguments.rank)); !status.ok()) return status;
  if (Status status = known.say_world_size(found(arguments.world_size)); !status.ok()) return status;
  return known.say_url(arguments.url, {});
}

Status read_store_variable(const std::string& value, Explicit& known) {
  Result<InitUrl> parsed = parse_url(value.find("://") == std::string::npos ? "tcp://" + value : value);
  if (!parsed.ok() || parsed->scheme != InitUrl::Scheme::tcp) {
    return invalid("TUTTI_STORE is '" + shown("TUTTI_STORE", value) +
                   "'; expected host:port of a store that is already served");
  }
  return known.say_store({StoreLocation::Kind::tcp, parsed->host, parsed->port, true, {}}, "TUTTI_STORE");
}

Status read_tutti(Reader& reader, Explicit& known) {
  const std::optional<Found> rank = reader.number("TUTTI_RANK", 0);
  const std::optional<Found> world_size = reader.number("TUTTI_WORLD_SIZE", 1);
  if (!reader.status().ok()) return reader.status();
  if (Status status = known.say_rank(rank); !status.ok()) return status;
  if (Status status = known.say_world_size(world_size); !status.ok()) return status;
  if (Status status = known.say_url(reader.text("TUTTI_INIT_METHOD").value_or(""), "TUTTI_INIT_METHOD");
      !status.ok()) {
    return status;
  }
  const std::optional<std::string> store = reader.text("TUTTI_STORE");
  if (!reader.status().ok()) return reader.status();
  return store ? read_store_variable(*store, known) : Status();
}

// `Assembly` is a launch in the making. Each source fills in only values that earlier sources have left open.
struct Assembly {
  std::optional<Found> rank;
  std::optional<Found> world_size;
  StoreLocation store;
  Secret launcher_key = {};
  std::string source = {};

  void add_source(const std::string& from) {
    if (source.find(from) == std::string::npos) source += (source.empty() ? "" : ", ") + from;
  }
  bool needs_store() const {
    return store.kind == StoreLocation::Kind::none && !(world_size && world_size->value == 1);
  }
};

Result<Launch> finish(Assembly assembly, const Explicit& known, Reader& reader) {
  if (assembly.rank->value >= assembly.world_size->value) {
    return invalid("rank " + std::to_string(assembly.rank->value) + " (from " + assembly.rank->from +
                   ") is not below the world size " + std::to_string(assembly.world_size->value) + " (from " +
                   assembly.world_size->from + ")");
  }
  Launch launch;
  launch.rank = assembly.rank->value;
  launch.world_size = assembly.world_size->value;
  launch.store = assembly.store;
  launch.launcher_key = assembly.launcher_key;
  launch.timeout = known.timeout_;
  launch.source = assembly.source;
  const std::optional<Found> local_rank = reader.number("TUTTI_LOCAL_RANK", 0);
  const std::optional<Found> local_size = reader.number("TUTTI_LOCAL_WORLD_SIZE", 1);
  if (local_rank) launch.local_rank = local_rank->value;
  if (local_size) launch.local_world_size = local_size->value;
  if (!reader.status().ok()) return reader.status();
  return launch;
}

// Returns whether this source alone provides every value that `known` lacks.
bool can_complete(const Explicit& known, const Source& source) {
  const bool identity = known.rank_.has_value() || (source.rank && source.world_size);
  const std::optional<Found>& size = known.rank_ ? known.world_size_ : source.world_size;
  const bool place = known.store_.kind != StoreLocation::Kind::none ||
                     source.store.kind != StoreLocation::Kind::none || (size && size->value == 1);
  return identity && place;
}

Result<Launch> complete(const Explicit& known, const Source& source, Reader& reader) {
  Assembly assembly{known.rank_, known.world_size_, known.store_};
  if (known.rank_) {
    assembly.add_source(known.rank_->from);
    assembly.add_source(known.world_size_->from);
  }
  if (known.store_.kind != StoreLocation::Kind::none) assembly.add_source(known.store_from_);
  if (!assembly.rank) {
    assembly.rank = source.rank;
    assembly.world_size = source.world_size;
    assembly.add_source(source.rank->from);
    assembly.add_source(source.world_size->from);
  }
  if (assembly.needs_store()) {
    assembly.store = source.store;
    assembly.launcher_key = source.launcher_key;
    assembly.add_source(source.store_from);
  }
  Result<Launch> launch = finish(std::move(assembly), known, reader);
  if (!launch.ok()) return launch;
  if (!launch->local_rank && source.local_rank) launch->local_rank = source.local_rank->value;
  if (!launch->local_world_size && source.local_world_size) {
    launch->local_world_size = source.local_world_size->value;
  }
  return launch;
}

// Fails if only one of rank and world size is given, since taking the missing value from elsewhere would mix
// two launchers.
Status check_halves(const Explicit& known) {
  if (known.rank_ && !known.world_size_) {
    return invalid("the rank is given in " + known.rank_->from +
                   " but the world size is not; set TUTTI_WORLD_SIZE, or world_size where the rank is");
  }
  if (known.world_size_ && !known.rank_) {
    return invalid("the world size is given in " + known.world_size_->from +
                   " but the rank is not; set TUTTI_RANK, or rank where the world size is");
  }
  return {};
}

// Returns the error for a launch whose rank is known but whose meeting place is not. `master` is what the
// MASTER_* variables say, which is incomplete here.
Status no_place(const Explicit& known, const Source& master) {
  const std::string set = launch::list_names(master.names);
  return invalid("cannot tell where the ranks meet (the rank comes from " + known.rank_->from +
                 "): set TUTTI_INIT_METHOD, such as tcp://host:port, or TUTTI_STORE to the host:port of a "
                 "store that is served, or " +
                 master.missing + (set.empty() ? "" : " (" + set + " is set)"));
}

Status nothing_complete(const std::vector<std::string>& incomplete) {
  std::string text = "cannot tell who this process is and where the others are";
  if (!incomplete.empty()) {
    text += ": ";
    for (std::size_t i = 0; i < incomplete.size(); ++i) text += (i == 0 ? "" : "; ") + incomplete[i];
    return invalid(text);
  }
  return invalid(text + ": set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or use a URL such as " +
                 "tcp://host:port?rank=0&world_size=2, or start with `tutti run`");
}

}  // namespace

Result<Launch> discover(const LaunchArguments& arguments, const Environment& environment,
                        const std::vector<std::string>& own_addresses) {
  Reader reader(environment);
  Explicit known;
  if (Status status = read_arguments(arguments, known); !status.ok()) return status;
  if (Status status = read_tutti(reader, known); !status.ok()) return status;
  if (Status status = check_halves(known); !status.ok()) return status;
  if (known.rank_ && (known.store_.kind != StoreLocation::Kind::none || known.world_size_->value == 1)) {
    return complete(known, Source(), reader);
  }
  std::vector<std::string> incomplete;
  if (known.rank_) {
    Source master;
    master.world_size = known.world_size_;
    launch::read_master(reader, master);
    if (!reader.status().ok()) return reader.status();
    if (can_complete(known, master)) return complete(known, master, reader);
    return no_place(known, master);
  }
  for (const launch::ReadSource read : launch::outer_sources()) {
    const Source source = read(reader, own_addresses);
    if (!reader.status().ok()) return reader.status();
    if (!source.is_present()) continue;
    if (can_complete(known, source)) return complete(known, source, reader);
    incomplete.push_back(launch::describe(source));
  }
  if (incomplete.empty() && !known.has_url_ && known.store_.kind == StoreLocation::Kind::none) {
    return finish({.rank = Found{0, "default"},
                   .world_size = Found{1, "default"},
                   .store = {},
                   .source = "nothing: a world of one rank"},
                  known, reader);
  }
  return nothing_complete(incomplete);
}

Environment environment_of_process() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != text.npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Result<Launch> discover(const LaunchArguments& arguments) {
  std::vector<std::string> own;
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (interfaces.ok()) {
    for (const Interface& interface : *interfaces) {
      for (const SocketAddress& address : interface.addresses) own.push_back(address.host());
    }
  }
  Environment environment = environment_of_process();
  // Finding a launch does not need the token, so this copy of it is wiped at once.
  if (const auto token = environment.find("TUTTI_TOKEN"); token != environment.end())
    security::wipe(token->second);
  Result<Launch> launch = discover(arguments, environment, own);
  if (const auto key = environment.find(launch::open_mpi_key); key != environment.end())
    security::wipe(key->second);
  return launch;
}

}  // namespace tutti
