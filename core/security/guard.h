#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tutti/credentials.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/security/byte_stream.h"
#include "core/security/digest.h"
#include "core/security/ends.h"

namespace tutti::security {

// A `Service` is the purpose of a connection. A proof for one is invalid for another.
enum class Service : std::uint8_t { store = 1, data = 2, memory = 3, control = 4 };

enum class Mode : std::uint8_t;  // messages.h

struct Parties {
  Service service = Service::data;
  std::uint32_t from = nobody;  // the rank that connects
  std::uint32_t to = nobody;    // the rank that accepts
};

// A `Guard` protects a connection: it lets nothing through before both sides have proved, by a
// challenge-response over their roles, ranks, job and two fresh nonces, that they hold the same token
// (docs/protocol.md), or have proved it by TLS. It reads its own messages only, all of fixed size, and not a
// byte of what follows them; it works on stream and packet sockets, and never blocks. The owner of the socket
// calls `advance` when there is a connection, when the socket is ready, and when time is up:
//
//   switch (guard.advance(socket)) {
//     case Guard::State::reading:     // call again when the socket is readable
//     case Guard::State::writing:     // ... writable
//     case Guard::State::done:        // the connection may be used
//     case Guard::State::failed:      // close it; status() says why
//   }
//
// Without credentials it lets everything pass at once, except that the side that accepts tells a peer which
// expects a guard that there is none. One thread at a time.
class Guard {
 public:
  enum class State { reading, writing, done, failed };
  enum class Verdict : std::uint8_t;  // the accepting side's verdict on the other

  // Only the connecting side uses this.
  static Guard connecting(SharedCredentials credentials, const Parties& parties, Deadline deadline);
  // For the accepting side, which is rank `self`. The guard finds out which rank connects.
  static Guard accepting(SharedCredentials credentials, Service service, std::uint32_t self,
                         Deadline deadline);

  State advance(int socket);

  // Once failed. `unauthenticated`, with both addresses: one side asked for a proof that the other one could
  // not give. `timeout`, `peer_lost`: the connection or the time ended. `protocol_error`: the other side is
  // something else. `mismatch`: of another version. `unreachable`: the connection was meant for another
  // process.
  const Status& status() const { return status_; }
  // The sort of a failure, for the accepting side. It is equal for all processes that lack the same thing.
  Verdict verdict() const { return verdict_; }
  // Returns whether the other side is a tutti process, though not of this job, which is worth a line in the
  // log.
  bool is_noteworthy() const { return noteworthy_; }
  // The rank that connected, proved once done; meaningless without credentials.
  std::uint32_t from() const { return parties_.from; }
  bool is_open() const { return credentials_ == nullptr; }
  // Returns whether the other side has sent something that ranks begin with: a first message to this guard,
  // or, without credentials, a first byte. For the side that accepts.
  bool has_begun() const { return step_ != Step::peek && step_ != Step::read_opening; }
  // Once done: the TLS connection that everything goes through from now on; null: the socket itself.
  std::unique_ptr<Tls> take_tls() { return stream_.take_tls(); }

  static constexpr std::size_t message_bytes = 64;

 private:
  // clang-format off
  enum class Step { peek, read_opening, read_notice, read_proof, read_verdict, shake, close, finished, broken };
  // clang-format on

  Guard(SharedCredentials credentials, const Parties& parties, bool accepts, Deadline deadline);

  bool send_some(int socket);
  bool receive_some(int socket);
  void step(int socket);
  std::optional<State> shake(int socket);
  bool hears_tls(int socket);
  void after_tls();
  void fail_stream(int socket, int error);
  void peek(int socket);
  void recognise(int socket);
  void judge_opening(int socket);
  void challenge();
  void judge_proof(int socket);
  void prove();
  void judge_notice(int socket);
  void judge_verdict(int socket);

  Digest proof(std::string_view role) const;
  void expect(Step step, std::size_t bytes);
  std::span<const std::byte> job() const;
  Mode mode() const;
  void say_opening();
  void say_notice(Verdict verdict, const Digest& body);
  void say(std::span<const std::byte> message);
  void refuse(Verdict verdict, Code code, const std::string& why);
  void fail(Code code, const std::string& why);
  void fail_system(int error);
  std::string them(int socket) const;
  std::string us(int socket) const;
  std::string other_token(int socket) const;

  SharedCredentials credentials_;
  Parties parties_;
  bool accepts_ = false;
  bool noteworthy_ = false;
  Verdict verdict_{};
  Deadline deadline_;
  Step step_;
  Status status_;

  std::array<std::byte, message_bytes> opening_{};
  std::array<std::byte, message_bytes> notice_{};
  std::array<std::byte, message_bytes> in_{};
  std::array<std::byte, message_bytes> out_{};
  ByteStream stream_;  // encrypted from when the handshake begins
  std::size_t wanted_ = 0, have_ = 0;
  std::size_t to_send_ = 0, sent_ = 0;
};

// A side that connects without credentials may read a guard's notice in place of an answer. If these are a
// notice's first bytes, returns what it means.
std::optional<Status> refusal_by_guard(std::span<const std::byte> answer, const std::string& who);

}  // namespace tutti::security
