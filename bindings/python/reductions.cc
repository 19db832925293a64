#include <nanobind/stl/vector.h>

#include "bindings/python/group.h"

namespace tutti::python {

namespace {

using Counts = std::vector<std::uint64_t>;

// Issues a reduction. It calls `in_place(communicator, buffer, op, options)` if there is no output,
// and otherwise `apart(communicator, in, out, op, options)`.
template <class InPlace, class Apart>
Operation reduce_by(Group& group, nb::handle array, nb::handle out, nb::handle op, const How& how,
                    InPlace in_place, Apart apart) {
  const ReduceOp with = reduction(op);
  if (out.is_none()) {
    Array both = Array::to_write(array);
    const Buffer buffer = both.buffer();
    return group.issue(kept(op, std::move(both)),
                       [&](Communicator& c) { return in_place(c, buffer, with, how); });
  }
  Array from = Array::to_read(array);
  Array to = Array::to_write(out);
  const ConstBuffer in = from.buffer();
  const Buffer result = to.buffer();
  return group.issue(kept(op, std::move(from), std::move(to)),
                     [&](Communicator& c) { return apart(c, in, result, with, how); });
}

Operation all_reduce(Group& group, nb::handle array, nb::handle out, nb::handle op,
                     const nb::kwargs& options) {
  return reduce_by(
      group, array, out, op, How(options),
      [](Communicator& c, Buffer both, const ReduceOp& with, const CallOptions& how) {
        return c.all_reduce(both, with, how);
      },
      [](Communicator& c, ConstBuffer in, Buffer result, const ReduceOp& with, const CallOptions& how) {
        return c.all_reduce(in, result, with, how);
      });
}

// Ranks other than the root need no `out`, since only the root writes it.
Operation reduce(Group& group, nb::handle array, nb::handle out, int root, nb::handle op,
                 const nb::kwargs& options) {
  if (group.open()->rank() != root) {
    const How how(options);
    const ReduceOp with = reduction(op);
    Array from = Array::to_read(array);
    const Buffer in = from.buffer();
    return group.issue(kept(op, std::move(from)),
                       [&](Communicator& c) { return c.reduce(in, with, root, how); });
  }
  return reduce_by(
      group, array, out, op, How(options),
      [root](Communicator& c, Buffer both, const ReduceOp& with, const CallOptions& how) {
        return c.reduce(both, with, root, how);
      },
      [root](Communicator& c, ConstBuffer in, Buffer result, const ReduceOp& with, const CallOptions& how) {
        return c.reduce(in, result, with, root, how);
      });
}

Operation reduce_scatter(Group& group, nb::handle array, nb::handle out, nb::handle op,
                         const nb::kwargs& options) {
  return reduce_by(
      group, array, out, op, How(options),
      [](Communicator& c, Buffer both, const ReduceOp& with, const CallOptions& how) {
        return c.reduce_scatter(both, with, how);
      },
      [](Communicator& c, ConstBuffer in, Buffer result, const ReduceOp& with, const CallOptions& how) {
        return c.reduce_scatter(in, result, with, how);
      });
}

Operation reduce_scatter_v(Group& group, nb::handle array, nb::handle out, const Counts& counts,
                           nb::handle op, const nb::kwargs& options) {
  const How how(options);
  const ReduceOp with = reduction(op);
  Array from = Array::to_read(array);
  Array to = Array::to_write(out);
  const ConstBuffer in = from.buffer();
  const Buffer block = to.buffer();
  return group.issue(kept(op, std::move(from), std::move(to)),
                     [&](Communicator& c) { return c.reduce_scatter_v(in, block, counts, with, how); });
}

Operation scan(Group& group, nb::handle array, nb::handle out, nb::handle op, const nb::kwargs& options) {
  return reduce_by(
      group, array, out, op, How(options),
      [](Communicator& c, Buffer both, const ReduceOp& with, const CallOptions& how) {
        return c.scan(both, with, how);
      },
      [](Communicator& c, ConstBuffer in, Buffer result, const ReduceOp& with, const CallOptions& how) {
        return c.scan(in, result, with, how);
      });
}

Operation exscan(Group& group, nb::handle array, nb::handle out, nb::handle op, const nb::kwargs& options) {
  return reduce_by(
      group, array, out, op, How(options),
      [](Communicator& c, Buffer both, const ReduceOp& with, const CallOptions& how) {
        return c.exscan(both, with, how);
      },
      [](Communicator& c, ConstBuffer in, Buffer result, const ReduceOp& with, const CallOptions& how) {
        return c.exscan(in, result, with, how);
      });
}

}  // namespace

void bind_reductions(nb::class_<Group>& group) {
  const auto array = nb::arg("array");
  const auto out = nb::arg("out");
  const auto op = nb::arg("op") = "sum";
  const auto how = nb::arg("how");
  group
      .def("all_reduce", &all_reduce, array, nb::arg("out") = nb::none(), op, how,
           "Reduces the arrays of all ranks. Every rank gets the result, with the same bits. Without `out`, "
           "it works in place.")
      .def("reduce", &reduce, array, nb::arg("out") = nb::none(), nb::arg("root") = 0, op, how,
           "Does the same as all_reduce, but only `root` gets the result. On other ranks nothing is written.")
      .def("reduce_scatter", &reduce_scatter, array, nb::arg("out") = nb::none(), op, how,
           "Reduces arrays that hold a block for each rank, and gives block r of the result to rank r. "
           "Without `out` the result replaces this rank's block, and the other blocks are undefined "
           "afterwards.")
      .def("reduce_scatter_v", &reduce_scatter_v, array, out, nb::arg("counts"), op, how,
           "Does the same as reduce_scatter, with counts[r] elements for rank r.")
      .def("scan", &scan, array, nb::arg("out") = nb::none(), op, how,
           "Gives rank r the reduction of the arrays of ranks 0 to r. Without `out`, it works in place.")
      .def("exscan", &exscan, array, nb::arg("out") = nb::none(), op, how,
           "Gives rank r the reduction of the arrays of ranks 0 to r-1; rank 0's output is not changed. "
           "Without `out`, it works in place.");
}

}  // namespace tutti::python
