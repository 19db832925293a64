#pragma once

#include <memory>
#include <string>

#include "rendezvous/store/forwarding_store.h"

namespace tutti {

// `PrefixStore` is a separate store inside another one: it puts `prefix` and a slash in front of
// every key. Two users of one store see only their own keys, unless their prefixes are equal or one
// prefix begins with the other prefix and a slash.
class PrefixStore final : public ForwardingStore {
 public:
  PrefixStore(const std::string& prefix, std::shared_ptr<Store> store)
      : ForwardingStore(*store), prefix_(prefix + "/"), store_(std::move(store)) {}

 protected:
  // An empty key stays empty, so that the store below refuses it.
  std::string name_below(std::string_view key) const override {
    return key.empty() ? std::string() : prefix_ + std::string(key);
  }
  // An empty prefix means all keys of this store.
  std::string prefix_below(std::string_view prefix) const override {
    return prefix.empty() ? prefix_.substr(0, prefix_.size() - 1) : name_below(prefix);
  }

 private:
  const std::string prefix_;
  const std::shared_ptr<Store> store_;
};

}  // namespace tutti
