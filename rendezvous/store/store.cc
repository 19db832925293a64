#include <algorithm>

#include <tutti/store.h>

namespace tutti {

Status Store::hold(std::string_view, Deadline) { return {}; }

Status Store::release(Deadline) { return {}; }

Status Store::set_will(std::span<const std::string>, std::string_view, Deadline) { return {}; }

Result<std::vector<std::string>> Store::get_many(std::span<const std::string> keys, Deadline deadline) {
  if (Status status = wait(keys, deadline); !status.ok()) return status;
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    Result<std::string> value = get(key, deadline);
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

Status check_store_key(std::string_view key) {
  if (key.empty()) return Status(Code::invalid_argument, "a store key must not be empty");
  if (key.size() > max_store_key_bytes) {
    return Status(Code::invalid_argument, "the store key '" + std::string(key.substr(0, 64)) + "...' has " +
                                              std::to_string(key.size()) + " bytes, the limit is " +
                                              std::to_string(max_store_key_bytes));
  }
  return {};
}

Status check_store_value(std::string_view key, std::string_view value) {
  if (value.size() <= max_store_value_bytes) return {};
  return Status(Code::invalid_argument, "the value of store key '" + std::string(key) + "' has " +
                                            std::to_string(value.size()) + " bytes, the limit is " +
                                            std::to_string(max_store_value_bytes));
}

Status missing_keys(std::span<const std::string> missing) {
  constexpr std::size_t named = 8;
  std::string text = missing.size() == 1 ? "no such key in the store within the time given: "
                                         : "no such keys in the store within the time given: ";
  for (std::size_t i = 0; i < std::min(named, missing.size()); ++i) {
    text += (i == 0 ? "'" : ", '") + missing[i] + "'";
  }
  if (missing.size() > named) text += " and " + std::to_string(missing.size() - named) + " more";
  return Status(Code::timeout, text);
}

}  // namespace tutti
