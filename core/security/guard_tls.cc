#include <cerrno>

#include <sys/socket.h>

#include "core/security/guard.h"
#include "core/security/keys.h"
#include "core/security/messages.h"

// This file implements the part of a guard that uses TLS.
namespace tutti::security {

// TLS allocates memory before it reads anything. So the guard starts TLS only after the other side has sent
// the first byte of a TLS handshake. Returns whether that byte has arrived.
bool Guard::hears_tls(int socket) {
  constexpr std::byte handshake_record{22};
  std::byte first{};
  const ssize_t got = ::recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got != 1) {
    fail_system(got == 0 ? EPIPE : errno);
  } else if (first != handshake_record) {
    fail(Code::protocol_error, "it announced TLS, but does not speak it");
  }
  return got == 1 && step_ != Step::broken;
}

// Continues the TLS handshake. Returns nothing if the next step can follow at once.
std::optional<Guard::State> Guard::shake(int socket) {
  if (!stream_.is_encrypted()) {
    if (accepts_ && !hears_tls(socket)) return step_ == Step::broken ? State::failed : State::reading;
    const Keys& keys = credentials_->keys();
    Digest key = keys.connection_key({opening_, notice_, job()});
    stream_.encrypt(accepts_ ? Tls::accepting(*keys.tls(), socket, key)
                             : Tls::connecting(*keys.tls(), socket, key));
    wipe(key);
  }
  int error = 0;
  switch (stream_.tls()->handshake(error)) {
    case Tls::State::done:
      after_tls();
      return std::nullopt;
    case Tls::State::failed:
      fail_stream(socket, error);
      return std::nullopt;
    case Tls::State::writing:
      fail_system(EAGAIN);
      return step_ == Step::broken ? State::failed : State::writing;
    default:
      fail_system(EAGAIN);
      return step_ == Step::broken ? State::failed : State::reading;
  }
}

// With a token, the TLS handshake has proved everything, since its key is derived from the token. With
// certificates, both sides must still prove their ranks and the job.
void Guard::after_tls() {
  if (mode() == Mode::tls_token) {
    step_ = Step::finished;
  } else if (accepts_) {
    expect(Step::read_proof, digest_bytes);
  } else {
    say(proof(connector));
    expect(Step::read_verdict, message_bytes);
  }
}

void Guard::fail_stream(int socket, int error) {
  if (error != EPROTO || !stream_.is_encrypted()) return fail_system(error);
  const std::string why = " (TLS: " + stream_.tls()->reason() + ")";
  fail(Code::unauthenticated, mode() == Mode::tls_token
                                  ? other_token(socket, why)
                                  : them() + " cannot make an encrypted connection with " + us(socket) + why);
}

}  // namespace tutti::security
