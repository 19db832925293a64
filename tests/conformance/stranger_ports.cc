#include "tests/conformance/stranger_ports.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <future>
#include <thread>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control/liveness/frame.h"
#include "control/liveness/liveness.h"
#include "tests/conformance/store_stranger.h"
#include "tests/support/guards.h"
#include "tests/unit/transport/shm_world.h"
#include "tests/unit/transport/tcp_world.h"
#include "tools/run/call_hello.h"
#include "tools/run/callback.h"
#include "tools/run/dial.h"
#include "tools/run/event_loop.h"
#include "transport/meeting/listener.h"
#ifdef TUTTI_TEST_VERBS
#include "tests/verbs/tested_library.h"
#include "transport/verbs/address.h"
#include "transport/verbs/factory.h"
#include "transport/verbs/note.h"
#endif

namespace tutti::test {
namespace {

template <class Bytes>
std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(std::data(bytes)), std::size(bytes)};
}

security::SharedCredentials credentials_of(const OpenPortOptions& options) {
  return options.token.empty() ? nullptr : holder_of(options.token);
}

// An `InternetPort` is a port at an address of the loopback interface.
class InternetPort : public OpenPort {
 public:
  Descriptor socket() const override { return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  bool connect(int socket, const std::string& from) const override {
    const SocketAddress own = *tutti::parse_address(from, 0);
    const SocketAddress theirs = *tutti::parse_address("127.0.0.1", port());
    return ::bind(socket, own.raw(), own.length) == 0 && ::connect(socket, theirs.raw(), theirs.length) == 0;
  }

 private:
  virtual std::uint16_t port() const = 0;
};

class TcpPort final : public InternetPort {
 public:
  explicit TcpPort(const OpenPortOptions& options) : world_(of(options), 3) {}
  security::Parties parties() const override { return {security::Service::data, 1, 0}; }
  std::string hello(int from) const override {
    return text_of(tcp::encode(tcp::proper_hello(world_, from, 0)));
  }
  std::size_t most_strangers() const override { return meeting::ListenerOptions{}.most_strangers; }
  void expect_service() override { tcp::expect_exchange(world_[0], 0, world_[1], 1, 0); }

 private:
  static tcp::Options of(const OpenPortOptions& options) {
    tcp::Options made;
    made.handshake_timeout = options.hello_limit;
    made.credentials = credentials_of(options);
    return made;
  }
  std::uint16_t port() const override {
    return tcp::parse_address(world_.addresses[0])->endpoints.front().port();
  }

  tcp::Pair world_;
};

#ifdef TUTTI_TEST_VERBS
// A `VerbsPort` is the port at which rank 0 agrees with other ranks on queue pairs.
class VerbsPort final : public InternetPort {
 public:
  explicit VerbsPort(const OpenPortOptions& options) {
    verbs::Options made;
    made.handshake_timeout = options.hello_limit;
    made.credentials = credentials_of(options);
    made.functions = &library_.functions();
    std::vector<std::unique_ptr<Transport>> transports;
    for (int rank = 0; rank < 3; ++rank) {
      transports.push_back(verbs::create(made).take());
      PeerInfo peer;
      peer.rank = rank;
      peer.addresses["verbs"] = transports.back()->address();
      peers_.push_back(peer);
    }
    for (int rank = 0; rank < 3; ++rank)
      nodes_.push_back(tcp::make_node(rank, peers_, std::move(transports[static_cast<std::size_t>(rank)])));
  }
  ~VerbsPort() override {
    std::vector<std::thread> threads;
    for (auto& node : nodes_) threads.emplace_back([&node] { node->shut_down(); });
    for (auto& thread : threads) thread.join();
  }
  security::Parties parties() const override { return {security::Service::data, 1, 0}; }
  std::string hello(int from) const override {
    verbs::Note note;
    note.kind = verbs::NoteKind::connect;
    note.from = static_cast<std::uint32_t>(from);
    note.from_nonce = address_of(from).nonce;
    note.to_nonce = address_of(0).nonce;
    return text_of(std::as_bytes(std::span(&note, 1)));
  }
  std::size_t most_strangers() const override { return meeting::ListenerOptions{}.most_strangers; }
  void expect_service() override { tcp::expect_exchange(*nodes_[0], 0, *nodes_[1], 1, 0); }

