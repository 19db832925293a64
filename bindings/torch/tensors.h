#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <tutti/c.h>

namespace tutti_torch {

// `Elements` describes the elements of a tensor to the library.
struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  tutti_data_type type = TUTTI_UINT8;
};

// Converts a tensor whose data is only moved. Types that the library does not have are sent as bytes.
Elements movable(const at::Tensor& tensor);
// Converts a tensor whose data is reduced. Complex numbers become pairs of numbers. Throws if the library
// lacks the type, or if `op` cannot reduce complex numbers.
Elements reducible(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* name);

// A `Combine` is the library's reduce operation that corresponds to one of c10d's. Its destructor frees the
// operation.
class Combine {
 public:
  Combine(const c10d::ReduceOp& op, const char* name);
  ~Combine() { tutti_op_free(op_); }
  Combine(const Combine&) = delete;
  Combine& operator=(const Combine&) = delete;
  tutti_op get() const { return op_; }

 private:
  tutti_op op_ = TUTTI_SUM;
};

// Returns the device of all tensors in the lists, or the CPU if there are no tensors. Throws if the
// tensors are on different devices. `name` is the operation's name for errors, such as
// "tutti:all_reduce".
at::Device device_of(std::initializer_list<const std::vector<at::Tensor>*> lists, const char* name);

// Throws unless the tensor is dense and in the memory of the host or of a CUDA device. `name` is the
// operation's name, such as "allreduce".
void check_dense(const at::Tensor& tensor, const char* name);
// Throws like `check_dense`, and also if the tensor's memory has gaps between its elements. Permuted strides
// (transposed, channels last) are accepted, so this check suits only operations that treat each element
// separately. All ranks must have the same strides.
void check_without_gaps(const at::Tensor& tensor, const char* name);
void check_contiguous(const at::Tensor& tensor, const char* name);
void check_single(const std::vector<at::Tensor>& tensors, const char* name);
void check_same_type(const at::Tensor& a, const at::Tensor& b, const char* name);
void check_root(std::int64_t root, int size, const char* name);
// Throws unless the list has one tensor per rank, each dense and of the same type as `type_of`.
void check_list(const std::vector<at::Tensor>& tensors, int size, const at::Tensor& type_of,
                const char* name);

// A `Flat` holds several tensors one after another in memory. `tensor` is new memory of their total size,
// unless the tensors already lie one after another. The new memory starts as a copy of them if `copy` is
// true. Copies are not part of the program's autograd. On a CUDA device, they are made in the current stream.
struct Flat {
  Flat(const std::vector<at::Tensor>& tensors, bool copy);
  // Copies the elements of `from`, the `tensor` of a `Flat`, to the tensors `to`.
  static void scatter(const at::Tensor& from, const std::vector<at::Tensor>& to);

  at::Tensor tensor;  // the elements begin at its `data_ptr()`; has one dimension if `is_copy`
  bool is_copy = false;
  bool is_even = true;                // whether all tensors have the same number of elements
  std::vector<std::uint64_t> counts;  // the counts that `movable` returns for each tensor
};

}  // namespace tutti_torch
