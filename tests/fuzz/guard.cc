// Fuzzes guards of connections, with and without a token or TLS. Either one guard receives the input, or two
// guards are connected, and bytes between them are changed, dropped or added.
#include "core/security/guard.h"

#include <string>

#include <sys/socket.h>

#include "tests/fuzz/connection.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

using security::Guard;
using security::Service;
using State = Guard::State;

enum class Protection { none, token, tls };

Protection protection_by(Input& input) { return static_cast<Protection>(input.byte() % 3); }

security::SharedCredentials credentials(Protection protection) {
  if (protection == Protection::none) return nullptr;
  const auto make = [](bool tls) {
    security::Settings settings;
    settings.token = Secret("a token");
    settings.job = "a job";
    settings.tls = tls;
    return security::Credentials::create(settings).take();
  };
  static const security::SharedCredentials with_token = make(false), with_tls = make(true);
  return protection == Protection::tls ? with_tls : with_token;
}

const Deadline ample = Deadline::after(std::chrono::hours(24));
constexpr security::Parties parties{Service::data, 1, 2};

Guard connecting(Protection protection) { return Guard::connecting(credentials(protection), parties, ample); }
Guard accepting(Protection protection) {
  return Guard::accepting(credentials(protection), parties.service, parties.to, ample);
}

// Sends the input to a guard. The guard must not accept a peer that does not know the token.
void alone(Input& input) {
  const bool accepts = input.byte() % 2 == 0;
  const Protection protection = protection_by(input);
  Guard guard = accepts ? accepting(protection) : connecting(protection);
  Connection connection;
  while (!input.empty()) {
    connection.say(input.text(input.byte()));
    const State state = guard.advance(connection.guarded);
    require(state != State::done || protection == Protection::none);
    require(state != State::failed || !guard.status().ok());
    connection.hear();
    if (state == State::done || state == State::failed) return;
  }
  shutdown(connection.other, SHUT_WR);
  const State state = guard.advance(connection.guarded);
  require(protection == Protection::none || state == State::failed);
}

// Connects two guards. A guard that receives other bytes than its peer has sent must refuse the connection.
void between(Input& input) {
  const Protection left_has = protection_by(input), right_has = protection_by(input);
  Guard left = connecting(left_has), right = accepting(right_has);
  const Meeting meeting = meet(input, left, right);
  if (right_has != Protection::none && meeting.right == State::done) {
    require(left_has == right_has && right.from() == parties.from);
    require(told_the_truth(meeting));
  }
  if (left_has != Protection::none && meeting.left == State::done) require(left_has == right_has);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  Input input(data, size);
  input.byte() == 'b' ? between(input) : alone(input);
  return 0;
}
