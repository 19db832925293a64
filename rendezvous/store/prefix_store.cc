#include "rendezvous/store/prefix_store.h"

namespace tutti {

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {}

std::string PrefixStore::full(std::string_view key) const {
  return key.empty() ? std::string() : prefix_ + std::string(key);
}

std::vector<std::string> PrefixStore::full(std::span<const std::string> keys) const {
  std::vector<std::string> all;
  all.reserve(keys.size());
  for (const std::string& key : keys) all.push_back(full(key));
  return all;
}

Status PrefixStore::set(std::string_view key, std::string_view value, Deadline deadline) {
  return store_->set(full(key), value, deadline);
}

Result<std::string> PrefixStore::get(std::string_view key, Deadline deadline) {
  return store_->get(full(key), deadline);
}

Status PrefixStore::wait(std::span<const std::string> keys, Deadline deadline) {
  return store_->wait(full(keys), deadline);
}

Result<std::int64_t> PrefixStore::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  return store_->add(full(key), delta, deadline);
}

Result<std::string> PrefixStore::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired, Deadline deadline) {
  return store_->compare_set(full(key), expected, desired, deadline);
}

Result<bool> PrefixStore::delete_key(std::string_view key, Deadline deadline) {
  return store_->delete_key(full(key), deadline);
}

Result<bool> PrefixStore::exists(std::string_view key, Deadline deadline) {
  return store_->exists(full(key), deadline);
}

Status PrefixStore::hold(std::string_view prefix, Deadline deadline) {
  return store_->hold(prefix.empty() ? prefix_.substr(0, prefix_.size() - 1) : full(prefix), deadline);
}

Status PrefixStore::release(Deadline deadline) { return store_->release(deadline); }

Status PrefixStore::set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) {
  return store_->set_will(full(keys), value, deadline);
}

Result<std::vector<std::string>> PrefixStore::get_many(std::span<const std::string> keys, Deadline deadline) {
  return store_->get_many(full(keys), deadline);
}

}  // namespace tutti
