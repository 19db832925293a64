#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/store.h>

namespace tutti {

// A store of its own inside another one: every key gets `prefix` and a slash in front. Two users of one store
// with different prefixes, neither of which contains the other's, do not see each other.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status wait(std::span<const std::string> keys, Deadline deadline) override;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override;
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override;
  Result<bool> delete_key(std::string_view key, Deadline deadline) override;
  Result<bool> exists(std::string_view key, Deadline deadline) override;
  // An empty prefix means all keys of this store.
  Status hold(std::string_view prefix, Deadline deadline) override;
  Status release(Deadline deadline) override;
  Status set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) override;
  Result<std::vector<std::string>> get_many(std::span<const std::string> keys, Deadline deadline) override;

 private:
  // An empty key stays empty, so that the store below refuses it.
  std::string full(std::string_view key) const;
  std::vector<std::string> full(std::span<const std::string> keys) const;

  const std::string prefix_;
  const std::shared_ptr<Store> store_;
};

}  // namespace tutti
