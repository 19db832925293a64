#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "bindings/python/operation.h"
#include "bindings/python/reduce_op.h"

namespace tutti::python {

// Returns a pointer to `value` that destroys it without holding the GIL. Destroying a communicator
// needs the driver's lock, the baton. The thread that has the baton may be waiting for the GIL.
template <class T>
std::shared_ptr<T> held_without_gil(T value) {
  return std::shared_ptr<T>(new T(std::move(value)), [](T* held) {
    std::optional<nb::gil_scoped_release> released;
    if (PyGILState_Check() != 0) released.emplace();
    delete held;
  });
}

// A `Group` is a Communicator that can be closed. It closes when the interpreter ends, so that the other
// ranks learn that this rank has left. Its functions require the GIL.
class Group {
 public:
  explicit Group(Communicator communicator);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // Returns a pointer that keeps the communicator alive, since another thread may close the group
  // meanwhile. Throws `invalid_argument` if the group is closed.
  std::shared_ptr<Communicator> open() const;
  bool closed() const { return communicator_ == nullptr; }
  void close();
  static void close_all();

  // Releases the GIL and calls `start(communicator)`, which starts an operation. Throws if the arguments are
  // wrong. Even then the ranks still agree on the order of operations: either no operation has started, or
  // all ranks refuse this operation.
  template <class Start>
  Operation issue(Kept kept, Start&& start) {
    release_finished();
    const std::shared_ptr<Communicator> communicator = open();
    Work work;
    {
      const nb::gil_scoped_release released;
      work = start(*communicator);
    }
    const Status status = work.status();
    if (status.code() == Code::invalid_argument || status.code() == Code::unsupported) throw Error(status);
    return Operation(std::move(work), std::move(kept));
  }

 private:
  std::shared_ptr<Communicator> communicator_;
};

// `How` holds the options of a call. Python passes these options by name.
class How {
 public:
  // Throws TypeError if there is no such option, or if a value has a wrong type.
  explicit How(const nb::kwargs& options);
  operator CallOptions() const;

 private:
  bool take(std::string_view name, nb::handle value);

  std::optional<double> timeout_;
  std::optional<std::string> algorithm_;
  std::optional<std::uintptr_t> stream_;
  std::optional<std::uintptr_t> region_;
};

// Collects the objects that an operation must keep alive: its arrays, and the user's function if
// there is one.
template <class... Arrays>
Kept kept(nb::handle op, Arrays&&... arrays) {
  Kept all;
  all.arrays.reserve(sizeof...(arrays));
  (all.arrays.push_back(std::move(arrays)), ...);
  if (op.is_valid() && !PyUnicode_Check(op.ptr())) all.op = nb::borrow(op);
  return all;
}

// Each of these functions binds the methods and functions of one subject.
void bind_reductions(nb::class_<Group>& group);
void bind_movements(nb::class_<Group>& group);
void bind_messages(nb::class_<Group>& group);
void bind_group(nb::module_& module);
void bind_functions(nb::module_& module);
void bind_allocation(nb::module_& module);

// Runs the blocking function `body` on a new thread, so that the calling thread notices Ctrl-C. On
// Ctrl-C the calling thread calls `give_up`, which should make `body` return. The new thread is
// abandoned if `body` does not return soon after that, or at once if `give_up` is empty.
void interruptibly(std::function<void()> body, const std::function<void()>& give_up);

}  // namespace tutti::python
