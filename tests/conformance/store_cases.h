#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tutti/store.h>

namespace tutti::test {

// `StoreUnderTest` is one store. `open` returns a handle to the store. In a job, each rank has such a handle.
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
StoreKind prefix_store();  // lies in a memory store that has other keys, which must not be visible
StoreKind tcp_store();
StoreKind tcp_prefix_store();

}  // namespace tutti::test
