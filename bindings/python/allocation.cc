#include <nanobind/stl/unique_ptr.h>

#include "bindings/python/group.h"

namespace tutti::python {

namespace {

// `SharedMemory` offers memory of `Communicator::allocate` by the buffer protocol. Every view keeps the
// memory alive.
struct SharedMemory {
  std::shared_ptr<Allocation> allocation;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Allocation& allocation = *nb::inst_ptr<SharedMemory>(self)->allocation;
  return PyBuffer_FillInfo(view, self, allocation.data(), static_cast<Py_ssize_t>(allocation.bytes()), 0,
                           flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

std::unique_ptr<SharedMemory> allocate(Group& group, std::size_t bytes) {
  const std::shared_ptr<Communicator> communicator = group.open();
  const auto made = held_without_gil(Allocation());
  interruptibly([made, communicator, bytes] { *made = communicator->allocate(bytes); },
                [communicator] { communicator->abort("interrupted"); });
  return std::make_unique<SharedMemory>(SharedMemory{made});
}

// A `Registered` keeps an array alive, and the array's memory registered.
struct Registered {
  Array array;
  std::shared_ptr<Registration> registration;
};

std::unique_ptr<Registered> register_memory(Group& group, nb::handle object) {
  const std::shared_ptr<Communicator> communicator = group.open();
  Array array = Array::to_write(object);
  const Buffer& buffer = array.buffer();
  const std::span<std::byte> memory(static_cast<std::byte*>(buffer.data), buffer.bytes());
  Registration made;
  {
    const nb::gil_scoped_release released;
    made = communicator->register_memory(memory);
  }
  return std::make_unique<Registered>(Registered{std::move(array), held_without_gil(std::move(made))});
}

}  // namespace

void bind_allocation(nb::module_& module) {
  nb::class_<SharedMemory>(
      module, "Allocation", nb::type_slots(slots),
      "Memory that the ranks of a host share; has the buffer protocol: numpy.frombuffer reads and writes it.")
      .def_prop_ro(
          "nbytes", [](const SharedMemory& self) { return self.allocation->bytes(); }, "The number of bytes.")
      .def_prop_ro(
          "registered", [](const SharedMemory& self) { return self.allocation->registered(); },
          "Whether other ranks reach it directly; if not, it is ordinary memory.");
  const nb::class_<Registered> registration(module, "Registration",
                                            "Keeps an array alive, and its memory registered.");
  nb::borrow<nb::class_<Group>>(module.attr("Communicator"))
      .def("register_memory", &register_memory, nb::arg("array"),
           "Registers an array's memory with the transports. Those that can write into a peer's memory then "
           "receive large messages there without copies. Returns a `Registration`.")
      .def("allocate", &allocate, nb::arg("nbytes"),
           "Allocates zeroed memory that the ranks of a host share, on which collectives copy nothing. "
           "Collective and blocking; sizes may differ.");
}

}  // namespace tutti::python
