#include <c10/core/GradMode.h>

#include "bindings/torch/backend.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

// Returns the shape of a sparse tensor as numbers that can be gathered. The first of these numbers counts the
// elements that the tensor stores. Only this number may differ from rank to rank.
at::Tensor shape_of(const at::Tensor& sparse) {
  at::Tensor shape = at::empty({sparse.dim() + 2}, at::kLong);
  std::int64_t* const numbers = shape.data_ptr<std::int64_t>();
  numbers[0] = sparse._nnz();
  numbers[1] = sparse.sparse_dim();
  std::copy(sparse.sizes().begin(), sparse.sizes().end(), numbers + 2);
  return shape;
}

// Allocates one tensor for each rank, to receive that rank's counterpart of `own`. Only the size of dimension
// 0 differs between ranks.
Tensors rooms(const at::Tensor& own, const at::Tensor& shapes) {
  Tensors all;
  for (std::int64_t rank = 0; rank < shapes.size(0); ++rank) {
    auto shape = own.sizes().vec();
    shape[0] = shapes[rank][0].item<std::int64_t>();
    all.push_back(at::empty(shape, own.options()));
  }
  return all;
}

// Returns the sum of all ranks' tensors. Each rank gathers the tensors and adds them itself. The tensors
// store different numbers of elements, so these numbers are gathered first.
at::Tensor sum_of_all(ProcessGroupTutti& group, const at::Tensor& input, std::chrono::milliseconds timeout) {
  c10d::AllgatherOptions gathering;
  gathering.timeout = timeout;
  at::Tensor own_shape = shape_of(input);
  at::Tensor shapes = at::empty({group.getSize(), own_shape.numel()}, at::kLong);
  group._allgather_base(shapes, own_shape, gathering)->wait();
  for (int rank = 0; rank < group.getSize(); ++rank) {
    TORCH_CHECK(shapes[rank].narrow(0, 1, input.dim() + 1).equal(own_shape.narrow(0, 1, input.dim() + 1)),
                "Sparse dimensions do not match");
  }
  Tensors indices{input.indices().t().contiguous()};
  Tensors values{input.values().contiguous()};
  std::vector<Tensors> all_indices{rooms(indices.front(), shapes)};
  std::vector<Tensors> all_values{rooms(values.front(), shapes)};
  group.allgather(all_indices, indices, gathering)->wait();
  group.allgather(all_values, values, gathering)->wait();
  return at::sparse_coo_tensor(at::cat(all_indices.front()).t(), at::cat(all_values.front()), input.sizes(),
                               input.options())
      .coalesce();
}

}  // namespace

// Blocks until the operation has ended.
intrusive_ptr<Work> ProcessGroupTutti::allreduce_sparse(Tensors& tensors,
                                                        const c10d::AllreduceOptions& options) {
  check_single(tensors, "allreduce");
  at::Tensor& tensor = tensors.front();
  TORCH_CHECK(tensor.layout() == at::kSparse, "tutti: allreduce: unsupported layout ", tensor.layout());
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.is_cpu(), "tutti: allreduce: a sparse tensor must be in host memory, not on ", tensor.device());
  TORCH_CHECK(options.reduceOp.op_ == c10d::ReduceOp::SUM,
              "tutti: allreduce: unsupported reduction operation "
              "(allreduce of sparse tensors only works with ReduceOp.SUM)");
  const c10::NoGradGuard no_grad;
  in_parts_ = true;
  const auto end = c10::make_scope_exit([&] { in_parts_ = false; });
  tensor.copy_(sum_of_all(*this, tensor.coalesce(), options.timeout));
  Label label;
  label.type = c10d::OpType::_ALLREDUCE_SPARSE;
  label.name = "tutti:sparse_all_reduce";
  label.sequence = sequence_;
  label.timeout = options_->timeout;
  auto done = c10::make_intrusive<OperationWork>(rank_, label, tensors, tensors, Flight(), completions_);
  done->settle();
  if (coalescing_) coalesced_.push_back(done);
  return done;
}

}  // namespace tutti_torch
