#include <array>

#include <tutti/status.h>

#include "core/shown.h"

namespace tutti {

std::string_view to_string(Code code) {
  static constexpr std::array<std::string_view, 12> names = {"ok",
                                                             "timeout",
                                                             "peer_lost",
                                                             "aborted",
                                                             "mismatch",
                                                             "unauthenticated",
                                                             "unreachable",
                                                             "invalid_argument",
                                                             "unsupported",
                                                             "resource_exhausted",
                                                             "protocol_error",
                                                             "internal"};
  const auto index = static_cast<std::size_t>(code);
  return index < names.size() ? names[index] : "unknown";
}

Status::Status(Code code, std::string message, int peer) {
  // The text may come from outside, so it is made printable.
  if (code != Code::ok)
    detail_ = std::make_shared<const Detail>(Detail{code, peer, printable(std::move(message))});
}

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : detail_->message;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(tutti::to_string(code())) + ": " + message();
}

Status Status::with_context(std::string_view prefix) const {
  if (ok()) return *this;
  return Status(code(), std::string(prefix) + ": " + message(), peer());
}

Error::Error(Status status) : std::runtime_error(status.to_string()), status_(std::move(status)) {}

}  // namespace tutti
