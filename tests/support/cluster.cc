#include "tests/support/cluster.h"

#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "control/liveness/liveness.h"
#include "tests/support/late_transport.h"
#include "tests/support/mirrored_offload.h"
#include "tests/support/reference_offload.h"
#include "transport/inproc/factory.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"

#ifdef TUTTI_TEST_VERBS
#include "tests/verbs/tested_library.h"
#include "transport/verbs/factory.h"
#endif

namespace tutti::test {

namespace {

#ifdef TUTTI_TEST_VERBS
// Neighbouring ranks use different devices, as they would on different hosts.
std::unique_ptr<Transport> make_verbs(int rank, const MessageLimits& limits) {
  // The library is never destroyed, since the thread of a world that is ending may outlive the tests.
  static const TestedLibrary& library = *new TestedLibrary;
  verbs::Options options;
  options.limits = limits;
  options.functions = &library.functions();
  options.settings.devices = rank % 2 == 0 ? "=rxe0" : "=rxe1";
  options.most_checks = 1000;  // many ranks may share two emulated processors
  // The transport registers no memory by itself, so tests can tell registered memory from other memory.
  options.register_from = std::numeric_limits<std::size_t>::max();
  return verbs::create(options).take();
}
#endif

std::unique_ptr<Transport> make_transport(const std::string& name, const std::shared_ptr<inproc::Hub>& hub,
                                          int rank, const MessageLimits& limits) {
  if (name == "inproc") return inproc::create({.hub = hub, .rank = rank, .limits = limits});
  if (name == "late") return std::make_unique<LateTransport>(make_transport("inproc", hub, rank, limits), 10);
  if (name == "shm") return shm::create({.ring = 16 * 1024, .limits = limits}).take();
  if (name == "tcp") {
    tcp::Options options;
    options.limits = limits;
    return tcp::create(options).take();
  }
#ifdef TUTTI_TEST_VERBS
  if (name == "verbs") return make_verbs(rank, limits);
#endif
  throw std::invalid_argument("no transport '" + name + "' is known to tests/support/cluster.cc");
}

std::vector<std::string> with_verbs(std::vector<std::string> names) {
#ifdef TUTTI_TEST_VERBS
  names.emplace_back("verbs");
#endif
  return names;
}

void connect_control(World& world, const std::vector<PeerInfo>& peers, std::unique_ptr<Liveness> control) {
  Liveness& plane = *control;
  plane.meet(world.mesh->rank(), peers);
  world.desk.start(std::move(control));
  const Status linked = plane.wait_linked(Deadline::after(std::chrono::seconds(60)));
  if (!linked.ok()) throw Error(linked);
}

template <class Body>
void on_each(std::size_t count, Body body) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const std::vector<std::string>& all_transports() {
  static const std::vector<std::string> names = with_verbs({"inproc", "tcp", "shared", "shm", "late"});
  return names;
}

const std::vector<std::string>& writing_transports() {
  static const std::vector<std::string> names = with_verbs({"inproc", "late"});
  return names;
}

const std::vector<std::string>& all_connections() {
  static const std::vector<std::string> names =
      with_verbs({"inproc", "tcp", "shared", "shm", "late", "offload", "staged"});
  return names;
}

Cluster::Cluster(int size, ClusterOptions options) {
  const bool offloaded = options.transport == "offload" || options.transport == "staged";
  if (options.transport == "offload") options.offloads = reference_offloads({.host_memory = true});
  if (options.transport == "staged") options.offloads = mirrored_staged_offloads();
  if (offloaded) options.transport = "inproc";
  const bool shared = options.transport == "shared" || options.transport == "shm";
  if (options.transport == "shared") options.transport = "inproc";
  const auto count = static_cast<std::size_t>(size);
  const auto hub = inproc::make_hub();
  std::vector<std::vector<std::unique_ptr<Transport>>> transports(count);
  std::vector<std::vector<std::unique_ptr<Offload>>> offloads(count);
  std::vector<std::unique_ptr<Liveness>> control(count);
  std::vector<PeerInfo> peers(count);
  for (std::size_t i = 0; i < count; ++i) {
    peers[i].rank = static_cast<int>(i);
    peers[i].host = "test";
    peers[i].boot_id = "test";
    peers[i].pid = static_cast<std::int64_t>(i) + 1000;
    auto transport = make_transport(options.transport, hub, peers[i].rank, options.limits);
    if (options.decorate) transport = options.decorate(peers[i].rank, std::move(transport));
    transports[i].push_back(std::move(transport));
    if (options.offloads) offloads[i] = options.offloads(peers[i].rank);
    for (const auto& offload : offloads[i])
      peers[i].offloads[std::string(offload->name())] = offload->facts();
    peers[i].addresses[std::string(transports[i].front()->name())] = transports[i].front()->address();
    if (!options.control) continue;
    LivenessOptions how;
    how.bind = "127.0.0.1";
    control[i] = Liveness::create(how).take();
    peers[i].addresses[liveness::address_name] = control[i]->address();
  }
  communicators_.resize(count);
  on_each(count, [&](std::size_t i) {
    auto engine = std::make_shared<Engine>(options.driver);
    MeshOptions mesh_options;
    mesh_options.rank = static_cast<int>(i);
    mesh_options.peers = peers;
    mesh_options.transports = std::move(transports[i]);
    mesh_options.limits = options.limits;
    auto mesh = std::make_unique<Mesh>(engine->driver, std::move(mesh_options));
    {
      const DriverGuard guard(engine->driver);
      const Status started = mesh->start();
      if (!started.ok()) throw Error(started);
    }
    auto world = std::make_shared<World>(
        engine, std::move(mesh), Selector::create(CostModel{}, options.algorithms).take(), options.timeout);
    world->window_bytes = shared ? options.window_bytes : 0;
    world->shared_room = options.shared_room;
    world->patient = false;
    world->offloads = std::move(offloads[i]);
    world->part_of = options.part_of;
    if (control[i] != nullptr) connect_control(*world, peers, std::move(control[i]));
    communicators_[i] = create_communicator(world);
    // The first call opens the session of the offload, and blocks until all ranks have called. Many
    // tests expect that their own first call does not block, so this barrier comes before all of
    // their calls.
    if (offloaded) communicators_[i].barrier().wait();
  });
}

Cluster::~Cluster() {
  on_each(communicators_.size(), [this](std::size_t i) { communicators_[i] = Communicator(); });
}

void Cluster::run(const std::function<void(Communicator&)>& body) {
  on_each(communicators_.size(), [&](std::size_t i) {
    try {
      body(communicators_[i]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << i << ": " << error.what();
    }
  });
}

}  // namespace tutti::test
