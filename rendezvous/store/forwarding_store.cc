#include "rendezvous/store/forwarding_store.h"

namespace tutti {

std::vector<std::string> ForwardingStore::names_below(std::span<const std::string> keys) const {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const std::string& key : keys) names.push_back(name_below(key));
  return names;
}

Status ForwardingStore::set(std::string_view key, std::string_view value, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.set(name_below(key), value, deadline);
}

Result<std::string> ForwardingStore::get(std::string_view key, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.get(name_below(key), deadline);
}

Status ForwardingStore::wait(std::span<const std::string> keys, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.wait(names_below(keys), deadline);
}

Result<std::int64_t> ForwardingStore::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.add(name_below(key), delta, deadline);
}

Result<std::string> ForwardingStore::compare_set(std::string_view key, std::string_view expected,
                                                 std::string_view desired, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.compare_set(name_below(key), expected, desired, deadline);
}

Result<bool> ForwardingStore::delete_key(std::string_view key, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.delete_key(name_below(key), deadline);
}

Result<bool> ForwardingStore::exists(std::string_view key, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.exists(name_below(key), deadline);
}

Status ForwardingStore::hold(std::string_view prefix, Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.hold(prefix_below(prefix), deadline);
}

Status ForwardingStore::release(Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.release(deadline);
}

Status ForwardingStore::set_will(std::span<const std::string> keys, std::string_view value,
                                 Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.set_will(names_below(keys), value, deadline);
}

Result<std::vector<std::string>> ForwardingStore::get_many(std::span<const std::string> keys,
                                                           Deadline deadline) {
  if (Status refused = admit(); !refused.ok()) return refused;
  return store_.get_many(names_below(keys), deadline);
}

}  // namespace tutti
