#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include <tutti/memory.h>
#include <tutti/types.h>

namespace tutti {

// `DataTypeOf` maps a C++ element type to its `DataType`; <tutti/float16.h> adds the narrow floats.
template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<std::int8_t> {
  static constexpr DataType value = DataType::int8;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<char> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::int32;
};
template <>
struct DataTypeOf<std::uint32_t> {
  static constexpr DataType value = DataType::uint32;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<std::uint64_t> {
  static constexpr DataType value = DataType::uint64;
};
template <>
struct DataTypeOf<long long> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<unsigned long long> {
  static constexpr DataType value = DataType::uint64;
};
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::float32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::float64;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::boolean;
};

// An `ElementRange` is a contiguous range of elements that have a `DataType`: std::vector, std::array,
// std::span.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && requires {
  DataTypeOf<std::remove_cv_t<std::ranges::range_value_t<R>>>::value;
};

// A `Buffer` is memory of `count` elements of `type` that an operation may write. It does not own the memory,
// which must outlive the operation. Every `ElementRange` whose elements can be written converts to a `Buffer`
// in host memory.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::uint8;
  Memory memory;

  Buffer() = default;
  Buffer(void* pointer, std::size_t elements, DataType data_type, Memory where = {})
      : data(pointer), count(elements), type(data_type), memory(where) {}
  template <ElementRange R>
  requires(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>) Buffer(R&& range)
      : data(std::ranges::data(range)),
        count(std::ranges::size(range)),
        type(DataTypeOf<std::remove_cv_t<std::ranges::range_value_t<R>>>::value) {}

  std::size_t bytes() const { return count * size_of(type); }
};

// A `ConstBuffer` is memory of `count` elements of `type` that an operation only reads. It does not own the
// memory, which must stay unchanged until the operation has ended.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::uint8;
  Memory memory;

  ConstBuffer() = default;
  ConstBuffer(const void* pointer, std::size_t elements, DataType data_type, Memory where = {})
      : data(pointer), count(elements), type(data_type), memory(where) {}
  ConstBuffer(const Buffer& other)
      : data(other.data), count(other.count), type(other.type), memory(other.memory) {}
  template <ElementRange R>
  ConstBuffer(const R& range)
      : data(std::ranges::data(range)),
        count(std::ranges::size(range)),
        type(DataTypeOf<std::remove_cv_t<std::ranges::range_value_t<R>>>::value) {}

  std::size_t bytes() const { return count * size_of(type); }
};

}  // namespace tutti
