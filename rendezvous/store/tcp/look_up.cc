#include "rendezvous/store/tcp/look_up.h"

#include <chrono>

namespace tutti::tcp {
namespace {

constexpr std::chrono::milliseconds interrupt_interval{200};

}  // namespace

Result<std::vector<SocketAddress>> look_up(const std::string& host, std::uint16_t port, Deadline deadline,
                                           const std::function<bool()>& interrupted) {
  const Resolution question(host, port);
  if (!interrupted) return question.wait(deadline);
  for (;;) {
    auto answer = question.wait(earlier(deadline, Deadline::after(interrupt_interval)));
    if (question.answer() || deadline.expired()) return answer;
    if (interrupted())
      return Status(Code::aborted, "interrupted while the name service was asked for '" + host + "'");
  }
}

}  // namespace tutti::tcp
