// Fuzzes the answers of a launcher that serves PMI-1, and the session that the answers contain. The first
// byte chooses whether the rank announces a session or reads it. Each line of the rest is the answer to one
// request.
#include <chrono>
#include <string>

#include <sys/socket.h>

#include "core/descriptor.h"
#include "core/shown.h"
#include "rendezvous/meeting/pmi_announcer.h"
#include "rendezvous/meeting/pmi_client.h"
#include "rendezvous/meeting/session_text.h"
#include "tests/fuzz/input.h"

namespace {

using namespace tutti;

// The socket can hold this many answers, and their requests, at the same time.
constexpr int most_answers = 64;

// Returns the rank's end of a connection. All answers have already arrived there, followed by the end of the
// stream. Each answer is a separate packet, because one read must not return two answers: a real launcher
// sends an answer only after a request.
Descriptor answered_by(fuzz::Input& input, Descriptor& launcher) {
  int ends[2];
  fuzz::require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  launcher = Descriptor(ends[1]);
  for (int count = 0; count < most_answers && !input.empty(); ++count) {
    const std::string answer = std::string(input.line()) + "\n";
    static_cast<void>(send(launcher.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
  }
  shutdown(launcher.get(), SHUT_WR);
  return Descriptor(ends[0]);
}

void check_error(const Status& status) {
  fuzz::require(status.code() == Code::invalid_argument && printable(status.message()) == status.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const bool announces = input.byte() % 2 != 0;
  Descriptor launcher;
  const Descriptor rank = answered_by(input, launcher);
  PmiClient client(rank.get());
  PmiAnnouncer announcer(client, {});
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  if (announces) {
    const Status status = announcer.publish(Secret(std::string(200, 's')), deadline);
    if (!status.ok()) check_error(status);
    return 0;
  }
  const Result<Secret> text = announcer.read(deadline);
  if (!text.ok()) {
    check_error(text.status());
    return 0;
  }
  fuzz::require(!text->empty() && announcer.read(deadline).take().reveal() == text->reveal());
  static_cast<void>(parse_session(text->reveal()).ok());
  return 0;
}
