#pragma once

#include <memory>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <tutti/buffer.h>

namespace tutti::python {

namespace nb = nanobind;

// An `Array` is the memory of a Python object, held while an operation uses it. The object supports
// the buffer protocol, is an array of ml_dtypes' bfloat16 or float8, or is a DLPack tensor in host
// memory or on a CUDA device. Making an `Array` does not read the elements. Requires the GIL.
class Array {
 public:
  // These functions throw `invalid_argument` if the array is not contiguous, or if it is read-only and must
  // be written. They throw `unsupported` if tutti does not have the element type, or if the array is on
  // another kind of device. They throw TypeError if the object is not an array.
  static Array to_read(nb::handle object) { return Array(object, false); }
  static Array to_write(nb::handle object) { return Array(object, true); }
  // Returns an empty `Array` for None.
  static Array to_read_if_any(nb::handle object) { return object.is_none() ? Array() : to_read(object); }
  static Array to_write_if_any(nb::handle object) { return object.is_none() ? Array() : to_write(object); }

  const Buffer& buffer() const { return buffer_; }

 private:
  struct Release {
    void operator()(Py_buffer* view) const;
  };

  Array() = default;
  Array(nb::handle object, bool write);
  // Takes the memory by the buffer protocol. Returns false if the object does not support the protocol.
  bool take_buffer(nb::handle object, bool write);
  // Does the same for arrays of ml_dtypes' types. Such an array supports the buffer protocol only through a
  // view of its elements as integers of the same size.
  bool take_named_type(nb::handle object, bool write);
  void take_dlpack(nb::handle object, bool write);

  Buffer buffer_;
  std::unique_ptr<Py_buffer, Release> view_;
  nb::ndarray<> tensor_;
};

}  // namespace tutti::python
