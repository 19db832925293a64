#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/export.h>
#include <tutti/status.h>

namespace tutti {

inline constexpr std::size_t max_store_key_bytes = 1024;
inline constexpr std::size_t max_store_value_bytes = std::size_t{8} << 20;

// A `Store` is a small key-value table that all ranks of a job reach. Ranks use it to meet before they are
// connected. It never carries the program's data.
//
// Any thread may call it. A call that waits for a key fails with `timeout` at its deadline, and the error
// names missing keys. With a deadline that has already expired, the call does not wait, but still succeeds if
// all keys exist. `peer_lost` means that the store is gone; the call may or may not have taken effect.
// `invalid_argument` means that a key or a value exceeds the limits above, or that a key is empty.
//
// Values are arbitrary bytes. The operations are those of c10d's Store, so a thin adapter turns one class
// into the other.
class TUTTI_API Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Sets the key to `value`, whether or not the key exists.
  virtual Status set(std::string_view key, std::string_view value, Deadline deadline) = 0;

  // Waits for the key to exist, and returns its value.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;

  // Waits until all keys exist at the same time.
  virtual Status wait(std::span<const std::string> keys, Deadline deadline) = 0;

  // Adds to the number that the key holds as decimal text (a missing key counts as 0) and returns the sum.
  // Fails with `invalid_argument` if the key holds something else or the sum does not fit into 64 bits.
  virtual Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) = 0;

  // Sets the key to `desired` if it holds `expected`, or if it is missing and `expected` is empty. Returns
  // the key's value afterwards, or `expected` if the key is still missing.
  virtual Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                          std::string_view desired, Deadline deadline) = 0;

  // Deletes the key, and returns whether it existed.
  virtual Result<bool> delete_key(std::string_view key, Deadline deadline) = 0;

  // Returns whether the key exists now, without waiting for it.
  virtual Result<bool> exists(std::string_view key, Deadline deadline) = 0;

  // Makes this connection hold all keys that begin with `prefix` and a slash. The store deletes the keys when
  // the last connection that holds them ends, so clients that die leave nothing behind. Each connection has
  // at most one prefix. Stores that do not track connections ignore this.
  virtual Status hold(std::string_view prefix, Deadline deadline);
  // Gives up the prefix of this connection. If no other connection holds the prefix, the store deletes the
  // keys of the prefix.
  virtual Status release(Deadline deadline);

  // Sets the will of this connection: when the connection ends, the store sets each of `keys` that is still
  // missing to `value`. A later will replaces this one, and a will without keys cancels it. Stores that do
  // not track connections ignore this.
  virtual Status set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline);

  // Waits for all keys and returns their values in the same order. A store may need fewer round trips for
  // this than for one `get` per key.
  virtual Result<std::vector<std::string>> get_many(std::span<const std::string> keys, Deadline deadline);
};

// These functions check a key and a value against the limits above. Every store calls them first.
TUTTI_API Status check_store_key(std::string_view key);
TUTTI_API Status check_store_value(std::string_view key, std::string_view value);

// Returns the `timeout` error of a wait; its message names the first few missing keys.
TUTTI_API Status missing_keys(std::span<const std::string> missing);

}  // namespace tutti