 private:
  verbs::Address address_of(int rank) const {
    return *verbs::published_by(peers_[static_cast<std::size_t>(rank)]);
  }
  std::uint16_t port() const override { return address_of(0).endpoints.front().port(); }

  TestedLibrary library_;
  std::vector<PeerInfo> peers_;
  std::vector<std::unique_ptr<conformance::Node>> nodes_;
};
#endif

class ShmPort final : public OpenPort {
 public:
  explicit ShmPort(const OpenPortOptions& options)
      : world_(3, {}, {.handshake_timeout = options.hello_limit, .credentials = credentials_of(options)}) {}
  Descriptor socket() const override {
    return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  }
  bool connect(int socket, const std::string&) const override {
    const std::string name = shm::parse_address(world_.peers[0].addresses.at("shm"))->name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const std::size_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
    return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length)) ==
           0;
  }
  security::Parties parties() const override { return {security::Service::memory, 1, 0}; }
  std::string hello(int from) const override {
    const shm::Note note = shm::first_note(world_, shm::NoteKind::connect, from, 0);
    return text_of(std::as_bytes(std::span(&note, 1)));
  }
  std::size_t most_strangers() const override { return meeting::ListenerOptions{}.most_strangers; }
  void expect_service() override {
    conformance::Send send(100, conformance::collective(0), 1);
    conformance::Recv recv(100, 1, conformance::collective(0));
    world_[0].post(recv);
    world_[1].post(0, send);
    EXPECT_TRUE(recv.wait().ok() && recv.holds(1)) << recv.status.to_string();
    EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
  }

 private:
  shm::World world_;
};

// A `ControlPort` is rank 1's control port. Rank 0, which will connect to it, has not started yet.
class ControlPort final : public InternetPort {
 public:
  explicit ControlPort(const OpenPortOptions& options) {
    LivenessOptions made;
    made.bind = "127.0.0.1";
    made.limit = std::chrono::minutes(2);
    made.credentials = credentials_of(options);
    made.hello_limit = options.hello_limit;
    for (int rank = 0; rank < 2; ++rank) {
      planes_[at(rank)] = Liveness::create(made).take();
      PeerInfo peer;
      peer.rank = rank;
      peer.addresses[liveness::address_name] = planes_[at(rank)]->address();
      peers_.push_back(peer);
    }
    start(1);
  }
  ~ControlPort() override {
    for (auto& plane : planes_) plane->stop();
  }
  security::Parties parties() const override { return {security::Service::control, 0, 1}; }
  std::string hello(int from) const override {
    return encode(liveness::Hello{.from = static_cast<std::uint32_t>(from), .to = 1});
  }
  std::size_t most_strangers() const override { return 64; }
  void expect_service() override {
    start(0);
    for (auto& plane : planes_) {
      const Status linked = plane->wait_linked(ample());
      EXPECT_TRUE(linked.ok()) << linked.to_string();
    }
  }

 private:
  class NoEvents final : public ControlEvents {
   public:
    void on_lost(int rank, const Status& why) override { ADD_FAILURE() << rank << ": " << why.to_string(); }
    void on_left(int) override {}
    void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
    void on_note(const ControlNote&) override {}
  };

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  void start(int rank) {
    planes_[at(rank)]->meet(rank, peers_);
    planes_[at(rank)]->start(events_);
  }
  std::uint16_t port() const override { return liveness::parse_address(planes_[1]->address())->port; }

  NoEvents events_;
  std::vector<PeerInfo> peers_;
  std::array<std::unique_ptr<Liveness>, 2> planes_;
};

