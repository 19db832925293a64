#include "core/security/guard.h"

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#include "core/security/keys.h"
#include "core/security/messages.h"

namespace tutti::security {
namespace {

const char* describe(Mode mode) {
  switch (mode) {
    case Mode::challenge:
      return "does not encrypt";
    case Mode::tls_token:
      return "encrypts with the token";
    case Mode::tls_files:
      return "encrypts with certificates";
  }
  return "protects connections by an unknown method";
}

// A local socket has a guard only if there is a token, since certificates are only for the network.
SharedCredentials for_service(SharedCredentials credentials, Service service) {
  const bool none = service == Service::memory && credentials != nullptr && !credentials->keys().has_token();
  return none ? nullptr : std::move(credentials);
}

}  // namespace

enum class Guard::Verdict : std::uint8_t {
  proceed = 1,        // the connecting side must send its proof
  welcome = 2,        // carries the accepting side's proof
  denied = 3,         // the proof is wrong
  token_needed = 4,   // the connecting side does not expect a guard
  no_guard = 5,       // the connecting side expects a guard, but the accepting side has none
  other_version = 6,  // the accepting side uses another version, which is in the notice
  not_meant = 7,      // the opening is for another rank or service
  other_mode = 8,     // the accepting side uses another mode, which is in the notice
};

Guard::Guard(SharedCredentials credentials, const Parties& parties, bool accepts, Deadline deadline)
    : credentials_(for_service(std::move(credentials), parties.service)),
      parties_(parties),
      accepts_(accepts),
      deadline_(deadline),
      step_(Step::finished) {}

Guard Guard::connecting(SharedCredentials credentials, const Parties& parties, Deadline deadline) {
  Guard guard(std::move(credentials), parties, false, deadline);
  if (guard.credentials_ != nullptr) guard.say_opening();
  return guard;
}

Guard Guard::accepting(SharedCredentials credentials, Service service, std::uint32_t self,
                       Deadline deadline) {
  Guard guard(std::move(credentials), {service, nobody, self}, true, deadline);
  guard.expect(guard.credentials_ == nullptr ? Step::peek : Step::read_opening, message_bytes);
  return guard;
}

Guard Guard::accepting(CredentialsOf credentials_of, Service service, std::uint32_t self, Deadline deadline) {
  Guard guard(nullptr, {service, nobody, self}, true, deadline);
  guard.credentials_of_ = std::move(credentials_of);
  guard.expect(Step::read_opening, message_bytes);
  return guard;
}

Guard::State Guard::advance(int socket) {
  if (peer_.empty()) peer_ = peer_address(socket);
  for (;;) {
    if (step_ == Step::broken) return State::failed;
    if (sent_ < to_send_) {
      if (send_some(socket)) continue;
      if (step_ != Step::broken) return State::writing;
    } else if (step_ == Step::finished) {
      return State::done;
    } else if (step_ == Step::close) {
      step_ = Step::broken;
    } else if (step_ == Step::shake) {
      if (const auto waits = shake(socket)) return *waits;
    } else if (step_ == Step::peek) {
      peek(socket);
      if (step_ == Step::peek) return State::reading;
    } else if (have_ < wanted_) {
      if (receive_some(socket)) {
        recognise(socket);
      } else if (step_ != Step::broken) {
        return State::reading;
      }
    } else {
      step(socket);
    }
  }
}

// --- moving bytes; false means that nothing can be done now, or that the guard is broken ---

bool Guard::send_some(int socket) {
  const auto rest = std::span<const std::byte>(out_).subspan(sent_, to_send_ - sent_);
  int error = 0;
  sent_ += stream_.write(socket, rest, error);
  if (error != 0) fail_stream(socket, error);
  return error == 0;
}

bool Guard::receive_some(int socket) {
  const auto place = std::span(in_).subspan(have_, wanted_ - have_);
  int error = 0;
  have_ += stream_.read(socket, place, error);
  if (error != 0) fail_stream(socket, error);
  return error == 0;
}

// Errors such as EAGAIN only mean that the call must be repeated. They are a failure only once time is up.
void Guard::fail_system(int error) {
  if (error == EINTR || error == EAGAIN || error == EWOULDBLOCK) {
    if (deadline_.expired()) fail(Code::timeout, "the other side did not answer in time");
  } else if (step_ == Step::close) {
    step_ = Step::broken;  // the last message is lost, but the reason for closing is known
  } else if (error == EPIPE || error == ECONNRESET) {
    fail(Code::peer_lost, "the connection was closed before both sides had proved who they are");
  } else {
    fail(Code::peer_lost, std::generic_category().message(error));
  }
}

// --- the side that accepts ---

// Without credentials, this guard takes bytes from the connection only if they are meant for a guard.
void Guard::peek(int socket) {
  std::byte first{};
  const ssize_t got = ::recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return fail_system(errno);
  const bool expects_guard = got == 1 && first == std::byte{opening_magic[0]};
  step_ = expects_guard ? Step::read_opening : Step::finished;
}

// A process that does not speak our protocol is refused at its first wrong byte, and gets no answer.
void Guard::recognise(int socket) {
  const auto bytes = std::span(in_).first(have_);
  if (step_ == Step::read_opening && !begins_with(bytes, opening_magic)) {
    if (!begins_unguarded(bytes)) {
      fail(Code::protocol_error, "it does not speak our protocol");
    } else if (have_ >= opening_magic.size()) {
      noteworthy_ = true;
      refuse(Verdict::token_needed, Code::unauthenticated,
             them() + " has no token, and " + us(socket) + " asks for one" + advice);
    }
  } else if ((step_ == Step::read_notice || step_ == Step::read_verdict) &&
             !begins_with(bytes, notice_magic)) {
    fail(Code::protocol_error, "the answer is not one of our protocol");
  }
}

void Guard::judge_opening(int socket) {
  opening_ = in_;
  noteworthy_ = true;
  parties_.from = take<std::uint32_t>(opening_, 12);
  const auto version = take<std::uint16_t>(opening_, 8);
  if (version != guard_version) {
    return refuse(Verdict::other_version, Code::mismatch,
                  them() + " proves itself by version " + std::to_string(version) + ", " + us(socket) +
                      " by version " + std::to_string(guard_version));
  }
  if (credentials_of_ != nullptr) {
    credentials_ = for_service(credentials_of_(parties_.from), parties_.service);
    if (credentials_ == nullptr) {
      noteworthy_ = false;
      return refuse(Verdict::not_meant, Code::unreachable, them() + " is not expected");
    }
  }
  if (credentials_ == nullptr) {
    return refuse(Verdict::no_guard, Code::unauthenticated,
                  us(socket) + " has no token, and " + them() + " asks for one" + advice);
  }
  const auto theirs = static_cast<Mode>(take<std::uint8_t>(opening_, 10));
  if (theirs != mode()) {
    return refuse(
        Verdict::other_mode, Code::unauthenticated,
        them() + " " + describe(theirs) + ", " + us(socket) + " " + describe(mode()) + " (TUTTI_TLS)");
  }
  if (take<std::uint8_t>(opening_, 11) != static_cast<std::uint8_t>(parties_.service) ||
      take<std::uint32_t>(opening_, 16) != parties_.to) {
    return refuse(Verdict::not_meant, Code::unreachable, them() + " wants to reach another process");
  }
  challenge();
}

void Guard::challenge() {
  Digest nonce;
  if (!fill_random(nonce)) return fail(Code::internal, "the system has no random numbers");
  say_notice(Verdict::proceed, nonce);
  notice_ = out_;
  if (mode() == Mode::challenge) {
    expect(Step::read_proof, digest_bytes);
  } else {
    step_ = Step::shake;
  }
}

void Guard::judge_proof(int socket) {
  if (!equal(std::span(in_).first(digest_bytes), proof(connector))) {
    return refuse(Verdict::denied, Code::unauthenticated, other_token(socket));
  }
  say_notice(Verdict::welcome, proof(acceptor));
  step_ = Step::finished;
}

// --- the side that connects ---

void Guard::judge_notice(int socket) {
  notice_ = in_;
  switch (static_cast<Verdict>(take<std::uint8_t>(notice_, 11))) {
    case Verdict::proceed:
      return prove();
    case Verdict::denied:
      return fail(Code::unauthenticated, other_token(socket));
    case Verdict::no_guard:
      return fail(Code::unauthenticated,
                  them() + " has no token, and " + us(socket) + " asks for one" + advice);
    case Verdict::other_version:
      return fail(Code::mismatch, them() + " proves itself by version " +
                                      std::to_string(take<std::uint16_t>(notice_, 8)) + ", " + us(socket) +
                                      " by version " + std::to_string(guard_version));
    case Verdict::other_mode:
      return fail(Code::unauthenticated, them() + " " +
                                             describe(static_cast<Mode>(take<std::uint8_t>(notice_, 10))) +
                                             ", " + us(socket) + " " + describe(mode()) + " (TUTTI_TLS)");
    case Verdict::not_meant:
      return fail(Code::unreachable, them() + " is not the process that was meant");
    default:
      return fail(Code::protocol_error, them() + " gives an invalid answer");
  }
}

void Guard::prove() {
  if (mode() != Mode::challenge) {
    step_ = Step::shake;
    return;
  }
  say(proof(connector));
  expect(Step::read_verdict, message_bytes);
}

void Guard::judge_verdict(int socket) {
  const auto verdict = static_cast<Verdict>(take<std::uint8_t>(in_, 11));
  // A second demand for a proof is an error. Otherwise the accepting side could demand proofs without end,
  // and keep this thread busy beyond every time limit.
  if (verdict == Verdict::proceed) return fail(Code::protocol_error, them() + " asks for a second proof");
  if (verdict != Verdict::welcome) return judge_notice(socket);
  if (!equal(std::span(in_).subspan(body_offset), proof(acceptor))) {
    return fail(Code::unauthenticated, them() + " cannot prove to " + us(socket) + " that it has the token");
  }
  step_ = Step::finished;
}

// --- both ---

void Guard::step(int socket) {
  switch (step_) {
    case Step::read_opening:
      return judge_opening(socket);
    case Step::read_proof:
      return judge_proof(socket);
    case Step::read_notice:
      return judge_notice(socket);
    default:
      return judge_verdict(socket);
  }
}

Mode Guard::mode() const {
  const bool on_this_host = parties_.service == Service::memory;
  return credentials_ == nullptr || on_this_host ? Mode::challenge : credentials_->keys().mode();
}

// Returns the job. It is empty for a store, since one store may serve many jobs.
std::span<const std::byte> Guard::job() const {
  if (parties_.service == Service::store) return {};
  return credentials_->keys().job();
}

// Returns a proof. Inside TLS, the proof is valid only on this connection, so that no relay can pass it on to
// another connection.
Digest Guard::proof(std::string_view role) const {
  const std::span<const std::byte> channel = stream_.is_encrypted()
                                                 ? std::span<const std::byte>(stream_.tls()->channel())
                                                 : std::span<const std::byte>();
  return hmac(credentials_->keys().proof(), {bytes_of(role), opening_, notice_, job(), channel});
}

void Guard::expect(Step step, std::size_t bytes) {
  step_ = step;
  wanted_ = bytes;
  have_ = 0;
}

void Guard::say_opening() {
  put(opening_, 8, guard_version);
  put(opening_, 10, static_cast<std::uint8_t>(mode()));
  put(opening_, 11, static_cast<std::uint8_t>(parties_.service));
  put(opening_, 12, parties_.from);
  put(opening_, 16, parties_.to);
  std::memcpy(opening_.data(), opening_magic.data(), opening_magic.size());
  expect(Step::read_notice, message_bytes);
  if (!fill_random(std::span(opening_).subspan(body_offset))) {
    return fail(Code::internal, "the system has no random numbers");
  }
  say(opening_);
}

void Guard::say_notice(Verdict verdict, const Digest& body) {
  std::array<std::byte, message_bytes> notice{};
  std::memcpy(notice.data(), notice_magic.data(), notice_magic.size());
  put(notice, 8, guard_version);
  put(notice, 10, static_cast<std::uint8_t>(mode()));
  put(notice, 11, static_cast<std::uint8_t>(verdict));
  std::copy(body.begin(), body.end(), notice.begin() + body_offset);
  say(notice);
}

void Guard::say(std::span<const std::byte> message) {
  std::copy(message.begin(), message.end(), out_.begin());
  to_send_ = message.size();
  sent_ = 0;
}

void Guard::refuse(Verdict verdict, Code code, const std::string& why) {
  say_notice(verdict, {});
  verdict_ = verdict;
  status_ = Status(code, why);
  step_ = Step::close;
}

void Guard::fail(Code code, const std::string& why) {
  status_ = Status(code, why);
  step_ = Step::broken;
}

std::string Guard::name_of(std::uint32_t end, const std::string& address) const {
  const bool is_agent = parties_.service == Service::launch && end != nobody;
  return is_agent ? "the agent of host " + std::to_string(end) + " at " + address
                  : describe_end(end, address);
}

std::string Guard::us(int socket) const {
  return name_of(accepts_ ? parties_.to : parties_.from, own_address(socket));
}

// Describes the other side. To the accepting side, the other side's rank is only a claim.
std::string Guard::them() const {
  if (!accepts_) return name_of(parties_.to, peer_);
  return (parties_.from == nobody ? "" : "a process that calls itself ") + name_of(parties_.from, peer_);
}

// The error contains advice only if the secret is a token, which a user sets. The secret of the service
// `launch` is made by tutti itself.
std::string Guard::other_token(int socket, const std::string& detail) const {
  const bool is_secret = parties_.service == Service::launch;
  const char* const or_else =
      mode() == Mode::tls_files ? ", or another process with a certificate relays between them" : "";
  return them() + (is_secret ? " has another secret than " : " has another token than ") + us(socket) +
         detail + or_else + (is_secret ? "" : advice);
}

std::optional<Status> refusal_by_guard(std::span<const std::byte> answer, const std::string& who) {
  if (answer.size() < notice_magic.size() || !begins_with(answer, notice_magic)) return std::nullopt;
  return Status(Code::unauthenticated, who + " asks for a token, and this process has none" + advice);
}

}  // namespace tutti::security
