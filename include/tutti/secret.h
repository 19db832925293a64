#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <tutti/export.h>

namespace tutti {

// A `Secret` is a text that must not be printed, logged or left behind in memory. It does not convert to a
// string, and its bytes are overwritten when it is destroyed.
class TUTTI_API Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text) : bytes_(text.begin(), text.end()) {}
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : bytes_(std::move(other.bytes_)) {}
  Secret& operator=(Secret other) noexcept {
    bytes_.swap(other.bytes_);
    return *this;
  }
  ~Secret();

  // Returns the concatenated parts.
  static Secret joined(std::initializer_list<std::string_view> parts);
  // Replaces the text with at most `most` bytes that it reads from `descriptor`. Returns 0 or an errno value.
  int read_from(int descriptor, std::size_t most);

  bool empty() const { return bytes_.empty(); }
  // Returns the text. Use it only to derive keys and to pass the secret to another process.
  std::string_view reveal() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::vector<char> bytes_;
};

}  // namespace tutti
