#include "bindings/python/array.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/status.h>
#include <tutti/types.h>

namespace tutti::python {

namespace {

Error refused(Code code, const std::string& text) { return Error(Status(code, text)); }

Error not_contiguous() {
  return refused(
      Code::invalid_argument,
      "the array is not contiguous (a slice with steps, or transposed): make a contiguous copy first, "
      "such as numpy.ascontiguousarray gives");
}

Error read_only() {
  return refused(Code::invalid_argument, "the array is read-only, but the operation writes into it");
}

Error wrong_type(const std::string& elements) {
  return refused(
      Code::unsupported,
      elements +
          ": tutti has int8, uint8, int32, uint32, int64, uint64, float16, bfloat16, float32, "
          "float64, float8_e4m3fn, float8_e5m2 and bool; data that only moves can be viewed as uint8");
}

// Returns a text such as "elements of type complex64" if the array has a dtype, and `otherwise` if not.
std::string elements_of(nb::handle array, const std::string& otherwise) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  return dtype.is_none() ? otherwise : std::string("elements of type ") + nb::str(dtype).c_str();
}

// Tries to export `array`. Returns the text of the exception, or a general text if there was no
// exception.
std::string why_not_exported(nb::handle array) {
  try {
    array.attr("__dlpack__")();
  } catch (const nb::python_error& error) {
    return nb::str(error.value()).c_str();
  }
  return "its format is not known";
}

// Returns the type for a format letter of Python's struct module. `size` decides among the integer types,
// since "l" has 4 bytes on some systems.
std::optional<DataType> type_of_format(const char* format, std::size_t size) {
  if (format == nullptr) return DataType::uint8;
  // All three prefixes mean native byte order, since tutti runs only on little-endian machines.
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '\0' || format[1] != '\0') return std::nullopt;
  const auto sized = [&](DataType one, DataType four, DataType eight) -> std::optional<DataType> {
    if (size == 1) return one;
    if (size == 4) return four;
    if (size == 8) return eight;
    return std::nullopt;
  };
  if (std::strchr("bhilqn", *format)) return sized(DataType::int8, DataType::int32, DataType::int64);
  if (std::strchr("cBHILQN", *format)) return sized(DataType::uint8, DataType::uint32, DataType::uint64);
  if (*format == 'e') return DataType::float16;
  if (*format == 'f') return DataType::float32;
  if (*format == 'd') return DataType::float64;
  if (*format == '?') return DataType::boolean;
  return std::nullopt;
}

std::optional<DataType> type_of_name(std::string_view name) {
  if (name == "bfloat16") return DataType::bfloat16;
  if (name == "float8_e4m3fn") return DataType::float8_e4m3;
  if (name == "float8_e5m2") return DataType::float8_e5m2;
  return std::nullopt;
}

std::optional<DataType> type_of_dlpack(nb::dlpack::dtype type) {
  using Kind = nb::dlpack::dtype_code;
  if (type.lanes != 1) return std::nullopt;
  const auto is = [&](Kind kind, int bits) {
    return type.code == static_cast<std::uint8_t>(kind) && type.bits == bits;
  };
  if (is(Kind::Int, 8)) return DataType::int8;
  if (is(Kind::Int, 32)) return DataType::int32;
  if (is(Kind::Int, 64)) return DataType::int64;
  if (is(Kind::UInt, 8)) return DataType::uint8;
  if (is(Kind::UInt, 32)) return DataType::uint32;
  if (is(Kind::UInt, 64)) return DataType::uint64;
  if (is(Kind::Float, 16)) return DataType::float16;
  if (is(Kind::Float, 32)) return DataType::float32;
  if (is(Kind::Float, 64)) return DataType::float64;
  if (is(Kind::Bfloat, 16)) return DataType::bfloat16;
  if (is(Kind::Bool, 8)) return DataType::boolean;
  if (is(Kind::Float8_E4M3FN, 8)) return DataType::float8_e4m3;
  if (is(Kind::Float8_E5M2, 8)) return DataType::float8_e5m2;
  return std::nullopt;
}

