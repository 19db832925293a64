// Fuzzes the guards of connections that use TLS with certificates. There are three cases:
// - A guard receives the input.
// - A guard receives the input inside TLS. The peer's certificate is good, or is signed by another authority.
// - Two guards are connected through a process that changes, drops and adds bytes.
#include "tests/support/certificates.h"

#include <array>
#include <filesystem>
#include <string>

#include <sys/socket.h>

#include "core/security/guard.h"
#include "core/security/tls.h"
#include "tests/fuzz/connection.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

using security::Guard;
using security::Service;
using security::Tls;
using State = Guard::State;

// `Holders` contains the credentials of the job, and the TLS contexts of two hostile peers.
// `insider` has a good certificate, and `outsider` has a certificate of another authority.
struct Holders {
  security::SharedCredentials credentials;
  std::unique_ptr<const security::TlsContext> insider, outsider;

  Holders() {
    std::string folder = std::filesystem::temp_directory_path() / "tutti-fuzz-XXXXXX";
    require(::mkdtemp(folder.data()) != nullptr);
    for (const char* authority : {"ours", "theirs"}) require(test::make_authority(folder, authority));
    require(test::make_certificate(folder, "ours", "member"));
    require(test::make_certificate(folder, "theirs", "stranger"));
    const auto file = [&](const std::string& name) { return folder + "/" + name; };
    security::Settings settings;
    settings.job = "a job";
    settings.tls = true;
    settings.certificate = file("member.pem");
    settings.key = file("member.key");
    settings.authority = file("ours.pem");
    credentials = security::Credentials::create(settings).take();
    insider = context(file("member"), file("ours.pem"));
    outsider = context(file("stranger"), file("ours.pem"));
    std::filesystem::remove_all(folder);
  }
  static std::unique_ptr<const security::TlsContext> context(const std::string& name,
                                                             const std::string& authority) {
    security::TlsContext::Options options;
    options.certificate = name + ".pem";
    options.key = name + ".key";
    options.authority = authority;
    return security::TlsContext::create(options).take();
  }
};

const Holders& holders() {
  static const Holders all;
  return all;
}

const Deadline ample = Deadline::after(std::chrono::hours(24));
constexpr security::Parties parties{Service::data, 1, 2};

Guard make(bool accepts) {
  return accepts ? Guard::accepting(holders().credentials, parties.service, parties.to, ample)
                 : Guard::connecting(holders().credentials, parties, ample);
}

void alone(Input& input) {
  Guard guard = make(input.byte() % 2 == 0);
  Connection connection;
  State state = State::reading;
  while (!input.empty() && goes_on(state)) {
    connection.say(input.text(input.byte()));
    state = guard.advance(connection.guarded);
    connection.hear();
  }
  shutdown(connection.other, SHUT_WR);
  if (goes_on(state)) state = guard.advance(connection.guarded);
  require(state == State::failed && !guard.status().ok());
}

// Before TLS, the peer sends the messages of an honest guard. Inside TLS, it sends the input.
void inside(Input& input, const security::TlsContext& context) {
  const bool accepts = input.byte() % 2 == 0;
  Guard guard = make(accepts), honest = make(!accepts);
  Connection connection, apart;
  State state = State::reading;
  for (int turn = 0; turn < 2; ++turn) {
    const bool speaks = (turn == 0) != accepts;  // the connecting side speaks first
    if (speaks) state = guard.advance(connection.guarded);
    std::string bytes(Guard::message_bytes, '\0');
    if (speaks) {
      const ssize_t got = recv(connection.other, bytes.data(), bytes.size(), 0);
      bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      apart.say(bytes);
    } else {
      honest.advance(apart.guarded);
      const ssize_t got = recv(apart.other, bytes.data(), bytes.size(), 0);
      bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      connection.say(bytes);
    }
  }
  const auto tls = accepts ? Tls::connecting(context, connection.other, {})
                           : Tls::accepting(context, connection.other, {});
  Tls::State shaken = Tls::State::reading;
  int error = 0;
  for (int turn = 0; turn < turns && shaken != Tls::State::failed; ++turn) {
    if (goes_on(state)) state = guard.advance(connection.guarded);
    if (shaken != Tls::State::done) shaken = tls->handshake(error);
    if (shaken != Tls::State::done || input.empty()) continue;
    const std::string_view said = input.text(input.byte());
    const std::array parts = {std::as_bytes(std::span(said))};
    tls->write(parts, error);
  }
  shutdown(connection.other, SHUT_WR);
  for (int turn = 0; turn < 2 && goes_on(state); ++turn) state = guard.advance(connection.guarded);
  require(state == State::failed && !guard.status().ok());
}

void between(Input& input) {
  Guard left = make(false), right = make(true);
  const Meeting meeting = meet(input, left, right);
  if (meeting.right != State::done) return;
  require(right.from() == parties.from && told_the_truth(meeting));
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  Input input(data, size);
  switch (input.byte()) {
    case 'b':
      between(input);
      break;
    case 'i':
      inside(input, *holders().insider);
      break;
    case 'o':
      inside(input, *holders().outsider);
      break;
    default:
      alone(input);
  }
  return 0;
}
