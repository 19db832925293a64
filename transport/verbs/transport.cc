#include "transport/verbs/transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <endian.h>

#include <tutti/log.h>

#include "core/error_text.h"
#include "core/random.h"
#include "transport/meeting/socket.h"
#include "transport/verbs/channel.h"
#include "transport/verbs/registration_cost.h"

namespace tutti::verbs {
namespace {

Fabric fabric_of(const DevicePort& port) {
  Fabric fabric;
  fabric.ethernet = port.is_ethernet();
  if (!fabric.ethernet) fabric.subnet = be64toh(port.gids.front().value.global.subnet_prefix);
  for (const Gid& gid : port.gids) fabric.kinds.push_back(static_cast<std::uint8_t>(gid.kind));
  return fabric;
}

}  // namespace

Transport::~Transport() = default;

Status Transport::prepare() {
  if (context_.options.encrypted) {
    return Status(Code::unsupported,
                  "TUTTI_TLS is set, but messages over InfiniBand and RoCE would not be encrypted");
  }
  context_.address.nonce = random_number();
  context_.address.limits = context_.options.limits;
  const Status opened = open_ports();
  return opened.ok() ? listen() : opened;
}

Status Transport::open_ports() {
  const Functions* functions = context_.options.functions;
  if (functions == nullptr) {
    const Result<const Functions*> loaded = load();
    if (!loaded.ok()) return loaded.status();
    functions = *loaded;
  }
  // `ibv_fork_init` must come before any memory is registered. Without it, a fork takes pages away from the
  // cards on kernels before 5.12. On later kernels `ibv_fork_init` does nothing.
  if (const int error = functions->fork_init(); error != 0)
    log::info("verbs: a process that forks may lose data, since ibv_fork_init has failed: ",
              error_text(error));
  const Settings& settings = context_.options.settings;
  PortFilter filter;
  if (!settings.devices.empty()) {
    Result<PortFilter> parsed = PortFilter::parse(settings.devices, settings.devices_variable);
    if (!parsed.ok()) return parsed.status();
    filter = *std::move(parsed);
  }
  Result<std::vector<DevicePort>> ports = usable_ports(*functions, filter, settings.gid_index);
  if (!ports.ok()) return ports.status();
  return open_rails(*functions, *std::move(ports));
}

Status Transport::open_rails(const Functions& functions, std::vector<DevicePort> ports) {
  std::vector<SharedDomain> domains;
  Status last;
  for (DevicePort& port : ports) {
    if (context_.rails.size() == max_rails) break;
    Result<std::unique_ptr<Rail>> rail = Rail::create(functions, std::move(port));
    if (!rail.ok()) {
      last = rail.status();
      log::info("verbs: a port is left out: ", last.message());
      continue;
    }
    context_.rails.push_back(*std::move(rail));
    domains.push_back(context_.rails.back()->domain());
    context_.address.fabrics.push_back(fabric_of(context_.rails.back()->port()));
  }
  if (context_.rails.empty()) return last;
  const auto& register_from = context_.options.register_from;
  context_.memory = std::make_unique<RailMemory>(
      domains, register_from ? *register_from : measure_registration(domains.front()));
  return {};
}

Status Transport::listen() {
  const Options& options = context_.options;
  const Status listening = listeners_.open(context_, *this, options,
                                           {.name = "verbs",
                                            .service = context_.service,
                                            .credentials = options.credentials,
                                            .hello_limit = options.handshake_timeout});
  context_.address.endpoints = listeners_.endpoints();
  return listening;
}

std::string Transport::facts() const {
  std::string text;
  for (const auto& rail : context_.rails) text += (text.empty() ? "" : "; ") + rail->port().describe();
  return text;
}

// Both ranks get the same answer, since each rank checks the addresses of both.
Status Transport::can_reach(const PeerInfo& peer) const {
  const auto theirs = published_by(peer);
  if (!theirs) return Status(Code::unreachable, peer.describe() + " has no usable verbs address", peer.rank);
  if (pair_rails(context_.address, *theirs, true).empty())
    return Status(Code::unreachable, peer.describe() + " is on another InfiniBand or RoCE network",
                  peer.rank);
  return context_.endpoints_reach(peer, *theirs);
}

Status Transport::start(Driver& driver, TransportOwner& owner) {
  context_.start(driver, owner, *this);
  // Each peer needs room for the completions of one pipe, and of a second one while it connects.
  const auto pipes = 2 * static_cast<std::uint64_t>(owner.size());
  for (const auto& rail : context_.rails) {
    const Status started = rail->start(context_, pipes * Pipe::most_requests(context_.options.slots));
    // A port that has not started gives no queue pairs. If no port gives any, every peer is refused, and the
    // next transport is used.
    if (!started.ok()) log::warn("verbs: a port cannot be used: ", started.message());
  }
  return listeners_.start(owner.rank());
}

std::unique_ptr<tutti::Channel> Transport::open(int peer, std::chrono::nanoseconds connect_timeout) {
  auto channel = std::make_unique<Channel>(context_, peer, connect_timeout);
  context_.channels.add(peer, *channel);
  return channel;
}

bool Transport::poll() {
  context_.discarded.clear();
  bool any = context_.timers.run();
  for (const auto& rail : context_.rails) any = rail->poll() || any;
  return any;
}

bool Transport::prepare_sleep() {
  bool any = false;
  for (const auto& rail : context_.rails) any = rail->arm() || any;
  return any;
}

bool Transport::expects_memory() const {
  return std::ranges::any_of(context_.rails, [](const auto& rail) { return rail->in_use(); });
}

void Transport::stop() {
  listeners_.close();
  if (context_.driver == nullptr) return;
  context_.discarded.clear();
  for (const auto& rail : context_.rails) rail->stop();
  context_.stop(*this);
}

bool Transport::begins_like_hello(std::span<const std::byte> bytes) const {
  const Note example;
  return bytes.empty() ||
         std::memcmp(bytes.data(), &example.magic, std::min(bytes.size(), sizeof example.magic)) == 0;
}

std::optional<std::uint32_t> Transport::claimed_rank(std::span<const std::byte> hello) const {
  const Note note = meeting::note_of<Note>(hello);
  return note.is_ours() ? std::optional(note.from) : std::nullopt;
}

void Transport::on_hello(meeting::Guest guest) {
  const Note hello = meeting::note_of<Note>(guest.hello);
  meeting::tune(guest.connection.descriptor());
  auto link = std::make_unique<Link>(context_, std::move(guest.connection), nullptr);
  if (hello.kind != NoteKind::connect || !context_.is_from_peer(hello)) {
    log::debug("verbs: refused a connection from a process that claims to be rank ", hello.from);
    return;
  }
  const int from = static_cast<int>(hello.from);
  const tutti::Channel* const wanted = context_.owner->on_incoming(from, *this);
  Channel* const channel = context_.channels.find(from);
  if (channel == nullptr || channel != wanted) {
    Note note;
    note.why.set(
        Status(Code::unreachable, context_.describe(context_.owner->rank()) + " does not use verbs"));
    link->send(note);
  } else if (const Status watched = link->start(); watched.ok()) {
    channel->accept(hello, std::move(link));
  }
}

}  // namespace tutti::verbs
