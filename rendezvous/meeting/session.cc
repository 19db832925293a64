#include "rendezvous/meeting/session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <tutti/log.h>
#include <tutti/store_server.h>

#include "core/backoff.h"
#include "core/error_text.h"
#include "core/random.h"
#include "core/security/digest.h"
#include "rendezvous/meeting/announcers.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/store/memory/memory_store.h"
#include "rendezvous/store/tcp/look_up.h"
#include "rendezvous/store/tcp/store_client.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

// If the port of its store is in use, rank 0 tries again for this long. An earlier session of the same job
// may take a moment to release the port.
constexpr milliseconds port_patience{1500};
constexpr milliseconds first_look_pause{20};
constexpr milliseconds longest_look_pause{250};
constexpr milliseconds endpoint_limit{2000};
constexpr milliseconds patience_when_denied{3000};
constexpr std::size_t token_bytes = 32;

struct Places {
  std::vector<std::string> addresses;
  std::string doubt;
};

bool is_own(const std::string& address, const std::vector<Interface>& interfaces) {
  return std::ranges::any_of(interfaces, [&](const Interface& interface) {
    return std::ranges::find(interface.addresses, address, &SocketAddress::host) != interface.addresses.end();
  });
}

// Returns the addresses to serve on, so that other processes find this process at `host`.
Result<Places> places_to_serve(const std::string& host, const SessionOptions& options, Deadline deadline) {
  if (!options.bind_address.empty()) return Places{{options.bind_address}, {}};
  // A name may not resolve yet, for example the name of a Kubernetes Service that waits for this rank. In
  // that case `join` tries again.
  Result<std::vector<SocketAddress>> resolved = tcp::look_up(host, 0, deadline, options.interrupted);
  if (!resolved.ok()) return resolved.status();
  Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces.ok()) return interfaces.status();
  std::vector<std::string> addresses = listen_addresses(host, *resolved, *interfaces);
  if (addresses.front().empty()) {
    log::debug("the store listens on all addresses, since '", host,
               "' does not name exactly one of this host");
  }
  const bool own = std::ranges::any_of(*resolved, [&](const SocketAddress& address) {
    return address.is_loopback() || is_own(address.host(), *interfaces);
  });
  const std::string doubt =
      ", which is not an address of rank 0's host (it means " + resolved->front().host() + " there)";
  return Places{std::move(addresses), own ? "" : doubt};
}

Result<std::unique_ptr<tcp::StoreServer>> serve_on(const tcp::StoreServerOptions& options,
                                                   Deadline deadline) {
  const Deadline patience = earlier(deadline, Deadline::after(port_patience));
  for (;;) {
    Result<std::unique_ptr<tcp::StoreServer>> server = tcp::StoreServer::create(options);
    if (server.ok() || server.status().code() != Code::resource_exhausted || patience.expired())
      return server;
    std::this_thread::sleep_for(longest_look_pause);
  }
}

// Connects to the first endpoint of this process's own server.
Result<std::shared_ptr<tcp::StoreClient>> connect_to_own(const tcp::StoreServer& server,
                                                         const security::SharedCredentials& credentials,
                                                         Deadline deadline) {
  const tcp::StoreServer::Endpoint& endpoint = server.endpoints().front();
  std::string address = endpoint.address;
  if (address == "::") address = "::1";
  if (address == "0.0.0.0") address = "127.0.0.1";
  // Without descriptors the server accepts no connection, and waiting does not help.
  const std::uint64_t shortages = descriptor_shortages();
  const auto lacks_descriptors = [shortages] { return descriptor_shortages() != shortages; };
  Result<std::shared_ptr<tcp::StoreClient>> client = tcp::connect_store(
      address, endpoint.port, deadline,
      {.nonce = server.nonce(), .credentials = credentials, .rank = 0, .interrupted = lacks_descriptors});
  if (client.ok() || !lacks_descriptors()) return client;
  return Status(Code::resource_exhausted, error_text(EMFILE));
}

std::optional<SocketAddress> useful_route(const std::string& host, const SocketAddress& local) {
  if (local.is_loopback() && !names_loopback(host)) return std::nullopt;
  return local;
}

}  // namespace

