#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tutti/store.h>

namespace tutti::test {

// A kind of store, as the conformance suite uses it. Each call of `open` returns a new handle to the same
// store, like that of another rank.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual std::shared_ptr<Store> open() = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> create;
};

StoreKind memory_store();
StoreKind prefix_store();  // in a memory store whose other keys must not show
StoreKind tcp_store();
StoreKind tcp_prefix_store();

}  // namespace tutti::test
