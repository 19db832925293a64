#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <tutti/export.h>

namespace tutti {

// A text that must not be printed, logged or left behind in memory: there is no conversion to a string, and
// the bytes are overwritten when it goes.
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

  // The parts one after the other.
  static Secret joined(std::initializer_list<std::string_view> parts);
  // Holds what can be read there from now on, but no more than `most` bytes. 0 or an errno.
  int read_from(int descriptor, std::size_t most);

  bool empty() const { return bytes_.empty(); }
  // For deriving keys and for handing it on to another process; nowhere else.
  std::string_view reveal() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::vector<char> bytes_;
};

}  // namespace tutti
