#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// A `Service` is the purpose of a connection. A proof for one service is not valid for another.
enum class Service : std::uint8_t { store = 1, data = 2, memory = 3, control = 4, launch = 5 };

enum class Mode : std::uint8_t;  // messages.h

// `Parties` are the two sides of a connection. For the service `launch`, `from` is the number of a host,
// whose agent connects to its launcher.
struct Parties {
  Service service = Service::data;
  std::uint32_t from = nobody;  // the rank that connects
  std::uint32_t to = nobody;    // the rank that accepts
};

// Returns the credentials that a rank must have, or null if no process may connect as that rank.
using CredentialsOf = std::function<SharedCredentials(std::uint32_t from)>;

// A `Guard` authenticates a connection. It lets nothing through before both sides have proved that they
// belong together. The proof is TLS, or a challenge-response which shows that both have the same token. The
// challenge-response covers the roles and ranks of both sides, the job, and two fresh nonces
// (docs/protocol.md). A guard reads its own messages, which have fixed sizes, and no byte after them. It
// works on stream and packet sockets, and never blocks. The owner of the socket calls `advance` once the
// socket is connected, whenever the socket is ready, and when time is up:
//
//   switch (guard.advance(socket)) {
//     case Guard::State::reading:     // call again when the socket is readable
//     case Guard::State::writing:     // call again when the socket is writable
//     case Guard::State::done:        // both sides have proved who they are: continue
//     case Guard::State::failed:      // close the socket; status() says why
//   }
//
// Without credentials a guard lets everything pass at once, except for a peer that expects a guard.
// The accepting side refuses such a peer, and answers that there is no guard. Only one thread at a
// time may call a guard.
class Guard {
 public:
  enum class State { reading, writing, done, failed };
  enum class Verdict : std::uint8_t;  // the accepting side's answer

  // Makes the guard of the connecting side.
  static Guard connecting(SharedCredentials credentials, const Parties& parties, Deadline deadline);
  // Makes the guard of the accepting side, which is rank `self`. The guard finds out which rank connects.
  static Guard accepting(SharedCredentials credentials, Service service, std::uint32_t self,
                         Deadline deadline);
  // Makes a guard of the accepting side that asks `credentials_of` for the credentials of the rank that
  // connects. It calls that function at most once, and never lets a process pass without a proof.
  static Guard accepting(CredentialsOf credentials_of, Service service, std::uint32_t self,
                         Deadline deadline);

  State advance(int socket);

  // Returns the reason for a failure:
  // - `unauthenticated`: one side asked for a proof that the other side could not give, or the two sides use
  //   different modes. The message names both addresses.
  // - `timeout`: the time was up.
  // - `peer_lost`: the connection ended.
  // - `protocol_error`: the other side speaks another protocol.
  // - `mismatch`: the other side uses another version of this protocol.
  // - `unreachable`: the connection was meant for another process.
  // - `internal`: the system has no random numbers.
  const Status& status() const { return status_; }
  // Returns, on the accepting side, which kind of failure it was. Processes that are refused for the same
  // reason get the same kind.
  Verdict verdict() const { return verdict_; }
  // Returns true if the other side speaks our protocol but does not belong to this job. The log should
  // mention such a failure.
  bool is_noteworthy() const { return noteworthy_; }
  // Returns the rank that connected. It is only a claim until the guard is done. Without credentials the
  // number means nothing.
  std::uint32_t from() const { return parties_.from; }
  bool is_open() const { return credentials_ == nullptr && credentials_of_ == nullptr; }
  // Returns, on the accepting side, whether the bytes with which a rank begins have arrived: the first
  // message to this guard or, without credentials, any byte.
  bool has_begun() const { return step_ != Step::peek && step_ != Step::read_opening; }
  // Returns the TLS connection for everything that follows, or null if the socket itself is used. The guard
  // must be done.
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
  std::string name_of(std::uint32_t end, const std::string& address) const;
  std::string them() const;
  std::string us(int socket) const;
  std::string other_token(int socket, const std::string& detail = {}) const;

  SharedCredentials credentials_;
  CredentialsOf credentials_of_;  // only if each rank has its own credentials
  Parties parties_;
  std::string peer_;  // the other end's address, which the system forgets when the connection is
                      // reset
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
  ByteStream stream_;  // encrypted once the handshake begins
  std::size_t wanted_ = 0, have_ = 0;
  std::size_t to_send_ = 0, sent_ = 0;
};

// A side that connects without credentials may receive a guard's notice in place of the answer that it
// expects. If `answer` begins with a notice, this function returns the error to report. Otherwise it returns
// nothing.
std::optional<Status> refusal_by_guard(std::span<const std::byte> answer, const std::string& who);

}  // namespace tutti::security
