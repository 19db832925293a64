#include "tests/conformance/store_cases.h"

#include <tutti/store_server.h>

#include "rendezvous/store/memory/memory_store.h"
#include "rendezvous/store/prefix_store.h"
#include "rendezvous/store/tcp/store_client.h"

namespace tutti::test {
namespace {

class Memory : public StoreUnderTest {
 public:
  std::shared_ptr<Store> open() override { return store_; }

 private:
  std::shared_ptr<Store> store_ = std::make_shared<MemoryStore>();
};

class Tcp : public StoreUnderTest {
 public:
  std::shared_ptr<Store> open() override {
    return tcp::connect_store(server_->address(), server_->port(), Deadline::after(std::chrono::seconds(30)))
        .take();
  }

 private:
  std::unique_ptr<tcp::StoreServer> server_ = tcp::StoreServer::create({}).take();
};

template <class Inner>
class Prefixed : public StoreUnderTest {
 public:
  Prefixed() {
    static_cast<void>(inner_.open()->set("k", "not in the prefix", Deadline::never()).ok());
    static_cast<void>(inner_.open()->set("another/k", "nor this", Deadline::never()).ok());
  }
  std::shared_ptr<Store> open() override { return std::make_shared<PrefixStore>("job/7", inner_.open()); }

 private:
  Inner inner_;
};

template <class Kind>
StoreKind kind(const std::string& name) {
  return {name, [] { return std::make_unique<Kind>(); }};
}

}  // namespace

StoreKind memory_store() { return kind<Memory>("memory"); }
StoreKind prefix_store() { return kind<Prefixed<Memory>>("prefix"); }
StoreKind tcp_store() { return kind<Tcp>("tcp"); }
StoreKind tcp_prefix_store() { return kind<Prefixed<Tcp>>("tcp_prefix"); }

}  // namespace tutti::test