template <class View>
bool is_contiguous(const View& view) {
  std::int64_t expected = 1;
  for (std::size_t i = view.ndim(); i-- > 0;) {
    if (view.shape(i) != 1 && view.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(view.shape(i));
  }
  return true;
}

}  // namespace

void Array::Release::operator()(Py_buffer* view) const {
  PyBuffer_Release(view);
  delete view;
}

Array::Array(nb::handle object, bool write) {
  if (take_buffer(object, write) || take_named_type(object, write)) return;
  take_dlpack(object, write);
}

bool Array::take_buffer(nb::handle object, bool write) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return false;
  }
  view_.reset(view.release());
  const auto size = static_cast<std::size_t>(view_->itemsize);
  const std::optional<DataType> type = type_of_format(view_->format, size);
  if (!type) {
    throw wrong_type(elements_of(object, std::string("elements of format \"") + view_->format + "\""));
  }
  if (PyBuffer_IsContiguous(view_.get(), 'C') == 0) throw not_contiguous();
  if (write && view_->readonly != 0) throw read_only();
  buffer_ = Buffer(view_->buf, static_cast<std::size_t>(view_->len) / size, *type);
  return true;
}

bool Array::take_named_type(nb::handle object, bool write) {
  nb::object dtype = nb::getattr(object, "dtype", nb::none());
  nb::object name = nb::getattr(dtype, "name", nb::none());
  if (!nb::isinstance<nb::str>(name) || !nb::hasattr(object, "view")) return false;
  const std::optional<DataType> type = type_of_name(nb::borrow<nb::str>(name).c_str());
  if (!type && PyObject_CheckBuffer(object.ptr())) throw wrong_type(elements_of(object, {}));
  if (!type) return false;
  const nb::object bits = object.attr("view")(size_of(*type) == 2 ? "uint16" : "uint8");
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(bits.ptr(), view.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  view_.reset(view.release());
  if (PyBuffer_IsContiguous(view_.get(), 'C') == 0) throw not_contiguous();
  if (write && view_->readonly != 0) throw read_only();
  buffer_ = Buffer(view_->buf, static_cast<std::size_t>(view_->len) / size_of(*type), *type);
  return true;
}

void Array::take_dlpack(nb::handle object, bool write) {
  if (!nb::hasattr(object, "__dlpack__")) {
    throw nb::type_error((std::string(nb::type_name(object.type()).c_str()) +
                          " has neither the buffer protocol nor __dlpack__: not an array that tutti can read")
                             .c_str());
  }
  const auto take = [&](auto tensor) {
    const bool on_cuda = tensor.device_type() == nb::device::cuda::value;
    if (!on_cuda && tensor.device_type() != nb::device::cpu::value) {
      throw refused(Code::unsupported, "the tensor is neither in host memory nor on a CUDA device");
    }
    const std::optional<DataType> type = type_of_dlpack(tensor.dtype());
    if (!type) throw wrong_type(elements_of(object, "the tensor's elements"));
    if (!is_contiguous(tensor)) throw not_contiguous();
    buffer_ = Buffer(const_cast<void*>(static_cast<const void*>(tensor.data())), tensor.size(), *type,
                     on_cuda ? Memory::cuda(tensor.device_id()) : Memory());
    tensor_ = nb::ndarray<>(tensor);
  };
  nb::ndarray<> writable;
  nb::ndarray<nb::ro> readable;
  if (write && nb::try_cast(object, writable, false)) {
    take(writable);
  } else if (nb::try_cast(object, readable, false)) {
    if (write) throw read_only();
    take(readable);
  } else {
    throw refused(Code::unsupported, elements_of(object, "an array") + " of a " +
                                         nb::type_name(object.type()).c_str() +
                                         " cannot be exported by DLPack: " + why_not_exported(object));
  }
}

}  // namespace tutti::python
