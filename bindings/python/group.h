#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "bindings/python/operation.h"
#include "bindings/python/reduce_op.h"

namespace tutti::python {

// What keeps a communicator alive, destroyed without the GIL: tearing that down needs the baton, and who has
// the baton may want the GIL.
template <class T>
std::shared_ptr<T> held_without_gil(T value) {
  return std::shared_ptr<T>(new T(std::move(value)), [](T* held) {
    std::optional<nb::gil_scoped_release> released;
    if (PyGILState_Check() != 0) released.emplace();
    delete held;
  });
}

// A Communicator that can be closed, and is when the interpreter ends, so that the other ranks are told. With
// the GIL.
class Group {
 public:
  explicit Group(Communicator communicator);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // One reference more, since another thread may close it meanwhile. Throws `invalid_argument` once closed.
  std::shared_ptr<Communicator> open() const;
  bool closed() const { return communicator_ == nullptr; }
  void close();
  static void close_all();

  // Issues by `start(communicator)`, without the GIL. Throws what is wrong with the arguments: such a call
  // has not begun, and the ranks are still in step.
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

// What every call may ask for, as Python gives it.
struct How {
  std::optional<double> timeout;
  std::optional<std::string> algorithm;
  operator CallOptions() const;
};

// Arrays, and a user's function, to be kept for an operation.
template <class... Arrays>
Kept kept(nb::handle op, Arrays&&... arrays) {
  Kept all;
  all.arrays.reserve(sizeof...(arrays));
  (all.arrays.push_back(std::move(arrays)), ...);
  if (op.is_valid() && !PyUnicode_Check(op.ptr())) all.op = nb::borrow(op);
  return all;
}

// By what has to be said of it: reductions, what moves data, point to point, and the rest.
void bind_reductions(nb::class_<Group>& group);
void bind_movements(nb::class_<Group>& group);
void bind_messages(nb::class_<Group>& group);
void bind_group(nb::module_& module);
void bind_allocation(nb::module_& module);

// `body()`, which blocks, on a thread of its own, so that Ctrl-C gets through: then `give_up` is called, and
// the thread, which that should end, is left to itself if it has not ended within a moment.
void interruptibly(std::function<void()> body, const std::function<void()>& give_up);

}  // namespace tutti::python
