#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tutti/status.h>

namespace tutti {

// A `FlatStatus` is a status in plain bytes, which can be sent to another process. A message of more than
// `length` bytes is cut off.
template <std::size_t length>
class FlatStatus {
 public:
  void set(const Status& status) {
    const std::string& message = status.message();
    code_ = static_cast<std::uint32_t>(status.code());
    text_ = {};
    std::copy_n(message.begin(), std::min(message.size(), length), text_.begin());
  }
  bool ok() const { return code_ == 0; }
  // Returns the failure, which blames the world rank `peer`. Another process may have written these bytes, so
  // an unknown code counts as `internal`.
  Status failure(int peer) const {
    const bool known = code_ > 0 && code_ <= static_cast<std::uint32_t>(Code::internal);
    const auto end = std::find(text_.begin(), text_.end(), '\0');
    return Status(known ? static_cast<Code>(code_) : Code::internal, std::string(text_.begin(), end), peer);
  }

 private:
  std::uint32_t code_ = 0;
  std::array<char, length> text_{};  // ends with a zero unless it is full
};

}  // namespace tutti
