// Tests that an interrupted process does not wait for a store or a name service that stalls.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "rendezvous/store/tcp/look_up.h"
#include "rendezvous/store/tcp/store_client.h"
#include "rendezvous/store/tcp/wire.h"

namespace {

constexpr const char* slow_host = "slow.example";
std::promise<void> answer;

}  // namespace

// This replaces the C library's function. For the name `slow_host`, it blocks until the test sets `answer`.
// It calls the original function for every other name.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto original = reinterpret_cast<Lookup>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host == nullptr || std::string(host) != slow_host) return original(host, service, hints, found);
  answer.get_future().wait();
  *found = nullptr;
  return EAI_FAIL;
}

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline ample() { return Deadline::after(seconds(300)); }

// A `StallingServer` accepts a client, and answers only its first request.
class StallingServer {
 public:
  StallingServer() {
    socklen_t length = sizeof(address_.storage);
    address_ = *parse_address("127.0.0.1", 0);
    EXPECT_EQ(bind(listener_.get(), address_.raw(), address_.length), 0);
    EXPECT_EQ(listen(listener_.get(), 4), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_.storage), &length), 0);
    thread_ = std::thread([this] {
      client_ = Descriptor(accept(listener_.get(), nullptr, nullptr));
      const store_wire::ServerHello hello;
      EXPECT_GT(send(client_.get(), &hello, sizeof(hello), MSG_NOSIGNAL), 0);
      EXPECT_EQ(send(client_.get(), "\0\0\0\0", 4, MSG_NOSIGNAL), 4);
    });
  }
  ~StallingServer() { thread_.join(); }
  const SocketAddress& address() const { return address_; }

 private:
  Descriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Descriptor client_;
  SocketAddress address_;
  std::thread thread_;
};

TEST(Interruption, EndsEachRequestOfAStoreThatStalls) {
  const std::string key = "k";
  const std::array<std::function<Status(Store&)>, 7> requests = {
      [&](Store& store) { return store.hold(key, ample()); },
      [&](Store& store) { return store.add(key, 1, ample()).status(); },
      [&](Store& store) { return store.compare_set(key, "", "v", ample()).status(); },
      [&](Store& store) {
        return store.set_will({&key, 1}, "v", ample());
      },
      [&](Store& store) { return store.set(key, "v", ample()); },
      [&](Store& store) { return store.get(key, ample()).status(); },
      [&](Store& store) { return store.exists(key, ample()).status(); }};
  for (const auto& request : requests) {
    const StallingServer server;
    std::atomic<bool> interrupted = false;
    tcp::StoreClientOptions options;
    options.interrupted = [&] { return interrupted.load(); };
    const auto client = tcp::try_connect_store(server.address(), ample(), options).take();
    std::thread user([&] {
      std::this_thread::sleep_for(milliseconds(50));
      interrupted = true;
    });
    const auto begin = Deadline::Clock::now();
    const Status status = request(*client);
    EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
    EXPECT_LT(Deadline::Clock::now() - begin, seconds(60));
    user.join();
  }
}

TEST(Interruption, EndsTheWaitForANameServiceThatStalls) {
  const auto found = tcp::look_up(slow_host, 1, ample(), [] { return true; });
  EXPECT_EQ(found.status().code(), Code::aborted) << found.status().to_string();
  EXPECT_NE(found.status().message().find(slow_host), std::string::npos) << found.status().message();
  answer.set_value();
  EXPECT_TRUE(tcp::look_up("127.0.0.1", 1, ample(), [] { return true; }).ok());
}

}  // namespace
}  // namespace tutti
