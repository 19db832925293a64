#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti {

// `DebugServer` answers each connection to an abstract unix socket with a text, then closes the connection.
// It reads nothing, so no input can do harm. Only processes of the same user (SO_PEERCRED) get an answer. It
// has its own thread, so it answers even if a callback of the program does not return. It serves one
// connection at a time.
//
// In a forked child it does nothing.
class DebugServer {
 public:
  // `text` returns the text for a connection. It is called on the server's thread.
  static Result<std::unique_ptr<DebugServer>> create(std::function<std::string()> text);
  // Joins the thread, which may be running `text`.
  ~DebugServer();
  DebugServer(const DebugServer&) = delete;
  DebugServer& operator=(const DebugServer&) = delete;

 private:
  DebugServer(Descriptor listener, Descriptor stop, std::function<std::string()> text);
  void run();
  void answer(int client) const;

  const Descriptor listener_;
  const Descriptor stop_;
  const std::uint32_t generation_;
  const std::function<std::string()> text_;
  std::thread thread_;
};

// A `DebugEndpoint` is a server in this process's network namespace. It may belong to any user.
struct DebugEndpoint {
  pid_t pid = 0;  // as the server sees it; if the server is in a container, this process may see another pid
  std::string name;
};
std::vector<DebugEndpoint> debug_endpoints();

struct DebugAnswer {
  pid_t pid = 0;  // the server's process id, as this process sees it
  std::string text;
};
// Returns the answer of a server. Fails with unauthenticated if the server belongs to another user,
// unreachable if it is gone, timeout if no answer arrived in time, and protocol_error if the answer is too
// long.
Result<DebugAnswer> ask(const DebugEndpoint& endpoint, std::chrono::milliseconds limit);

}  // namespace tutti