class StorePort final : public InternetPort {
 public:
  explicit StorePort(const OpenPortOptions& options) : credentials_(credentials_of(options)) {
    tcp::StoreServerOptions made;
    made.credentials = credentials_of(options);
    made.greeting_timeout = options.hello_limit;
    made.max_strangers = most_strangers();
    server_ = serve(made);
  }
  security::Parties parties() const override { return {security::Service::store, 1, security::nobody}; }
  std::string hello(int) const override {
    const store_wire::ClientHello hello;
    return text_of(std::as_bytes(std::span(&hello, 1)));
  }
  std::size_t most_strangers() const override { return 20; }
  void expect_service() override {
    tcp::StoreClientOptions options;
    options.credentials = credentials_;
    const auto client = tcp::try_connect_store(*tutti::parse_address("127.0.0.1", port()), ample(), options);
    ASSERT_TRUE(client.ok()) << client.status().to_string();
    EXPECT_TRUE((*client)->set("k", "v", ample()).ok());
    EXPECT_EQ((*client)->get("k", ample()).take(), "v");
  }

 private:
  std::uint16_t port() const override { return server_->port(); }

  security::SharedCredentials credentials_;
  std::unique_ptr<tcp::StoreServer> server_;
};

// A `LauncherPort` is the port at which the launcher waits for the agents of hosts 1 and 2. The token is the
// secret of host 1.
class LauncherPort final : public InternetPort {
 public:
  explicit LauncherPort(const OpenPortOptions& options) : secret_(options.token) {
    const std::array address = {*tutti::parse_address("127.0.0.1", 0)};
    const auto on_agent = [this](std::uint32_t host, meeting::Connection) { caller_.set_value(host); };
    callback_ =
        tools::Callback::open(loop_, address, job, on_agent, {.proof_limit = options.hello_limit}).take();
    EXPECT_TRUE(callback_->expect(1, secret_).ok());
    EXPECT_TRUE(callback_->expect(2, "the secret of host 2").ok());
    endpoint_ = callback_->endpoints().front();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~LauncherPort() override {
    io_.stop();
    thread_.join();
  }
  security::Parties parties() const override { return {security::Service::launch, 1, security::nobody}; }
  security::SharedCredentials credentials(const std::string& token) const override {
    return tools::call_credentials(job, token).take();
  }
  std::string hello(int from) const override {
    return text_of(tools::encode_call_hello(static_cast<std::uint32_t>(from)));
  }
  std::size_t most_strangers() const override { return meeting::ListenerOptions{}.most_strangers; }
  void expect_service() override {
    const auto agent = tools::dial({.endpoints = {endpoint_},
                                    .job = job,
                                    .host = 1,
                                    .secret = secret_,
                                    .limit = std::chrono::minutes(1)});
    EXPECT_TRUE(agent.ok()) << agent.status().to_string();
    ASSERT_EQ(called_.wait_for(std::chrono::minutes(1)), std::future_status::ready);
    EXPECT_EQ(called_.get(), 1u);
  }

 private:
  static constexpr const char* job = "a job";

  std::uint16_t port() const override {
    return static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)));
  }

  const std::string secret_;
  asio::io_context io_{1};
  tools::AsioLoop loop_{io_};
  std::promise<std::uint32_t> caller_;
  std::future<std::uint32_t> called_ = caller_.get_future();
  std::unique_ptr<tools::Callback> callback_;
  std::string endpoint_;
  std::thread thread_;
};

}  // namespace

security::SharedCredentials OpenPort::credentials(const std::string& token) const { return holder_of(token); }

std::unique_ptr<OpenPort> open_tcp(const OpenPortOptions& options) {
  return std::make_unique<TcpPort>(options);
}
#ifdef TUTTI_TEST_VERBS
std::unique_ptr<OpenPort> open_verbs(const OpenPortOptions& options) {
  return std::make_unique<VerbsPort>(options);
}
#endif
std::unique_ptr<OpenPort> open_shm(const OpenPortOptions& options) {
  return std::make_unique<ShmPort>(options);
}
std::unique_ptr<OpenPort> open_control(const OpenPortOptions& options) {
  return std::make_unique<ControlPort>(options);
}
std::unique_ptr<OpenPort> open_store(const OpenPortOptions& options) {
  return std::make_unique<StorePort>(options);
}
std::unique_ptr<OpenPort> open_launcher(const OpenPortOptions& options) {
  return std::make_unique<LauncherPort>(options);
}

}  // namespace tutti::test
