#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace tutti::fuzz {

// An `Input` returns the fuzzer's bytes from the front, and zeros after the last byte.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  template <class Number>
  Number number() {
    Number value = 0;
    const auto taken = bytes(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  // Takes at most `most` bytes.
  std::span<const std::byte> bytes(std::size_t most) {
    const auto taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::string_view text(std::size_t most) {
    const auto taken = bytes(most);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  std::string_view rest() { return text(rest_.size()); }
  // Takes the bytes up to the next line feed, and returns them without it.
  std::string_view line() {
    const std::string_view all(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::string_view found = text(std::min(all.find('\n'), all.size()));
    bytes(1);
    return found;
  }

 private:
  std::span<const std::byte> rest_;
};

// Aborts the process unless `holds` is true. A target calls this with conditions that must be true for every
// input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace tutti::fuzz
