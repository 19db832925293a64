// Fuzzes guards of connections, with and without a token or TLS. In some cases, one guard receives
// the input. In other cases, two guards are connected, and bytes between them are changed, dropped
// or added. The accepting guard has the credentials, or looks them up for the rank that connects.
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

// A `Way` says how a guard is made. Only an accepting guard can look up its credentials.
struct Way {
  Protection protection;
  bool looks_up;
  // Returns whether an accepting guard of this kind accepts every peer.
  bool is_open() const { return protection == Protection::none && !looks_up; }
};

Way way_by(Input& input) {
  const int byte = input.byte();
  return {static_cast<Protection>(byte % 3), byte / 3 % 2 == 1};
}

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

Guard connecting(const Way& way) { return Guard::connecting(credentials(way.protection), parties, ample); }
Guard accepting(const Way& way) {
  const security::SharedCredentials held = credentials(way.protection);
  if (!way.looks_up) return Guard::accepting(held, parties.service, parties.to, ample);
  const auto credentials_of = [held](std::uint32_t from) { return from == parties.from ? held : nullptr; };
  return Guard::accepting(credentials_of, parties.service, parties.to, ample);
}

// Sends the input to a guard. The guard must not accept a peer that does not know the token.
void alone(Input& input) {
  const bool accepts = input.byte() % 2 == 0;
  const Way way = way_by(input);
  const bool is_open = accepts ? way.is_open() : way.protection == Protection::none;
  Guard guard = accepts ? accepting(way) : connecting(way);
  Connection connection;
  while (!input.empty()) {
    connection.say(input.text(input.byte()));
    const State state = guard.advance(connection.guarded);
    require(state != State::done || is_open);
    require(state != State::failed || !guard.status().ok());
    connection.hear();
    if (state == State::done || state == State::failed) return;
  }
  shutdown(connection.other, SHUT_WR);
  const State state = guard.advance(connection.guarded);
  require(is_open || state == State::failed);
}

// Connects two guards. A guard that needs credentials must not accept a peer with another protection. An
// accepting guard that needs credentials must also notice every change to the bytes that its peer has sent.
void between(Input& input) {
  const Way left_has = way_by(input), right_has = way_by(input);
  Guard left = connecting(left_has), right = accepting(right_has);
  const Meeting meeting = meet(input, left, right);
  const bool alike = left_has.protection == right_has.protection;
  if (!right_has.is_open() && meeting.right == State::done) {
    require(alike && right_has.protection != Protection::none && right.from() == parties.from);
    require(told_the_truth(meeting));
  }
  if (left_has.protection != Protection::none && meeting.left == State::done) require(alike);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  Input input(data, size);
  input.byte() == 'b' ? between(input) : alone(input);
  return 0;
}