struct Session::Serving {
  // Destruction withdraws the session before it ends the server, so that no rank finds a session without a
  // server.
  std::unique_ptr<tcp::StoreServer> server;
  std::unique_ptr<Announcer> announcer;  // null if the ranks know the store's address
};

Session::Session() = default;
Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept = default;
Session::~Session() { store = nullptr; }

std::string Session::last_refusal() const {
  return serving_ == nullptr ? std::string() : serving_->server->last_refusal();
}

void Session::keep_alive() const {
  if (serving_ != nullptr && serving_->announcer != nullptr) serving_->announcer->restore_if_missing();
}

std::vector<std::string> listen_addresses(const std::string& host, const std::vector<SocketAddress>& resolved,
                                          const std::vector<Interface>& interfaces) {
  std::vector<std::string> addresses;
  for (const SocketAddress& address : resolved) {
    if (std::ranges::find(addresses, address.host()) == addresses.end()) addresses.push_back(address.host());
  }
  if (names_loopback(host)) {
    // IPv6 may be off even if the name service knows ::1, so another address is preferred.
    if (addresses.size() > 1) std::erase(addresses, "::1");
    return {addresses.front()};
  }
  const bool exact =
      addresses.size() == 1 && !resolved.front().is_loopback() && is_own(addresses.front(), interfaces);
  return exact ? addresses : std::vector<std::string>{""};
}

// `SessionMaker` makes the session that a launch asks for.
class SessionMaker {
 public:
  SessionMaker(const Launch& launch, const SessionOptions& options, Deadline deadline)
      : launch_(launch), options_(options), deadline_(deadline) {}

  Result<Session> make() const {
    if (launch_.store.kind == StoreLocation::Kind::tcp) {
      return launch_.rank == 0 && !launch_.store.served ? serve_tcp() : connect_tcp();
    }
    if (launch_.store.kind != StoreLocation::Kind::none)
      return launch_.rank == 0 ? serve_announced() : connect_announced();
    if (launch_.world_size > 1) {
      return Status(Code::invalid_argument, "a world of " + std::to_string(launch_.world_size) +
                                                " ranks needs a place to meet (a tcp:// or file:// URL)");
    }
    return alone();
  }

 private:
  Result<Session> alone() const;
  Result<Session> serve_tcp() const;
  Result<Session> connect_tcp() const;
  Result<Session> serve_announced() const;
  Result<Session> connect_announced() const;
  Result<Session> follow(Announcer& announcer) const;
  std::unique_ptr<Announcer> announcer() const {
    if (launch_.store.kind == StoreLocation::Kind::mpi) return options_.mpi_announcer();
    return announcer_for(launch_, options_.pmix_library, options_.interrupted);
  }
  static Session session_in(std::shared_ptr<tcp::StoreClient> store, security::SharedCredentials credentials);
  Result<security::SharedCredentials> session_credentials(const SessionText& text) const;
  Result<std::vector<std::string>> session_addresses() const;
  tcp::StoreClientOptions client_options(security::SharedCredentials credentials,
                                         const std::string& nonce = {}) const {
    return {nonce, std::move(credentials), launch_.rank, options_.interrupted};
  }
  void describe(const tcp::StoreServer& server, SessionText& text) const;
  static Result<Session> session_of(std::unique_ptr<tcp::StoreServer> server,
                                    security::SharedCredentials credentials, Deadline deadline);

  const Launch& launch_;
  const SessionOptions& options_;
  const Deadline deadline_;
};

// Makes the session of a world of one rank. No other rank has to reach this process, so it uses loopback.
Result<Session> SessionMaker::alone() const {
  Result<security::SharedCredentials> credentials = security::Credentials::create(options_.security);
  if (!credentials.ok()) return credentials.status();
  Session session;
  session.store = std::make_shared<MemoryStore>();
  session.credentials = *std::move(credentials);
  session.route = parse_address("127.0.0.1", 0);
  return session;
}

Result<Session> SessionMaker::session_of(std::unique_ptr<tcp::StoreServer> server,
                                         security::SharedCredentials credentials, Deadline deadline) {
  Result<std::shared_ptr<tcp::StoreClient>> store = connect_to_own(*server, credentials, deadline);
  if (!store.ok()) return store.status().with_context("cannot connect to the store that this process serves");
  Session session;
  session.store = *std::move(store);
  session.single_use = true;
  session.credentials = std::move(credentials);
  session.serving_ = std::make_unique<Session::Serving>();
  session.serving_->server = std::move(server);
  return session;
}

