#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include <tutti/store.h>

#include "rendezvous/store/memory/key_table.h"

namespace tutti {

// A `MemoryStore` is a store in the memory of one process, shared by its threads. Worlds of one rank use it,
// and so do ranks that are threads. Tests compare the other stores with it.
class MemoryStore final : public Store {
 public:
  MemoryStore();

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status wait(std::span<const std::string> keys, Deadline deadline) override;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override;
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override;
  Result<bool> delete_key(std::string_view key, Deadline deadline) override;
  Result<bool> exists(std::string_view key, Deadline deadline) override;
  Result<std::vector<std::string>> get_many(std::span<const std::string> keys, Deadline deadline) override;

 private:
  Status wait_locked(std::unique_lock<std::mutex>& lock, std::span<const std::string> keys,
                     Deadline deadline);

  std::mutex mutex_;
  std::condition_variable changed_;
  KeyTable table_;
};

}  // namespace tutti
