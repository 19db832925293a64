#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <tutti/c.h>

namespace tutti_torch {

// A tensor as the library's functions take it: address, count and type.
struct Elements {
  void* data = nullptr;
  std::size_t count = 0;
  tutti_data_type type = TUTTI_UINT8;
};

// For data that only moves: types that the library does not know travel as bytes.
Elements movable(const at::Tensor& tensor);
// For data that is combined: throws if `op` is not defined on the type. Complex numbers are pairs of numbers.
Elements reducible(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* name);

// `Combine` is c10d's operation converted to the library's; it frees what it made.
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

// Throws unless the tensor is dense and of the host. `name` is the operation's, "allreduce".
void check_dense(const at::Tensor& tensor, const char* name);
// Throws also if the tensor has gaps, so that its memory is its elements. Strides may be permuted
// (transposed, channels last) if they are so on all ranks, which only element by element operations can
// permit.
void check_without_gaps(const at::Tensor& tensor, const char* name);
void check_contiguous(const at::Tensor& tensor, const char* name);
void check_single(const std::vector<at::Tensor>& tensors, const char* name);
void check_same_type(const at::Tensor& a, const at::Tensor& b, const char* name);
void check_root(std::int64_t root, int size, const char* name);
// Throws unless the list has a tensor of `type_of`'s type for each rank.
void check_list(const std::vector<at::Tensor>& tensors, int size, const at::Tensor& type_of,
                const char* name);

// `Flat` is several tensors one after the other in memory. Either they lie so already, or `tensor` is a copy
// of them, if `copy`, or room for them.
struct Flat {
  Flat(const std::vector<at::Tensor>& tensors, bool copy);
  // Copies the elements back to their tensors.
  static void scatter(const at::Tensor& from, const std::vector<at::Tensor>& to);

  at::Tensor tensor;  // all elements; of one dimension if `is_copy`
  bool is_copy = false;
  bool is_even = true;                // whether all have the same number of elements
  std::vector<std::uint64_t> counts;  // for the library, of each, in elements of movable(tensor)
};

}  // namespace tutti_torch
