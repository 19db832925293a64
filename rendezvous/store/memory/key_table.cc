#include "rendezvous/store/memory/key_table.h"

#include <charconv>

#include <tutti/store.h>

namespace tutti {

Status KeyTable::set(std::string_view key, std::string_view value) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  if (Status status = check_store_value(key, value); !status.ok()) return status;
  const auto entry = entries_.find(key);
  const std::size_t freed = entry == entries_.end() ? 0 : entry->second.size();
  const std::size_t needed = value.size() + (entry == entries_.end() ? key.size() + entry_overhead : 0);
  if (bytes_ - freed + needed > max_bytes_) {
    return Status(Code::resource_exhausted, "the store is full: it holds " + std::to_string(bytes_) + " of " +
                                                std::to_string(max_bytes_) + " bytes and cannot take key '" +
                                                std::string(key) + "' as well");
  }
  bytes_ = bytes_ - freed + needed;
  if (entry == entries_.end()) {
    entries_.emplace(key, value);
  } else {
    entry->second.assign(value);
  }
  return {};
}

const std::string* KeyTable::find(std::string_view key) const {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : &entry->second;
}

Result<std::int64_t> KeyTable::add(std::string_view key, std::int64_t delta) {
  std::int64_t sum = 0;
  if (const std::string* text = find(key)) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), sum);
    if (error != std::errc() || end != text->data() + text->size()) {
      return Status(Code::invalid_argument,
                    "store key '" + std::string(key) + "' does not hold a number to add to");
    }
  }
  if (__builtin_add_overflow(sum, delta, &sum)) {
    return Status(Code::invalid_argument, "adding to store key '" + std::string(key) + "' leaves 64 bits");
  }
  if (Status status = set(key, std::to_string(sum)); !status.ok()) return status;
  return sum;
}

Result<std::string> KeyTable::compare_set(std::string_view key, std::string_view expected,
                                          std::string_view desired) {
  if (Status status = check_store_key(key); !status.ok()) return status;
  if (Status status = check_store_value(key, expected); !status.ok()) return status;
  const std::string* held = find(key);
  const bool matches = held == nullptr ? expected.empty() : *held == expected;
  if (!matches) return held == nullptr ? std::string(expected) : *held;
  if (Status status = set(key, desired); !status.ok()) return status;
  return std::string(desired);
}

bool KeyTable::erase(std::string_view key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return false;
  bytes_ -= entry->first.size() + entry->second.size() + entry_overhead;
  entries_.erase(entry);
  return true;
}

void KeyTable::erase_all_beginning_with(std::string_view prefix) {
  auto entry = entries_.lower_bound(prefix);
  while (entry != entries_.end() && entry->first.starts_with(prefix)) {
    bytes_ -= entry->first.size() + entry->second.size() + entry_overhead;
    entry = entries_.erase(entry);
  }
}

}  // namespace tutti
