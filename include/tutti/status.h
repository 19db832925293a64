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
  timeout,
  peer_lost,
  aborted,
  mismatch,
  unauthenticated,
  unreachable,
  invalid_argument,
  unsupported,
  resource_exhausted,
  protocol_error,
  internal,
};

TUTTI_API std::string_view to_string(Code code);

// A `Status` is the outcome of something that can fail. Success costs one null pointer; copies share the
// text. The whole library uses it; only `init` and `Work::wait` turn it into an exception.
class [[nodiscard]] TUTTI_API Status {
 public:
  Status() = default;
  // `peer` is the world rank to blame, or -1 if no rank, or this rank, is to blame.
  Status(Code code, std::string message, int peer = -1);

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return ok() ? Code::ok : detail_->code; }
  int peer() const { return ok() ? -1 : detail_->peer; }
  const std::string& message() const;
  // "peer_lost: rank 3 on host b ...", or "ok".
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

// `init` and `Work::wait` throw an `Error`, which holds a `Status`.
class TUTTI_API Error : public std::runtime_error {
 public:
  explicit Error(Status status);
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

 private:
  Status status_;
};

// A `Result` is a value, or the `Status` (never `ok`) that says why there is none.
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
  // Returns the value; throws `Error` if there is none. Only for users of the API, not for the library.
  T take() && {
    if (!ok()) throw Error(status_);
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tutti
