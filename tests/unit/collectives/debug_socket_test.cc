// Tests the debug socket against processes of another user.
#include "collectives/record/debug_socket.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/another_user.h"

namespace tutti {
namespace {

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name)
      : length(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    socket.sun_family = AF_UNIX;
    std::ranges::copy(name, socket.sun_path + 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
  sockaddr_un socket{};
  socklen_t length;
};

DebugEndpoint own_endpoint() {
  for (const DebugEndpoint& each : debug_endpoints()) {
    if (each.pid == getpid()) return each;
  }
  return {};
}

TEST(DebugSocket, AnswersNoOtherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const auto server = DebugServer::create([] { return std::string("what this rank does"); });
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  const DebugEndpoint endpoint = own_endpoint();
  EXPECT_EQ(ask(endpoint, std::chrono::seconds(30)).take().text, "what this rank does");
  const AbstractAddress address(endpoint.name);
  const int heard = test::as_another_user([&] {
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(client, address.get(), address.length) != 0) return 98;
    char answer;
    return recv(client, &answer, 1, 0) == 1 ? 1 : 0;
  });
  EXPECT_EQ(heard, 0);
}

TEST(DebugSocket, BelievesNoOtherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const DebugEndpoint endpoint{getpid(), "tutti-debug-" + std::to_string(getpid()) + "-false"};
  const AbstractAddress address(endpoint.name);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!test::become_another_user() || bind(listener, address.get(), address.length) != 0 ||
        listen(listener, 1) != 0 || write(ready[1], "y", 1) != 1)
      _exit(1);
    const int client = accept(listener, nullptr, nullptr);
    _exit(send(client, "a lie", 5, MSG_NOSIGNAL) == 5 ? 0 : 2);
  }
  close(ready[1]);
  char listens = 'n';
  ASSERT_EQ(read(ready[0], &listens, 1), 1);
  const auto answer = ask(endpoint, std::chrono::seconds(30));
  EXPECT_EQ(answer.status().code(), Code::unauthenticated) << answer.status().to_string();
  close(ready[0]);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace tutti
