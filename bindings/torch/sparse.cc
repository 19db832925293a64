#include <c10/core/GradMode.h>

#include "bindings/torch/backend.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

void finish(const intrusive_ptr<Work>& work) { work->wait(); }

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
  at::Tensor own_shape = at::empty({input.dim() + 2}, at::kLong);
  std::int64_t* const own = own_shape.data_ptr<std::int64_t>();
  own[0] = input._nnz();
  own[1] = input.sparse_dim();
  std::copy(input.sizes().begin(), input.sizes().end(), own + 2);
  at::Tensor shapes = at::empty({size_, own_shape.numel()}, at::kLong);
  finish(_allgather_base(shapes, own_shape, gathering));
  for (int rank = 0; rank < size_; ++rank) {
    TORCH_CHECK(shapes[rank].narrow(0, 1, input.dim() + 1).equal(own_shape.narrow(0, 1, input.dim() + 1)),
                "Sparse dimensions do not match");
  }

  Tensors indices{input.indices().t().contiguous()};
  Tensors values{input.values().contiguous()};
  std::vector<Tensors> all_indices(1);
  std::vector<Tensors> all_values(1);
  for (int rank = 0; rank < size_; ++rank) {
    auto shape = values.front().sizes().vec();
    shape[0] = shapes[rank][0].item<std::int64_t>();
    all_indices.front().push_back(at::empty({shape[0], input.sparse_dim()}, at::kLong));
    all_values.front().push_back(at::empty(shape, values.front().options()));
  }
  finish(allgather(all_indices, indices, gathering));
  const intrusive_ptr<Work> last = allgather(all_values, values, gathering);
  finish(last);

  const at::Tensor sum = at::sparse_coo_tensor(at::cat(all_indices.front()).t(), at::cat(all_values.front()),
                                               input.sizes(), input.options())
                             .coalesce();
  tensor.copy_(sum);
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
