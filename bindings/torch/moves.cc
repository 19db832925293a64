#include "bindings/torch/backend.h"
#include "bindings/torch/error.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

constexpr const char* all_gather_name = "tutti:all_gather";
constexpr const char* all_gather_base_name = "tutti:_all_gather_base";

// Returns the number of elements of each part when dimension 0 is split by `splits`. All parts have
// equal size if `splits` is empty.
std::vector<std::uint64_t> split_counts(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                        int size) {
  const Elements all = movable(tensor);
  if (splits.empty()) {
    TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) % size == 0,
                "Tensor's dim 0 does not divide equally across group size");
    return std::vector<std::uint64_t>(size, all.count / size);
  }
  TORCH_CHECK(splits.size() == static_cast<std::size_t>(size),
              "Number of tensor splits not equal to group size");
  std::int64_t sum = 0;
  std::vector<std::uint64_t> counts;
  for (const std::int64_t split : splits) {
    TORCH_CHECK(split >= 0, "Split sizes must not be negative");
    sum += split;
    counts.push_back(tensor.size(0) == 0 ? 0 : all.count / tensor.size(0) * split);
  }
  TORCH_CHECK(sum == tensor.size(0), "Split sizes doesn't match total dim 0 size");
  return counts;
}

}  // namespace

intrusive_ptr<Work> ProcessGroupTutti::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  check_single(tensors, "broadcast");
  check_root(options.rootRank, size_, "broadcast");
  check_without_gaps(tensors.front(), "broadcast");
  const Elements elements = movable(tensors.front());
  return start({c10d::OpType::BROADCAST, "tutti:broadcast", options.timeout, tensors, tensors},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_broadcast(comm(), elements.data, elements.count, elements.type,
                                        static_cast<int>(options.rootRank), call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                 const c10d::AllgatherOptions& options) {
  check_single(inputs, "allgather");
  TORCH_CHECK(outputs.size() == 1, "tutti: allgather: requires a single-element output list");
  const Tensors& list = outputs.front();
  check_dense(inputs.front(), "allgather");
  check_list(list, size_, inputs.front(), "allgather");
  TORCH_CHECK(list[rank_].numel() == inputs.front().numel(),
              "tutti: allgather: invalid tensor size: this rank's output must be as large as its input");
  const at::Tensor own = inputs.front().contiguous();
  const Elements in = movable(own);
  const Flat flat(list, false);
  std::function<void()> epilogue;
  if (flat.is_copy) epilogue = [from = flat.tensor, list] { Flat::scatter(from, list); };
  void* const out = flat.tensor.data_ptr();
  const bool in_place = flat.is_even && in.data == static_cast<char*>(out) + rank_ * own.nbytes();
  return start({c10d::OpType::ALLGATHER,
                all_gather_name,
                options.timeout,
                inputs,
                list,
                {own, flat.tensor},
                std::move(epilogue)},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return flat.is_even ? tutti_all_gather(comm(), in_place ? TUTTI_IN_PLACE : in.data, out,
                                                        in.count, in.type, call, work)
                                     : tutti_all_gather_v(comm(), in.data, out, flat.counts.data(), in.type,
                                                          call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                       const c10d::AllgatherOptions& options) {
  check_contiguous(output, "_allgather_base");
  check_dense(input, "_allgather_base");
  check_same_type(output, input, "_allgather_base");
  TORCH_CHECK(
      output.numel() == input.numel() * size_,
      "tutti: _allgather_base: output tensor size must be equal to world_size times input tensor size");
  const at::Tensor own = input.contiguous();
  const Elements in = movable(own);
  char* const out = static_cast<char*>(output.data_ptr());
  const bool in_place = in.data == out + rank_ * own.nbytes();
  return start(
      {c10d::OpType::_ALLGATHER_BASE, all_gather_base_name, options.timeout, {input}, {output}, {own}},
      [&](const tutti_call_options* call, tutti_work** work) {
        return tutti_all_gather(comm(), in_place ? TUTTI_IN_PLACE : in.data, out, in.count, in.type, call,
                                work);
      });
}

// Sets outputs[r][i] to rank r's inputs[i].
intrusive_ptr<Work> ProcessGroupTutti::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                           const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(size_),
              "tutti: allgather_coalesced: output lists should be equal to world size");
  return start_together(c10d::OpType::ALLGATHER_COALESCED, all_gather_name, inputs, [&](std::size_t i) {
    std::vector<Tensors> to(1);
    for (const Tensors& list : outputs) {
      TORCH_CHECK(list.size() == inputs.size(), "tutti: allgather_coalesced: invalid output size");
      to.front().push_back(list[i]);
    }
    Tensors from{inputs[i]};
    return allgather(to, from, options);
  });
}

intrusive_ptr<Work> ProcessGroupTutti::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(),
              "tutti: allgather_into_tensor_coalesced: requires lists of the same length");
  return start_together(c10d::OpType::COALESCED, all_gather_base_name, inputs,
                        [&](std::size_t i) { return _allgather_base(outputs[i], inputs[i], options); });
}

