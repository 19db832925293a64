#include "bindings/c/store.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/c/handles.h"

namespace tutti::c {

namespace {

int64_t nanoseconds_left(Deadline deadline) { return deadline.remaining().count(); }

// Runs `call()`, which calls the user's function `name`. Returns that function's code and message as a
// Status.
template <class Call>
Status outcome(const char* name, Call&& call) {
  forget_error();
  const int code = call();
  if (code == TUTTI_OK) return Status();
  const Status said = last_error();
  if (static_cast<int>(said.code()) == code) return said.with_context(std::string("the store's ") + name);
  const bool known = code > TUTTI_OK && code <= TUTTI_ERROR_INTERNAL;
  return Status(known ? static_cast<Code>(code) : Code::internal,
                std::string("the store's ") + name + " returned " + std::to_string(code));
}

class CallerStore : public Store {
 public:
  explicit CallerStore(const tutti_store& functions) : with_(functions) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return outcome("set", [&] {
      return with_.set(with_.state, std::string(key).c_str(), value.data(), value.size(),
                       nanoseconds_left(deadline));
    });
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    tutti_bytes answer;
    const Status status = outcome("get", [&] {
      return with_.get(with_.state, std::string(key).c_str(), nanoseconds_left(deadline), &answer);
    });
    if (!status.ok()) return status;
    return std::move(answer.value);
  }

  Status wait(std::span<const std::string> keys, Deadline deadline) override {
    std::vector<const char*> names;
    for (const std::string& key : keys) names.push_back(key.c_str());
    return outcome("wait", [&] {
      return with_.wait(with_.state, names.data(), names.size(), nanoseconds_left(deadline));
    });
  }

  Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) override {
    std::int64_t sum = 0;
    const Status status = outcome("add", [&] {
      return with_.add(with_.state, std::string(key).c_str(), delta, nanoseconds_left(deadline), &sum);
    });
    if (!status.ok()) return status;
    return sum;
  }

  Result<std::string> compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                  Deadline deadline) override {
    tutti_bytes answer;
    const Status status = outcome("compare_set", [&] {
      return with_.compare_set(with_.state, std::string(key).c_str(), expected.data(), expected.size(),
                               desired.data(), desired.size(), nanoseconds_left(deadline), &answer);
    });
    if (!status.ok()) return status;
    return std::move(answer.value);
  }

  Result<bool> delete_key(std::string_view key, Deadline deadline) override {
    int existed = 0;
    const Status status = outcome("delete_key", [&] {
      return with_.delete_key(with_.state, std::string(key).c_str(), nanoseconds_left(deadline), &existed);
    });
    if (!status.ok()) return status;
    return existed != 0;
  }

  Result<bool> exists(std::string_view key, Deadline deadline) override {
    if (with_.exists == nullptr) return exists_by_waiting(key);
    int there = 0;
    const Status status = outcome("exists", [&] {
      return with_.exists(with_.state, std::string(key).c_str(), nanoseconds_left(deadline), &there);
    });
    if (!status.ok()) return status;
    return there != 0;
  }

 private:
  Result<bool> exists_by_waiting(std::string_view key) {
    const std::string name(key);
    const Status status = wait({&name, 1}, Deadline::after(std::chrono::nanoseconds(0)));
    if (!status.ok() && status.code() != Code::timeout) return status;
    return status.ok();
  }

  const tutti_store with_;
};

}  // namespace

std::shared_ptr<Store> make_store(const tutti_store& functions) {
  const tutti_store with = known_part<tutti_store>(&functions, TUTTI_STORE_INIT);
  if (with.set == nullptr || with.get == nullptr || with.wait == nullptr || with.add == nullptr ||
      with.compare_set == nullptr || with.delete_key == nullptr) {
    throw invalid("a store needs all of set, get, wait, add, compare_set and delete_key");
  }
  return std::make_shared<CallerStore>(with);
}

}  // namespace tutti::c

int tutti_bytes_set(tutti_bytes* bytes, const void* data, size_t size) {
  return tutti::c::guarded([&] {
    std::string& value = tutti::c::checked(bytes, "the output pointer for the bytes").value;
    value.assign(static_cast<const char*>(data), size);
  });
}