Result<Session> SessionMaker::serve_tcp() const {
  const StoreLocation& place = launch_.store;
  Result<Places> places = places_to_serve(place.host, options_, deadline_);
  if (!places.ok()) return places.status();
  Result<security::SharedCredentials> credentials = security::Credentials::create(options_.security);
  if (!credentials.ok()) return credentials.status();
  tcp::StoreServerOptions server_options;
  server_options.addresses = std::move(places->addresses);
  server_options.port = place.port;
  server_options.credentials = *credentials;
  Result<std::unique_ptr<tcp::StoreServer>> server = serve_on(server_options, deadline_);
  if (!server.ok())
    return server.status().with_context("rank 0 cannot serve the store at " + to_string(place));
  const std::string bound = (*server)->address();
  Result<Session> session = session_of(*std::move(server), *std::move(credentials), deadline_);
  if (!session.ok()) return session;
  const std::optional<SocketAddress> local = parse_address(bound, 0);
  const bool is_any = bound == "::" || bound == "0.0.0.0";
  if (local && !is_any) session->route = useful_route(place.host, *local);
  session->doubt = std::move(places->doubt);
  return session;
}

Result<Session> SessionMaker::connect_tcp() const {
  const StoreLocation& place = launch_.store;
  Result<security::SharedCredentials> credentials = security::Credentials::create(options_.security);
  if (!credentials.ok()) return credentials.status();
  Result<std::shared_ptr<tcp::StoreClient>> store =
      tcp::connect_store(place.host, place.port, deadline_, client_options(*credentials));
  if (!store.ok()) {
    const std::string waited = "rank " + std::to_string(launch_.rank) + " waited for " +
                               (place.served ? "the store" : "rank 0, which serves the store");
    return store.status().with_context(waited);
  }
  Session session;
  session.route = useful_route(place.host, (*store)->local_address());
  session.single_use = !place.served;
  session.credentials = *std::move(credentials);
  session.store = *std::move(store);
  return session;
}

