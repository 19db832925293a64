#include <c10/core/GradMode.h>

#include "bindings/torch/backend.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

void finish(const intrusive_ptr<Work>& work) { work->wait(); }

// How many elements a rank has, in how many sparse dimensions, and the sizes of all dimensions.
at::Tensor shape_of(const at::Tensor& input) {
  at::Tensor shape = at::empty({input.dim() + 2}, at::kLong);
  std::int64_t* const own = shape.data_ptr<std::int64_t>();
  own[0] = input._nnz();
  own[1] = input.sparse_dim();
  std::copy(input.sizes().begin(), input.sizes().end(), own + 2);
  return shape;
}

// Memory for what every rank has of this kind. Ranks differ in the number of elements, the first size of
// `ours`.
Tensors room_for_all(const at::Tensor& ours, const at::Tensor& shapes) {
  Tensors all;
  auto sizes = ours.sizes().vec();
  for (std::int64_t rank = 0; rank < shapes.size(0); ++rank) {
    sizes[0] = shapes[rank][0].item<std::int64_t>();
    all.push_back(at::empty(sizes, ours.options()));
  }
  return all;
}

at::Tensor sum_of(const Tensors& indices, const Tensors& values, const at::Tensor& like) {
  return at::sparse_coo_tensor(at::cat(indices).t(), at::cat(values), like.sizes(), like.options())
      .coalesce();
}

}  // namespace

// The ranks' elements, gathered and added up by each rank for itself. Ranks hold different numbers of
// elements, so these are gathered first; the call therefore returns when it is over.
intrusive_ptr<Work> ProcessGroupTutti::allreduce_sparse(Tensors& tensors,
                                                        const c10d::AllreduceOptions& options) {
  check_single(tensors, "allreduce");
  at::Tensor& tensor = tensors.front();
  TORCH_CHECK(tensor.layout() == at::kSparse && tensor.device().is_cpu(),
              "tutti: allreduce: unsupported layout ", tensor.layout());
  TORCH_CHECK(options.reduceOp.op_ == c10d::ReduceOp::SUM,
              "tutti: allreduce: unsupported reduction operation "
              "(allreduce of sparse tensors only works with ReduceOp.SUM)");
  const c10::NoGradGuard no_grad;
  in_parts_ = true;
  const auto end = c10::make_scope_exit([&] { in_parts_ = false; });
  const at::Tensor input = tensor.coalesce();

  c10d::AllgatherOptions gathering;
  gathering.timeout = options.timeout;
  at::Tensor own_shape = shape_of(input);
  at::Tensor shapes = at::empty({size_, own_shape.numel()}, at::kLong);
  finish(_allgather_base(shapes, own_shape, gathering));
  for (int rank = 0; rank < size_; ++rank) {
    TORCH_CHECK(shapes[rank].narrow(0, 1, input.dim() + 1).equal(own_shape.narrow(0, 1, input.dim() + 1)),
                "Sparse dimensions do not match");
  }

  Tensors indices{input.indices().t().contiguous()};
  Tensors values{input.values().contiguous()};
  std::vector<Tensors> all_indices{room_for_all(indices.front(), shapes)};
  std::vector<Tensors> all_values{room_for_all(values.front(), shapes)};
  finish(allgather(all_indices, indices, gathering));
  finish(allgather(all_values, values, gathering));

  tensor.copy_(sum_of(all_indices.front(), all_values.front(), input));
  const Label label{c10d::OpType::_ALLREDUCE_SPARSE, "tutti:sparse_all_reduce", sequence_, options_->timeout};
  auto done = c10::make_intrusive<OperationWork>(rank_, label, tensors, tensors, Flight(), completions_);
  done->settle();
  if (coalescing_) coalesced_.push_back(done);
  return done;
}

}  // namespace tutti_torch
