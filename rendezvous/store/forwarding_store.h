#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/store.h>

namespace tutti {

// `ForwardingStore` passes every request on to another store. A derived class may give the keys other names
// in that store, or refuse requests.
class ForwardingStore : public Store {
 public:
  // `store` must live at least as long as this object.
  explicit ForwardingStore(Store& store) : store_(store) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) final;
  Result<std::string> get(std::string_view key, Deadline deadline) final;
  Status wait(std::span<const std::string> keys, Deadline deadline) final;
  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) final;
  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) final;
  Result<bool> delete_key(std::string_view key, Deadline deadline) final;
  Result<bool> exists(std::string_view key, Deadline deadline) final;
  Status hold(std::string_view prefix, Deadline deadline) final;
  Status release(Deadline deadline) final;
  Status set_will(std::span<const std::string> keys, std::string_view value, Deadline deadline) final;
  Result<std::vector<std::string>> get_many(std::span<const std::string> keys, Deadline deadline) final;

 protected:
  // Returns the name of `key` in the other store.
  virtual std::string name_below(std::string_view key) const { return std::string(key); }
  // Returns the prefix that is held in the other store when `prefix` is held in this one.
  virtual std::string prefix_below(std::string_view prefix) const { return name_below(prefix); }
  // Decides whether a request may be made. If not, the caller gets the failure, and the other store never
  // sees the request.
  virtual Status admit() const { return {}; }

 private:
  std::vector<std::string> names_below(std::span<const std::string> keys) const;

  Store& store_;
};

}  // namespace tutti