// Returns the addresses to listen on. If the user has named an address, the server listens only on that
// address. Otherwise it listens on loopback, for ranks on this host, and on one address of each chosen
// interface, for the other ranks.
Result<std::vector<std::string>> SessionMaker::session_addresses() const {
  if (!options_.bind_address.empty()) return std::vector{options_.bind_address};
  Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return all.status();
  Result<std::vector<Interface>> chosen = select_interfaces(*all, options_.interfaces, std::nullopt);
  if (!chosen.ok()) return chosen.status();
  std::vector<std::string> addresses;
  for (const Interface& interface : *all) {
    if (interface.loopback && addresses.empty()) addresses.push_back(interface.addresses.front().host());
  }
  for (const Interface& interface : *chosen) {
    const std::string address = interface.addresses.front().host();
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

// Fills in the text, except for the token.
void SessionMaker::describe(const tcp::StoreServer& server, SessionText& text) const {
  text.nonce = server.nonce();
  text.boot_id = boot_id();
  if (text.boot_id.empty()) text.boot_id = "unknown";
  for (const tcp::StoreServer::Endpoint& endpoint : server.endpoints()) {
    const std::optional<SocketAddress> address = parse_address(endpoint.address, endpoint.port);
    const bool stays = options_.advertise_address.empty() || (address && address->is_loopback());
    text.endpoints.push_back({stays ? endpoint.address : options_.advertise_address, endpoint.port});
  }
}

// Makes credentials from three secrets: the user's token and the launcher's key, which may be empty, and the
// session's token. So a process proves that it can read the session, and that it has the other two secrets if
// they exist.
Result<security::SharedCredentials> SessionMaker::session_credentials(const SessionText& text) const {
  security::Settings settings = options_.security;
  settings.token =
      Secret::joined({settings.token.reveal(), "/", launch_.launcher_key.reveal(), "/", text.token.reveal()});
  return security::Credentials::create(settings);
}

Result<Session> SessionMaker::serve_announced() const {
  Result<std::vector<std::string>> addresses = session_addresses();
  if (!addresses.ok()) return addresses.status();
  SessionText text;
  text.token = random_secret(token_bytes);
  Result<security::SharedCredentials> credentials = session_credentials(text);
  if (!credentials.ok()) return credentials.status();
  tcp::StoreServerOptions server_options;
  server_options.credentials = *credentials;
  server_options.addresses = *std::move(addresses);
  server_options.port = options_.first_port;
  server_options.last_port = options_.last_port;
  Result<std::unique_ptr<tcp::StoreServer>> server = serve_on(server_options, deadline_);
  if (!server.ok())
    return server.status().with_context("rank 0 cannot serve the store of " + to_string(launch_.store));
  describe(**server, text);
  Result<Session> session = session_of(*std::move(server), *std::move(credentials), deadline_);
  if (!session.ok()) return session;
  session->serving_->announcer = announcer();
  const Status published = session->serving_->announcer->publish(format_session(text), deadline_);
  if (!published.ok()) return published;
  return session;
}

// Makes one attempt: reads the session, connects to the store that it names, and checks that the store has
// the session's nonce.
Result<Session> SessionMaker::follow(Announcer& announcer) const {
  Result<SessionText> text = read_session(announcer, deadline_);
  if (!text.ok()) return text.status();
  Result<security::SharedCredentials> credentials = session_credentials(*text);
  if (!credentials.ok()) return credentials.status();
  Status last(Code::unreachable, "it is meant for another host");
  const bool same_host = text->boot_id == boot_id();
  for (const SessionText::Endpoint& endpoint : text->endpoints) {
    const std::optional<SocketAddress> address = parse_address(endpoint.address, endpoint.port);
    // Skips the loopback address of another host, since here it leads to this host. An endpoint may also be a
    // name.
    if (address && address->is_loopback() && !same_host) continue;
    const Deadline limit = earlier(deadline_, Deadline::after(endpoint_limit));
    Result<std::vector<SocketAddress>> targets =
        tcp::look_up(endpoint.address, endpoint.port, limit, options_.interrupted);
    if (!targets.ok()) last = targets.status();
    if (!targets.ok()) continue;
    for (const SocketAddress& target : *targets) {
      Result<std::shared_ptr<tcp::StoreClient>> store =
          tcp::try_connect_store(target, limit, client_options(*credentials, text->nonce));
      if (store.ok()) return session_in(*std::move(store), *std::move(credentials));
      if (store.status().code() == Code::mismatch) return store.status();
      last = store.status();
    }
  }
  return last.with_context("the session is of a run that has ended, or its rank 0 cannot be reached");
}

Session SessionMaker::session_in(std::shared_ptr<tcp::StoreClient> store,
                                 security::SharedCredentials credentials) {
  Session session;
  const SocketAddress local = store->local_address();
  if (!local.is_loopback()) session.route = local;
  session.single_use = true;
  session.credentials = std::move(credentials);
  session.store = std::move(store);
  return session;
}

Result<Session> SessionMaker::connect_announced() const {
  Backoff backoff(first_look_pause, longest_look_pause);
  const std::unique_ptr<Announcer> source = announcer();
  // Set once a store has refused this rank. That may have been the store of another job, at a port that an
  // old session names.
  std::optional<Deadline> patience;
  for (;;) {
    Result<Session> session = follow(*source);
    const Code code = session.status().code();
    const bool denied = code == Code::unauthenticated;
    if (denied && !patience) patience = Deadline::after(patience_when_denied);
    if (session.ok() || (code != Code::unreachable && !denied) || (denied && patience->expired()))
      return session;
    if (options_.interrupted && options_.interrupted())
      return Status(Code::aborted, "interrupted while it looked for " + to_string(launch_.store));
    if (deadline_.remaining() <= backoff.pause()) {
      return Status(code, "no session at " + to_string(launch_.store) +
                              " within the time given (is rank 0 running?): " + session.status().message());
    }
    std::this_thread::sleep_for(backoff.next());
  }
}

Result<Session> serve_or_connect(const Launch& launch, const SessionOptions& options, Deadline deadline) {
  return SessionMaker(launch, options, deadline).make();
}

}  // namespace tutti