intrusive_ptr<Work> ProcessGroupTutti::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::GatherOptions& options) {
  check_single(inputs, "gather");
  check_root(options.rootRank, size_, "gather");
  check_dense(inputs.front(), "gather");
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor own = inputs.front().contiguous();
  const Elements in = movable(own);
  Plan plan{c10d::OpType::GATHER, "tutti:gather", options.timeout, inputs, {}, {own}};
  if (rank_ != root) {
    TORCH_CHECK(outputs.empty(), "tutti: gather: requires empty output on non-root");
    return start(std::move(plan), [&](const tutti_call_options* call, tutti_work** work) {
      return tutti_gather(comm(), in.data, nullptr, in.count, in.type, root, call, work);
    });
  }
  TORCH_CHECK(outputs.size() == 1, "tutti: gather: requires a single-element output list");
  const Tensors& list = outputs.front();
  check_list(list, size_, own, "gather");
  const Flat flat(list, false);
  TORCH_CHECK(flat.is_even && list.front().numel() == own.numel(),
              "tutti: gather: invalid tensor size: all outputs must be as large as the input");
  if (flat.is_copy) plan.epilogue = [from = flat.tensor, list] { Flat::scatter(from, list); };
  plan.outputs = list;
  plan.memory.push_back(flat.tensor);
  return start(std::move(plan), [&](const tutti_call_options* call, tutti_work** work) {
    return tutti_gather(comm(), in.data, flat.tensor.data_ptr(), in.count, in.type, root, call, work);
  });
}

intrusive_ptr<Work> ProcessGroupTutti::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                               const c10d::ScatterOptions& options) {
  check_single(outputs, "scatter");
  check_root(options.rootRank, size_, "scatter");
  check_contiguous(outputs.front(), "scatter");
  const int root = static_cast<int>(options.rootRank);
  const Elements out = movable(outputs.front());
  if (rank_ != root) {
    TORCH_CHECK(inputs.empty(), "tutti: scatter: requires empty input on non-root");
    return start({c10d::OpType::SCATTER, "tutti:scatter", options.timeout, {}, outputs},
                 [&](const tutti_call_options* call, tutti_work** work) {
                   return tutti_scatter(comm(), nullptr, out.data, out.count, out.type, root, call, work);
                 });
  }
  TORCH_CHECK(inputs.size() == 1, "tutti: scatter: requires a single-element input list");
  check_list(inputs.front(), size_, outputs.front(), "scatter");
  const Flat flat(inputs.front(), true);
  TORCH_CHECK(flat.is_even && inputs.front().front().numel() == outputs.front().numel(),
              "tutti: scatter: invalid tensor size: all inputs must be as large as the output");
  return start(
      {c10d::OpType::SCATTER, "tutti:scatter", options.timeout, inputs.front(), outputs, {flat.tensor}},
      [&](const tutti_call_options* call, tutti_work** work) {
        return tutti_scatter(comm(), flat.tensor.data_ptr(), out.data, out.count, out.type, root, call, work);
      });
}

intrusive_ptr<Work> ProcessGroupTutti::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                     std::vector<std::int64_t>& output_splits,
                                                     std::vector<std::int64_t>& input_splits,
                                                     const c10d::AllToAllOptions& options) {
  check_contiguous(output, "alltoall_base");
  check_contiguous(input, "alltoall_base");
  check_same_type(output, input, "alltoall_base");
  const Elements in = movable(input);
  const Elements out = movable(output);
  const auto in_counts = split_counts(input, input_splits, size_);
  const auto out_counts = split_counts(output, output_splits, size_);
  const bool even = output_splits.empty() && input_splits.empty();
  TORCH_CHECK(!even || in.count == out.count,
              "tutti: alltoall_base: expected tensors of the same size where there are no split sizes");
  return start({c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all", options.timeout, {input}, {output}, {input}},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return even ? tutti_all_to_all(comm(), in.data, out.data, in_counts.front(), in.type, call,
                                                work)
                             : tutti_all_to_all_v(comm(), in.data, in_counts.data(), out.data,
                                                  out_counts.data(), in.type, call, work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::alltoall(Tensors& outputs, Tensors& inputs,
                                                const c10d::AllToAllOptions& options) {
  TORCH_CHECK(!outputs.empty() && !inputs.empty(), "tutti: alltoall: requires non-empty tensor lists");
  check_list(inputs, size_, outputs.front(), "alltoall");
  check_list(outputs, size_, outputs.front(), "alltoall");
  const Flat from(inputs, true);
  const Flat to(outputs, false);
  std::function<void()> epilogue;
  if (to.is_copy) epilogue = [flat = to.tensor, outputs] { Flat::scatter(flat, outputs); };
  const tutti_data_type type = movable(outputs.front()).type;
  return start({c10d::OpType::ALLTOALL,
                "tutti:all_to_all",
                options.timeout,
                inputs,
                outputs,
                {from.tensor, to.tensor},
                std::move(epilogue)},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_all_to_all_v(comm(), from.tensor.data_ptr(), from.counts.data(),
                                           to.tensor.data_ptr(), to.counts.data(), type, call, work);
               });
}

// The library's barrier does not follow streams. So a group that uses a CUDA device first waits for
// the work in its current stream, as NCCL does. The group remembers the device, because torch does
// not always pass it.
intrusive_ptr<Work> ProcessGroupTutti::barrier(const c10d::BarrierOptions& options) {
  std::optional<at::Device> device;
  if (options.device && options.device->is_cuda()) device = *options.device;
  if (!options.device_ids.empty())
    device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(options.device_ids.front()));
  wait_for_stream(device);
  return start(
      {c10d::OpType::BARRIER, "tutti:barrier", options.timeout, {}, {}},
      [&](const tutti_call_options* call, tutti_work** work) { return tutti_barrier(comm(), call, work); });
}

}  // namespace tutti_torch
