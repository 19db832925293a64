#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <tutti/status.h>

namespace tutti {

// `KeyTable` holds the keys and values of the in-process store and of the TCP store. It has the operations of
// `Store`, without waiting, and is not thread-safe. The table is ordered instead of hashed, since strangers
// could choose keys that make a hash table slow.
class KeyTable {
 public:
  // `max_bytes` bounds the total size of all keys and values, plus `entry_overhead` bytes for each entry. A
  // change that exceeds it fails with `resource_exhausted`.
  explicit KeyTable(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  Status set(std::string_view key, std::string_view value);
  // Returns null if there is no such key. The result is valid until that key changes.
  const std::string* find(std::string_view key) const;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta);
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired);
  bool erase(std::string_view key);
  void erase_all_beginning_with(std::string_view prefix);

 private:
  static constexpr std::size_t entry_overhead = 128;

  std::map<std::string, std::string, std::less<>> entries_;
  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
