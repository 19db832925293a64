#include <cstdint>
#include <optional>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include "bindings/python/group.h"

namespace tutti::python {

namespace {

// `AllocatedArray` gives Python access, through DLPack, to memory from `Communicator::allocate`.
// Host memory also has the buffer protocol. Every view keeps the memory alive.
struct AllocatedArray {
  std::shared_ptr<Allocation> allocation;
  Memory memory;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const AllocatedArray& array = *nb::inst_ptr<AllocatedArray>(self);
  if (array.memory != Memory()) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "only DLPack gives access to memory of a CUDA device");
    return -1;
  }
  const Allocation& allocation = *array.allocation;
  return PyBuffer_FillInfo(view, self, allocation.data(), static_cast<Py_ssize_t>(allocation.bytes()), 0,
                           flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

// Returns DLPack's numbers for the kind of device and the device.
std::pair<int, int> dlpack_device(const AllocatedArray& array) {
  const bool on_host = array.memory == Memory();
  return {on_host ? nb::device::cpu::value : nb::device::cuda::value, array.memory.device()};
}

// No stream needs to wait for the elements, because they exist when `allocate` returns. The version that the
// caller asks for is ignored, because DLPack permits a result of a lower version.
nb::object dlpack(nb::handle_t<AllocatedArray> self, const nb::object&, const nb::object&,
                  std::optional<std::pair<int, int>> device, std::optional<bool> copy) {
  const AllocatedArray& array = nb::cast<const AllocatedArray&>(self);
  const std::pair<int, int> own = dlpack_device(array);
  if (copy.value_or(false) || device.value_or(own) != own)
    throw nb::buffer_error("the memory is not copied: it is exported where it is");
  return nb::cast(nb::ndarray<std::uint8_t>(array.allocation->data(), {array.allocation->bytes()}, self, {},
                                            nb::dtype<std::uint8_t>(), own.first, own.second));
}

Memory memory_of(std::optional<int> device) {
  if (!device) return {};
  if (*device >= 0 && *device <= Memory::max_device) return Memory::cuda(*device);
  throw Error(Status(Code::invalid_argument, std::to_string(*device) + " is not a CUDA device"));
}

std::unique_ptr<AllocatedArray> allocate(Group& group, std::size_t bytes, std::optional<int> device) {
  const std::shared_ptr<Communicator> communicator = group.open();
  const Memory memory = memory_of(device);
  const auto made = held_without_gil(Allocation());
  interruptibly([made, communicator, bytes, memory] { *made = communicator->allocate(bytes, memory); },
                [communicator] { communicator->abort("interrupted"); });
  return std::make_unique<AllocatedArray>(AllocatedArray{made, memory});
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
  nb::class_<AllocatedArray>(module, "Allocation", nb::type_slots(slots),
                             "Memory that the ranks of a host share, or memory of a CUDA device. It has "
                             "DLPack. Memory of the host also "
                             "has the buffer protocol: numpy.frombuffer reads and writes it.")
      .def_prop_ro(
          "nbytes", [](const AllocatedArray& self) { return self.allocation->bytes(); },
          "The number of bytes.")
      .def_prop_ro(
          "registered", [](const AllocatedArray& self) { return self.allocation->registered(); },
          "Whether collectives can work on the memory in place. If not, it is ordinary memory.")
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__dlpack_device__", &dlpack_device);
  const nb::class_<Registered> registration(module, "Registration",
                                            "Keeps an array alive, and its memory registered.");
  nb::borrow<nb::class_<Group>>(module.attr("Communicator"))
      .def("register_memory", &register_memory, nb::arg("array"),
           "Registers an array's memory with the transports. Transports that can write into a peer's memory "
           "then receive large messages in this memory without copies. Returns a `Registration`.")
      .def("allocate", &allocate, nb::arg("nbytes"), nb::arg("device") = nb::none(),
           "Allocates zeroed memory that the ranks of a host share. Large collectives work on it in place, "
           "without copies. If `device` is the number of a CUDA device, allocates memory of that device. "
           "Collective and blocking. Ranks may pass different sizes and devices.");
}

}  // namespace tutti::python
