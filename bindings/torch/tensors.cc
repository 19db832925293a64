#include "bindings/torch/tensors.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include "bindings/torch/error.h"
#include "bindings/torch/version.h"

namespace tutti_torch {
namespace {

std::optional<tutti_data_type> data_type(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return TUTTI_INT8;
    case at::kByte:
      return TUTTI_UINT8;
    case at::kInt:
      return TUTTI_INT32;
    case at::kLong:
      return TUTTI_INT64;
    case at::kHalf:
      return TUTTI_FLOAT16;
    case at::kBFloat16:
      return TUTTI_BFLOAT16;
    case at::kFloat:
      return TUTTI_FLOAT32;
    case at::kDouble:
      return TUTTI_FLOAT64;
    case at::kBool:
      return TUTTI_BOOL;
    case at::ScalarType::Float8_e4m3fn:
      return TUTTI_FLOAT8_E4M3;
    case at::ScalarType::Float8_e5m2:
      return TUTTI_FLOAT8_E5M2;
#if TUTTI_TORCH_AT_LEAST(2, 3)
    case at::ScalarType::UInt32:
      return TUTTI_UINT32;
    case at::ScalarType::UInt64:
      return TUTTI_UINT64;
#endif
    default:
      return std::nullopt;
  }
}

std::size_t elements_per(const at::Tensor& tensor) {
  return data_type(tensor.scalar_type()) ? 1 : tensor.element_size();
}

tutti_op create_premultiplied_sum(const c10d::ReduceOp& op, const char* name) {
  const auto* supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(supplement != nullptr, "tutti: ", name, ": PREMUL_SUM has no factor");
  const double factor = supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>()
                                                            : supplement->double_factor;
  tutti_op created = nullptr;
  check(tutti_op_create_premultiplied_sum(factor, &created), name);
  return created;
}

// A `PlainOperators` keeps autograd from recording this thread's operators, and Python code from
// intercepting them. Such code would need the GIL, and a thread that holds a lock must not wait for
// the GIL.
struct PlainOperators {
  const c10::impl::ExcludeDispatchKeyGuard guard{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::python_ks};
};

// Returns views of `flat`, one for each tensor. The tensors lie one after another in `flat`.
std::vector<at::Tensor> places_in(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> places;
  std::int64_t first = 0;
  for (const at::Tensor& each : tensors) {
    places.push_back(flat.narrow(0, first, each.numel()).view(each.sizes()));
    first += each.numel();
  }
  return places;
}

}  // namespace

Elements movable(const at::Tensor& tensor) {
  return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()) * elements_per(tensor),
          data_type(tensor.scalar_type()).value_or(TUTTI_UINT8)};
}

Elements reducible(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* name) {
  Elements elements = movable(tensor);
  if (data_type(tensor.scalar_type())) return elements;
  const bool linear =
      op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG || op.op_ == c10d::ReduceOp::PREMUL_SUM;
  TORCH_CHECK(tensor.is_complex() && linear, "tutti: ", name, ": Invalid scalar type: ", tensor.scalar_type(),
              " cannot be combined by this operation");
  const at::Tensor reals = at::view_as_real(tensor);
  const auto type = data_type(reals.scalar_type());
  TORCH_CHECK(type, "tutti: ", name, ": Invalid scalar type: ", tensor.scalar_type());
  return {elements.data, static_cast<std::size_t>(reals.numel()), *type};
}

Combine::Combine(const c10d::ReduceOp& op, const char* name) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      op_ = TUTTI_SUM;
      break;
    case c10d::ReduceOp::AVG:
      op_ = TUTTI_AVG;
      break;
    case c10d::ReduceOp::PRODUCT:
      op_ = TUTTI_PRODUCT;
      break;
    case c10d::ReduceOp::MIN:
      op_ = TUTTI_MIN;
      break;
    case c10d::ReduceOp::MAX:
      op_ = TUTTI_MAX;
      break;
    case c10d::ReduceOp::BAND:
      op_ = TUTTI_BIT_AND;
      break;
    case c10d::ReduceOp::BOR:
      op_ = TUTTI_BIT_OR;
      break;
    case c10d::ReduceOp::BXOR:
      op_ = TUTTI_BIT_XOR;
      break;
    case c10d::ReduceOp::PREMUL_SUM:
      op_ = create_premultiplied_sum(op, name);
      break;
    default:
      TORCH_CHECK(false, "tutti: ", name, ": Unhandled ReduceOp");
  }
}

