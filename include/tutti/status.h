#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tutti/export.h>

namespace tutti {

enum class Code : std::uint8_t {
  ok,
  timeout,             // a time limit has expired
  peer_lost,           // a rank has died, or can no longer be reached
  aborted,             // a rank has called `abort`, has left, or has failed
  mismatch,            // ranks have made different calls, or a message does not fit its receive
  unauthenticated,     // a process could not prove that it belongs to the job
  unreachable,         // a name or an address cannot be resolved or connected to
  invalid_argument,    // the caller's mistake
  unsupported,         // not defined or not possible for these arguments, or in this process
  resource_exhausted,  // no memory, descriptors, ports or disk space
  protocol_error,      // a peer has sent bytes that break the protocol
  internal,            // a bug in tutti, or an unexpected system error
};

// Returns the name, as in the list above.
TUTTI_API std::string_view to_string(Code code);

// A `Status` is the outcome of a function that can fail: `ok`, or a code with a message. An `ok` status is
// only a null pointer. Copies share the message. Functions that block throw a failure as an `Error`: `init`,
// `Work::wait` and `wait_for`, and `Communicator::split`, `group`, `allocate`, `register_memory` and
// `shrink`.
//
// Thread rule: any thread may use its own copy.
class [[nodiscard]] TUTTI_API Status {
 public:
  // Makes `ok`.
  Status() = default;
  // `peer` is the world rank to blame, or -1 if no other rank is to blame.
  Status(Code code, std::string message, int peer = -1);

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return ok() ? Code::ok : detail_->code; }
  int peer() const { return ok() ? -1 : detail_->peer; }
  // Returns the message; it is empty for `ok`.
  const std::string& message() const;
  // Returns "peer_lost: rank 3 on host b ...", or "ok".
  std::string to_string() const;
  // Returns the same code and peer with `prefix` in front of the message; `ok` stays `ok`.
  Status with_context(std::string_view prefix) const;

 private:
  struct Detail {
    Code code;
    int peer;
    std::string message;
  };
  std::shared_ptr<const Detail> detail_;
};

// An `Error` is the exception that users catch: a `Status` that a blocking function throws.
class TUTTI_API Error : public std::runtime_error {
 public:
  explicit Error(Status status);
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

 private:
  Status status_;
};

// A `Result` is a value, or the `Status` that says why there is none (never `ok`). Reading the value of a
// failed `Result` with `*` or `->` is undefined.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  // Returns the value, or throws `Error` if there is none. Code inside the library must not use it.
  T take() && {
    if (!ok()) throw Error(status_);
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tutti
