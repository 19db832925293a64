#include "bindings/torch/backend.h"
#include "bindings/torch/error.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

constexpr const char* all_reduce_name = "tutti:all_reduce";
constexpr const char* reduce_name = "tutti:reduce";
constexpr const char* reduce_scatter_name = "tutti:reduce_scatter";
constexpr const char* reduce_scatter_base_name = "tutti:_reduce_scatter_base";

// Returns whether `part` is the memory of the rank's own block of `whole`.
bool is_own_block(const at::Tensor& part, const at::Tensor& whole, int rank) {
  return part.data_ptr() == static_cast<const char*>(whole.data_ptr()) + rank * part.nbytes();
}

}  // namespace

intrusive_ptr<Work> ProcessGroupTutti::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  check_single(tensors, "allreduce");
  const at::Tensor& tensor = tensors.front();
  if (tensor.layout() == at::kSparse) return allreduce_sparse(tensors, options);
  check_without_gaps(tensor, "allreduce");
  const Elements elements = reducible(tensor, options.reduceOp, "allreduce");
  const Combine op(options.reduceOp, "allreduce");
  return start({c10d::OpType::ALLREDUCE, all_reduce_name, options.timeout, tensors, tensors},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_all_reduce(comm(), TUTTI_IN_PLACE, elements.data, elements.count, elements.type,
                                         op.get(), call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::allreduce_coalesced(Tensors& tensors,
                                                           const c10d::AllreduceCoalescedOptions& options) {
  return start_together(c10d::OpType::ALLREDUCE_COALESCED, all_reduce_name, tensors, [&](std::size_t i) {
    Tensors one{tensors[i]};
    return allreduce(one, options);
  });
}

intrusive_ptr<Work> ProcessGroupTutti::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_single(tensors, "reduce");
  check_root(options.rootRank, size_, "reduce");
  check_without_gaps(tensors.front(), "reduce");
  const Elements elements = reducible(tensors.front(), options.reduceOp, "reduce");
  const Combine op(options.reduceOp, "reduce");
  return start({c10d::OpType::REDUCE, reduce_name, options.timeout, tensors, tensors},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_reduce(comm(), TUTTI_IN_PLACE, elements.data, elements.count, elements.type,
                                     op.get(), static_cast<int>(options.rootRank), call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                            const c10d::ReduceScatterOptions& options) {
  check_contiguous(output, "_reduce_scatter_base");
  check_dense(input, "_reduce_scatter_base");
  check_same_type(output, input, "_reduce_scatter_base");
  TORCH_CHECK(input.numel() == output.numel() * size_,
              "tutti: _reduce_scatter_base: input tensor size must be equal to output size times world size");
  const at::Tensor whole = input.contiguous();
  const Elements to = reducible(output, options.reduceOp, "_reduce_scatter_base");
  const Combine op(options.reduceOp, "_reduce_scatter_base");
  const bool in_place = is_own_block(output, whole, rank_);
  return start({c10d::OpType::_REDUCE_SCATTER_BASE,
                reduce_scatter_base_name,
                options.timeout,
                {input},
                {output},
                {whole}},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_reduce_scatter(comm(), in_place ? TUTTI_IN_PLACE : whole.data_ptr(),
                                             in_place ? whole.data_ptr() : to.data, to.count, to.type,
                                             op.get(), call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                      const c10d::ReduceScatterOptions& options) {
  check_single(outputs, "reduce_scatter");
  TORCH_CHECK(inputs.size() == 1, "tutti: reduce_scatter: requires a single-element input list");
  const at::Tensor& output = outputs.front();
  check_contiguous(output, "reduce_scatter");
  check_list(inputs.front(), size_, output, "reduce_scatter");
  TORCH_CHECK(inputs.front()[rank_].numel() == output.numel(),
              "tutti: reduce_scatter: the output must be as large as this rank's input");
  const Flat from(inputs.front(), true);
  const Elements to = reducible(output, options.reduceOp, "reduce_scatter");
  const Combine op(options.reduceOp, "reduce_scatter");
  // A reduction counts a complex number as two elements, but `from.counts` counts its bytes.
  std::vector<std::uint64_t> counts;
  for (const at::Tensor& each : inputs.front()) {
    counts.push_back(reducible(each, options.reduceOp, "reduce_scatter").count);
  }
  return start({c10d::OpType::REDUCE_SCATTER,
                reduce_scatter_name,
                options.timeout,
                inputs.front(),
                {output},
                {from.tensor}},
               [&](const tutti_call_options* call, tutti_work** work) {
                 const void* const in = from.tensor.data_ptr();
                 return from.is_even ? tutti_reduce_scatter(comm(), in, to.data, to.count, to.type, op.get(),
                                                            call, work)
                                     : tutti_reduce_scatter_v(comm(), in, to.data, counts.data(), to.type,
                                                              op.get(), call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(),
              "tutti: reduce_scatter_tensor_coalesced: requires lists of the same length");
  return start_together(c10d::OpType::_REDUCE_SCATTER_BASE, reduce_scatter_base_name, inputs,
                        [&](std::size_t i) { return _reduce_scatter_base(outputs[i], inputs[i], options); });
}

}  // namespace tutti_torch