at::Device device_of(std::initializer_list<const std::vector<at::Tensor>*> lists, const char* name) {
  std::optional<at::Device> device;
  for (const std::vector<at::Tensor>* list : lists) {
    for (const at::Tensor& tensor : *list) {
      if (!device) device = tensor.device();
      TORCH_CHECK(tensor.device() == *device, name, ": tensors on different devices: ", *device, " and ",
                  tensor.device());
    }
  }
  return device.value_or(at::Device(at::kCPU));
}

void check_dense(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "tutti: ", name, ": only supports dense tensors, got ",
              tensor.layout());
  TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), "tutti: ", name, ": unsupported device type ",
              tensor.device());
}

void check_without_gaps(const at::Tensor& tensor, const char* name) {
  check_dense(tensor, name);
  TORCH_CHECK(tensor.is_contiguous() || tensor.is_non_overlapping_and_dense(), "tutti: ", name,
              ": Tensors must be contiguous");
}

void check_contiguous(const at::Tensor& tensor, const char* name) {
  check_dense(tensor, name);
  TORCH_CHECK(tensor.is_contiguous(), "tutti: ", name, ": Tensors must be contiguous");
}

void check_single(const std::vector<at::Tensor>& tensors, const char* name) {
  TORCH_CHECK(tensors.size() == 1, "tutti: ", name, ": requires a single-element tensor list");
}

void check_same_type(const at::Tensor& a, const at::Tensor& b, const char* name) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "tutti: ", name,
              ": tensors of different types: ", a.scalar_type(), " and ", b.scalar_type());
}

void check_root(std::int64_t root, int size, const char* name) {
  TORCH_CHECK(root >= 0 && root < size, "tutti: ", name, ": invalid root rank: ", root);
}

void check_list(const std::vector<at::Tensor>& tensors, int size, const at::Tensor& type_of,
                const char* name) {
  TORCH_CHECK(tensors.size() == static_cast<std::size_t>(size), "tutti: ", name, ": Incorrect list size ",
              tensors.size(), ". List size should be ", size, ", same as size of the process group.");
  for (const at::Tensor& tensor : tensors) {
    check_dense(tensor, name);
    check_same_type(tensor, type_of, name);
  }
}

Flat::Flat(const std::vector<at::Tensor>& tensors, bool copy) {
  std::int64_t total = 0;
  const char* end = nullptr;
  tensor = tensors.front();
  counts.reserve(tensors.size());
  for (const at::Tensor& each : tensors) {
    is_even &= each.numel() == tensors.front().numel();
    counts.push_back(static_cast<std::uint64_t>(each.numel()) * elements_per(each));
    if (each.numel() == 0) continue;  // an empty tensor has no place in memory
    if (total == 0) tensor = each;
    const bool follows = total == 0 || (each.data_ptr() == end && each.is_alias_of(tensor));
    is_copy |= !follows || !each.is_contiguous();
    end = static_cast<const char*>(each.data_ptr()) + each.nbytes();
    total += each.numel();
  }
  if (!is_copy) return;
  tensor = at::empty({total}, tensors.front().options().requires_grad(false).pinned_memory(false));
  if (!copy) return;
  const PlainOperators plain;
  const std::vector<at::Tensor> places = places_in(tensor, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) places[i].copy_(tensors[i]);
}

void Flat::scatter(const at::Tensor& from, const std::vector<at::Tensor>& to) {
  const PlainOperators plain;
  const std::vector<at::Tensor> places = places_in(from, to);
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(places[i]);
}

}  // namespace tutti_torch
