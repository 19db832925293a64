#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tutti/config.h>
#include <tutti/init.h>
#include <tutti/log.h>
#include <tutti/version.h>

#include "bindings/cpp/launching.h"
#include "bindings/cpp/loopback_check.h"
#include "bindings/cpp/mpi_meeting.h"
#include "bindings/cpp/offloads.h"
#include "bindings/cpp/transports.h"
#include "bindings/cpp/waiting.h"
#include "collectives/group/world.h"
#include "collectives/record/debug_socket.h"
#include "collectives/record/recorder.h"
#include "collectives/schedule/calibration.h"
#include "control/liveness/liveness.h"
#include "core/error_text.h"
#include "core/memory_limit.h"
#include "core/reserve.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/launch/open_ports.h"
#include "rendezvous/meeting/bootstrap.h"
#include "rendezvous/store/prefix_store.h"

namespace tutti {

namespace {

// `Setup` holds everything that one call of `init` collects.
struct Setup {
  Config config;
  InitOptions options;
  security::Settings security;
  std::vector<std::unique_ptr<Transport>> transports = {};
  std::unique_ptr<Liveness> liveness = {};
  std::vector<std::unique_ptr<Offload>> offloads = {};

  const std::vector<std::string>& transport_names() const {
    return options.transports.empty() ? config.transports : options.transports;
  }
  // Returns whether the user has chosen the transport `mpi`.
  bool names_mpi() const {
    const std::vector<std::string>& names = transport_names();
    return std::ranges::find(names, "mpi") != names.end();
  }
  // Returns a text that must be equal on all ranks. It says whether this rank has a token, because
  // a store that is not tutti's own does not check tokens.
  std::string wire_digest() const {
    return config.wire_digest() + "TUTTI_TOKEN=" + (security.token.empty() ? "" : "(set)") + ";";
  }
  std::string prefix() const { return "tutti/" + config.job_id; }
  // Returns facts about this rank's offloads, which the other ranks need.
  std::map<std::string, std::string> offload_facts() const {
    std::map<std::string, std::string> facts;
    for (const auto& offload : offloads) facts[std::string(offload->name())] = offload->facts();
    return facts;
  }
  // Makes the transports and `liveness`, and returns their addresses. Every attempt to meet makes new ones,
  // because it may need a different interface.
  Result<std::map<std::string, std::string>> addresses(const std::optional<SocketAddress>& route,
                                                       const security::SharedCredentials& credentials) {
    transports.clear();
    auto made = make_transports(transport_names(), {config, route, credentials});
    if (!made.ok()) return made.status();
    transports = std::move(made).take();
    std::map<std::string, std::string> named;
    for (const auto& transport : transports) named[std::string(transport->name())] = transport->address();
    auto control = make_liveness(route, credentials);
    if (!control.ok()) return control.status();
    liveness = std::move(control).take();
    named[liveness::address_name] = liveness->address();
    return named;
  }
  Result<std::unique_ptr<Liveness>> make_liveness(const std::optional<SocketAddress>& route,
                                                  const security::SharedCredentials& credentials) const {
    auto addresses = listen_addresses({config, route});
    if (!addresses.ok()) return addresses.status();
    warn_of_open_ports(credentials, *addresses);
    LivenessOptions how;
    how.bind = addresses->front();
    how.advertise = config.advertise_address;
    how.limit = config.heartbeat;
    how.credentials = credentials;
    if (config.port_range) {
      how.first_port = config.port_range->first;
      how.last_port = config.port_range->last;
    }
    return Liveness::create(how);
  }
};

Setup configure(const InitOptions& options) {
  Setup setup{Config::from_environment().take(), options, {}};
  const Status logging = log::configure(setup.config.log_level, setup.config.log_file);
  if (!logging.ok()) throw Error(logging);
  for (const std::string& warning : setup.config.warnings()) log::warn(warning);
  setup.security = security::settings_from(setup.config).take();
  setup.offloads = make_offloads(setup.transport_names(), setup.config).take();
  return setup;
}

// Returns the version that all ranks must run, such as "0.1.0 (build 3fa92c11d0e4)".
std::string build_name() { return std::string(version()) + " (build " + std::string(build()) + ")"; }

// Returns the costs that this rank assumes for messages before any measurement. Only the driving thread may
// call it.
CostModel shipped_costs(const Config& config, const Mesh& mesh) {
  const int neighbour = mesh.rank() == 0 ? 1 : 0;
  CostModel model = shipped_model(mesh.size() > 1 ? mesh.transport_name(neighbour) : "");
  model.eager = config.eager_limit;
  model.cores = static_cast<int>(count_cores().of_rank);
  return model;
}

// Starts the server for `tutti debug`. The rank works without the server if it cannot start.
void answer_questions(World& world) {
  auto server = DebugServer::create([recorder = world.recorder.get()] { return recorder->tell(); });
  if (server.ok()) {
    world.debug_server = std::move(server).take();
  } else {
    log::info("this rank cannot be asked by `tutti debug`: ", server.status().message());
  }
}

// Starts the trace. The rank works without the trace if it cannot start.
void trace(World& world, const std::string& pattern) {
  auto started = world.recorder->start_trace(pattern);
  if (started.ok()) {
    world.engine->trace = std::move(started).take();
  } else {
    log::warn(started.status().message());
  }
}

// `init` waits at most this long for the control plane's first links. Once a rank is linked, its neighbours
// notice if it dies, even soon after `init`.
constexpr std::chrono::seconds linking_limit{10};
// At most this much of the timeout is reserved for telling the other ranks of a failure.
constexpr std::chrono::milliseconds most_reserved{1000};
// A world whose `init` has failed may take this long to say goodbye.
constexpr std::chrono::milliseconds failed_goodbye_limit{200};

// Waits for the links of the control plane. Logs missing links, since later failures may have the same cause.
void link(Liveness& liveness, const PeerInfo& self, Deadline deadline) {
  const Status linked = liveness.wait_linked(earlier(deadline, Deadline::after(linking_limit)));
  if (linked.ok()) return;
  const std::string here = self.describe() + ": init()";
  if (linked.code() == Code::resource_exhausted) throw Error(linked.with_context(here));
  if (deadline.expired()) throw Error(linked.with_context(here + " was not over in time"));
  log::warn("not all control connections could be made so far: ", linked.message());
}

MeshOptions mesh_options(Setup& setup, int rank, std::vector<PeerInfo> peers) {
  MeshOptions options;
  options.rank = rank;
  options.peers = std::move(peers);
  options.transports = std::move(setup.transports);
  options.limits = limits_of(setup.config);
  return options;
}

// Makes a world of `peers`. The world has neither control connections nor a communicator yet. Sets
// `shipped` to the costs that are assumed before any measurement.
std::shared_ptr<World> make_world(Setup& setup, int rank, std::vector<PeerInfo> peers,
                                  const DriverOptions& waiting, CostModel& shipped) {
  auto engine = std::make_shared<Engine>(waiting);
  const int sharing = hosts_per_machine(peers);
  auto mesh = std::make_unique<Mesh>(engine->driver, mesh_options(setup, rank, std::move(peers)));
  {
    const DriverGuard guard(engine->driver);
    const Status started = mesh->start();
    if (!started.ok()) throw Error(started);
    shipped = shipped_costs(setup.config, *mesh);
    shipped.hosts_per_machine = sharing;
  }
  // Ranks of different hosts may have different `shipped` costs. All ranks must use the same costs
  // until they have agreed, because the agreement itself uses a collective whose algorithm depends
  // on the costs.
  const std::string overrides = format_algorithm_choices(setup.config.algorithm);
  return std::make_shared<World>(std::move(engine), std::move(mesh),
                                 Selector::create(CostModel{}, overrides).take(), setup.config.timeout);
}

// Agrees with all other ranks on the costs of messages, which decide the choice of algorithms. The ranks
// measure the costs unless `config.deterministic` is true.
void agree_with_others(const std::shared_ptr<World>& world, const Config& config, const CostModel& shipped) {
  // The agreement has a separate communicator, so that its operations do not count as operations of the
  // world's communicator.
  world->part_of = Composite::init;
  Communicator scout = create_communicator(world);
  const CostModel agreed = agree_on_costs(scout, world->topology, shipped, !config.deterministic);
  log::info("the ranks agreed on these costs: ", describe(agreed));
  world->selector = Selector::create(agreed, format_algorithm_choices(config.algorithm)).take();
  // This all_reduce must come after the agreement. Ranks of different hosts might choose different
  // algorithms without the agreement.
  world->shared_room = lazy_memory();
  scout.all_reduce(Buffer(&world->shared_room, 1, DataType::uint64), ReduceOp::min).wait();
  world->part_of = Composite::none;
}

// Makes the communicator that `init` returns. The ranks must already have agreed on the costs of messages.
Communicator open_world(const std::shared_ptr<World>& world, const Config& config, Deadline deadline) {
  world->default_timeout = config.timeout;
  world->window_bytes = config.shm_window;
  world->recorder->configure(std::string(version()), config.job_id, config.dump);
  if (!config.trace.empty()) trace(*world, config.trace);
  if (config.debug) answer_questions(*world);
  world->sharing_limit = std::min(World::usual_sharing_limit, deadline.remaining());
  Communicator all = create_communicator(world);
  world->sharing_limit = World::usual_sharing_limit;
  world->goodbye_limit = World::usual_goodbye_limit;
  return all;
}

Communicator build_world(Setup& setup, int rank, const std::vector<PeerInfo>& peers, Deadline init_deadline) {
  const int size = static_cast<int>(peers.size());
  const Deadline deadline = without_reserve(init_deadline, most_reserved);
  log::set_rank(rank, size);
  const DriverOptions waiting =
      waiting_of(peers[static_cast<std::size_t>(rank)], peers, count_cores(), setup.config.spin);
  setup.liveness->meet(rank, peers);
  CostModel shipped;
  const std::shared_ptr<World> world = make_world(setup, rank, peers, waiting, shipped);
  world->patient = waiting.spin.count() > 0;
  world->offloads = std::move(setup.offloads);
  world->goodbye_limit = failed_goodbye_limit;
  if (size > 1) {
    Liveness& liveness = *setup.liveness;
    world->desk.start(std::move(setup.liveness));
    link(liveness, peers[static_cast<std::size_t>(rank)], deadline);
    world->default_timeout = std::min(setup.config.timeout, deadline.remaining());
    world->sharing_limit = std::min(World::usual_sharing_limit, deadline.remaining());
    agree_with_others(world, setup.config, shipped);
  }
  return open_world(world, setup.config, deadline);
}

// Returns the error of a failed `init`. The error also says if this rank ran out of file
// descriptors in the meantime, since that may be the cause.
Error failure_of_init(const Status& status, std::uint64_t shortages_before) {
  const bool said = status.code() == Code::resource_exhausted;
  if (said || descriptor_shortages() == shortages_before) return Error(status);
  return Error(Status(status.code(), status.message() + "; meanwhile: " + error_text(EMFILE), status.peer()));
}

// Returns the function that builds the world. The rendezvous calls this function while the store still
// exists. So the other ranks learn through the store if the function fails.
std::function<Status(const std::vector<PeerInfo>&)> builder(Setup& setup, int rank, Deadline deadline,
                                                            std::optional<Communicator>& built) {
  return [&setup, rank, deadline, &built](const std::vector<PeerInfo>& peers) {
    try {
      built = build_world(setup, rank, peers, deadline);
    } catch (const Error& error) {
      return error.status();
    }
    return Status();
  };
}

}  // namespace

Placement placement(const InitOptions& given) {
  const Launch launch = launch_of(given);
  return {launch.rank, launch.world_size};
}

Communicator init(const InitOptions& given) {
  Setup setup = configure(given);
  std::unique_ptr<MpiMeeting> mpi;
  const Launch launch = launch_of(given, setup.config, setup.names_mpi(), mpi);
  log::debug("rank ", launch.rank, " of ", launch.world_size, " by ", launch.source, ", meeting at ",
             to_string(launch.store));
  JoinOptions join_options;
  join_options.session.bind_address = setup.config.bind_address;
  join_options.session.advertise_address = setup.config.advertise_address;
  join_options.session.security = setup.security;
  join_options.session.pmix_library = setup.config.pmix_library;
  if (mpi) join_options.session.mpi_announcer = [&mpi] { return mpi->announcer(); };
  join_options.session.interfaces = interface_filter(setup.config.socket_ifname);
  if (setup.config.port_range) {
    join_options.session.first_port = setup.config.port_range->first;
    join_options.session.last_port = setup.config.port_range->last;
  }
  join_options.session.interrupted = given.interrupted;
  join_options.prefix = setup.prefix();
  join_options.wire_digest = setup.wire_digest();
  join_options.version = build_name();
  join_options.offloads = setup.offload_facts();
  join_options.addresses = [&](const Session& session) {
    return setup.addresses(session.route, session.credentials);
  };
  const Deadline deadline = init_deadline(given, setup.config, launch.timeout);
  std::optional<Communicator> built;
  join_options.approve = check_loopback;
  join_options.connect = builder(setup, launch.rank, deadline, built);
  const std::uint64_t shortages = descriptor_shortages();
  const Status joined = join(launch, join_options, deadline).status();
  if (!joined.ok()) throw failure_of_init(joined, shortages);
  return *std::move(built);
}

Communicator init(std::string_view url) { return init(InitOptions{.url = std::string(url)}); }

Communicator init(std::shared_ptr<Store> store, int rank, int world_size, const InitOptions& given) {
  if (rank < 0 || rank >= world_size || world_size > max_ranks) {
    throw Error(Status(Code::invalid_argument,
                       "rank " + std::to_string(rank) + " of a world of " + std::to_string(world_size)));
  }
  Setup setup = configure(given);
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = world_size;
  const security::SharedCredentials credentials = security::Credentials::create(setup.security).take();
  const Deadline deadline = init_deadline(given, setup.config, std::nullopt);
  if (setup.names_mpi()) join_mpi(given, setup.config, deadline);
  self.wire_digest = setup.wire_digest();
  self.version = build_name();
  self.offloads = setup.offload_facts();
  PrefixStore keys(setup.prefix(), std::move(store));
  std::optional<Communicator> built;
  ExchangeOptions options{.interrupted = given.interrupted};
  options.addresses = [&] { return setup.addresses(std::nullopt, credentials); };
  options.approve = check_loopback;
  options.connect = builder(setup, rank, deadline, built);
  const std::uint64_t shortages = descriptor_shortages();
  const Status met = exchange(keys, self, options, deadline).status();
  if (!met.ok()) throw failure_of_init(met, shortages);
  return *std::move(built);
}

}  // namespace tutti
