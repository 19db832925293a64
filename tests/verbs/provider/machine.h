#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/verbs/provider/completion_queue.h"
#include "tests/verbs/provider/device.h"
#include "tests/verbs/provider/queue_pair.h"
#include "tests/verbs/provider/record.h"
#include "tests/verbs/provider/regions.h"
#include "tests/verbs/provider/wire.h"

namespace tutti::provider {

// A `Machine` is the state behind the functions of libibverbs: the devices, and all objects that the program
// has made. The maps find an object by the pointer that the program holds.
struct Machine {
  template <class Key, class Object>
  using Objects = std::map<const Key*, std::unique_ptr<Object>>;

  std::mutex mutex;  // guards everything below
  std::vector<std::unique_ptr<Device>> devices;
  Objects<ibv_context, Context> contexts;
  Objects<ibv_pd, ibv_pd> domains;
  Objects<ibv_comp_channel, CompletionChannel> channels;
  Objects<ibv_cq, CompletionQueue> queues;
  Objects<ibv_qp, QueuePair> pairs;
  Record record;
  Regions regions;
  Wire wire{regions, record};
  std::uint32_t last_pair = 0x100;
  bool prepared_for_forks = false;

  void mistake(const char* what) { record.mistakes.emplace_back(what); }
};

// A `Locked` gives access to `current`, the machine of the provider that exists. The machine is locked until
// the `Locked` is destroyed. Each function that replaces one of libibverbs makes a `Locked` while it works
// with the machine.
class Locked {
 public:
  Locked() : lock_(current->mutex) {}
  Machine* operator->() const { return current; }

  static inline Machine* current = nullptr;

 private:
  std::lock_guard<std::mutex> lock_;
};

// Keeps a new object for the program, and returns the pointer that the program gets.
template <class Key, class Object>
Key* keep(Machine::Objects<Key, Object>& objects, std::unique_ptr<Object> object) {
  Key* const made = object.get();
  objects[made] = std::move(object);
  return made;
}

template <class Key, class Object, class Uses>
bool any_uses(const Machine::Objects<Key, Object>& objects, const Uses& uses) {
  for (const auto& [key, object] : objects) {
    if (uses(*object)) return true;
  }
  return false;
}

// Sets errno, and returns a null pointer. Functions that return a pointer fail in this way.
inline std::nullptr_t refused(int error) {
  errno = error;
  return nullptr;
}

}  // namespace tutti::provider
