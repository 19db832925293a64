#include "rendezvous/store/memory/memory_store.h"

#include <algorithm>
#include <limits>

namespace tutti {

MemoryStore::MemoryStore() : table_(std::numeric_limits<std::size_t>::max()) {}

Status MemoryStore::set(std::string_view key, std::string_view value, Deadline) {
  const std::lock_guard lock(mutex_);
  Status status = table_.set(key, value);
  if (status.ok()) changed_.notify_all();
  return status;
}

Status MemoryStore::wait_locked(std::unique_lock<std::mutex>& lock, std::span<const std::string> keys,
                                Deadline deadline) {
  for (const std::string& key : keys) {
    if (Status status = check_store_key(key); !status.ok()) return status;
  }
  const auto all_there = [&] {
    return std::ranges::all_of(keys, [&](const std::string& key) { return table_.find(key) != nullptr; });
  };
  if (deadline.is_never()) {
    changed_.wait(lock, all_there);
    return {};
  }
  if (changed_.wait_until(lock, deadline.when(), all_there)) return {};
  std::vector<std::string> missing;
  std::ranges::copy_if(keys, std::back_inserter(missing),
                       [&](const std::string& key) { return table_.find(key) == nullptr; });
  return missing_keys(missing);
}

Result<std::string> MemoryStore::get(std::string_view key, Deadline deadline) {
  const std::string name(key);
  std::unique_lock lock(mutex_);
  if (Status status = wait_locked(lock, std::span(&name, 1), deadline); !status.ok()) return status;
  return *table_.find(key);
}

Status MemoryStore::wait(std::span<const std::string> keys, Deadline deadline) {
  std::unique_lock lock(mutex_);
  return wait_locked(lock, keys, deadline);
}

Result<std::int64_t> MemoryStore::add(std::string_view key, std::int64_t delta, Deadline) {
  const std::lock_guard lock(mutex_);
  Result<std::int64_t> sum = table_.add(key, delta);
  if (sum.ok()) changed_.notify_all();
  return sum;
}

Result<std::string> MemoryStore::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired, Deadline) {
  const std::lock_guard lock(mutex_);
  Result<std::string> held = table_.compare_set(key, expected, desired);
  if (held.ok()) changed_.notify_all();
  return held;
}

Result<bool> MemoryStore::delete_key(std::string_view key, Deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  return table_.erase(key);
}

Result<bool> MemoryStore::exists(std::string_view key, Deadline) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  return table_.find(key) != nullptr;
}

Result<std::vector<std::string>> MemoryStore::get_many(std::span<const std::string> keys, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (Status status = wait_locked(lock, keys, deadline); !status.ok()) return status;
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(*table_.find(key));
  return values;
}

}  // namespace tutti
