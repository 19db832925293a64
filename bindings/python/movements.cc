#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings/python/group.h"

namespace tutti::python {

namespace {

using Counts = std::vector<std::uint64_t>;

// Throws if this rank is the root and an argument that only the root needs is missing.
void check_root_has(const Group& group, int root, bool given, const char* missing) {
  if (group.open()->rank() == root && !given) throw Error(Status(Code::invalid_argument, missing));
}

// Issues `start(communicator, in, out)`. An array that this rank does not need is empty.
template <class Start>
Operation move(Group& group, Array from, Array to, Start start) {
  const ConstBuffer in = from.buffer();
  const Buffer out = to.buffer();
  return group.issue(kept({}, std::move(from), std::move(to)),
                     [&](Communicator& c) { return start(c, in, out); });
}

Operation broadcast(Group& group, nb::handle array, int root, const nb::kwargs& options) {
  const How how(options);
  const bool reads = group.open()->rank() == root;
  Array both = reads ? Array::to_read(array) : Array::to_write(array);
  const Buffer buffer = both.buffer();
  return group.issue(kept({}, std::move(both)),
                     [&](Communicator& c) { return c.broadcast(buffer, root, how); });
}

Operation all_gather(Group& group, nb::handle array, nb::handle out, const nb::kwargs& options) {
  const How how(options);
  if (out.is_none()) {
    Array both = Array::to_write(array);
    const Buffer buffer = both.buffer();
    return group.issue(kept({}, std::move(both)), [&](Communicator& c) { return c.all_gather(buffer, how); });
  }
  return move(group, Array::to_read(array), Array::to_write(out),
              [&](Communicator& c, ConstBuffer in, Buffer all) { return c.all_gather(in, all, how); });
}

Operation all_gather_v(Group& group, nb::handle array, nb::handle out, const Counts& counts,
                       const nb::kwargs& options) {
  const How how(options);
  return move(
      group, Array::to_read(array), Array::to_write(out),
      [&](Communicator& c, ConstBuffer in, Buffer all) { return c.all_gather_v(in, all, counts, how); });
}

Operation all_to_all(Group& group, nb::handle array, nb::handle out, const nb::kwargs& options) {
  const How how(options);
  if (out.is_none()) {
    Array both = Array::to_write(array);
    const Buffer buffer = both.buffer();
    return group.issue(kept({}, std::move(both)), [&](Communicator& c) { return c.all_to_all(buffer, how); });
  }
  return move(group, Array::to_read(array), Array::to_write(out),
              [&](Communicator& c, ConstBuffer in, Buffer all) { return c.all_to_all(in, all, how); });
}

Operation all_to_all_v(Group& group, nb::handle array, const Counts& in_counts, nb::handle out,
                       const Counts& out_counts, const nb::kwargs& options) {
  const How how(options);
  return move(group, Array::to_read(array), Array::to_write(out),
              [&](Communicator& c, ConstBuffer in, Buffer all) {
                return c.all_to_all_v(in, in_counts, all, out_counts, how);
              });
}

Operation gather(Group& group, nb::handle array, nb::handle out, int root, const nb::kwargs& options) {
  check_root_has(group, root, !out.is_none(),
                 "gather: the root needs an output: `out` must not be None there");
  const How how(options);
  return move(group, Array::to_read(array), Array::to_write_if_any(out),
              [&](Communicator& c, ConstBuffer in, Buffer all) { return c.gather(in, all, root, how); });
}

Operation gather_v(Group& group, nb::handle array, nb::handle out, const std::optional<Counts>& counts,
                   int root, const nb::kwargs& options) {
  check_root_has(
      group, root, !out.is_none() && counts.has_value(),
      "gather_v: the root needs an output and the counts: `out` and `counts` must not be None there");
  const How how(options);
  const Counts each = counts.value_or(Counts());
  return move(
      group, Array::to_read(array), Array::to_write_if_any(out),
      [&](Communicator& c, ConstBuffer in, Buffer all) { return c.gather_v(in, all, each, root, how); });
}

Operation scatter(Group& group, nb::handle array, nb::handle out, int root, const nb::kwargs& options) {
  check_root_has(group, root, !array.is_none(),
                 "scatter: the root needs an input: `array` must not be None there");
  const How how(options);
  return move(group, Array::to_read_if_any(array), Array::to_write(out),
              [&](Communicator& c, ConstBuffer in, Buffer block) { return c.scatter(in, block, root, how); });
}

Operation scatter_v(Group& group, nb::handle array, const std::optional<Counts>& counts, nb::handle out,
                    int root, const nb::kwargs& options) {
  check_root_has(
      group, root, !array.is_none() && counts.has_value(),
      "scatter_v: the root needs an input and the counts: `array` and `counts` must not be None there");
  const How how(options);
  const Counts each = counts.value_or(Counts());
  return move(
      group, Array::to_read_if_any(array), Array::to_write(out),
      [&](Communicator& c, ConstBuffer in, Buffer block) { return c.scatter_v(in, each, block, root, how); });
}

Operation barrier(Group& group, const nb::kwargs& options) {
  const How how(options);
  return group.issue({}, [&](Communicator& c) { return c.barrier(how); });
}

}  // namespace

void bind_movements(nb::class_<Group>& group) {
  const auto array = nb::arg("array").none();
  const auto out = nb::arg("out").none();
  const auto counts = nb::arg("counts").none();
  const auto root = nb::arg("root") = 0;
  const auto how = nb::arg("how");
  group.def("broadcast", &broadcast, array, root, how, "Copies the root's array to every rank.")
      .def("all_gather", &all_gather, array, nb::arg("out") = nb::none(), how,
           "Copies the arrays of rank 0, rank 1, ... to `out`. Without `out`, `array` holds a block for each "
           "rank, and this rank's block is the input.")
      .def("all_gather_v", &all_gather_v, array, out, nb::arg("counts"), how,
           "Does the same as all_gather, with counts[r] elements from rank r. The counts are the same on all "
           "ranks.")
      .def("all_to_all", &all_to_all, array, nb::arg("out") = nb::none(), how,
           "Sends block r of `array` to rank r, and receives block r of `out` from rank r. Without `out`, it "
           "works in place.")
      .def("all_to_all_v", &all_to_all_v, array, nb::arg("in_counts"), out, nb::arg("out_counts"), how,
           "Sends in_counts[r] elements to rank r, and receives out_counts[r] elements from rank r. The "
           "counts of sender and receiver must agree.")
      .def("gather", &gather, array, nb::arg("out") = nb::none(), root, how,
           "Does the same as all_gather, but only `root` gets the result. On other ranks `out` may be None.")
      .def("gather_v", &gather_v, array, nb::arg("out") = nb::none(), nb::arg("counts") = nb::none(), root,
           how, "Copies counts[r] elements of rank r to the root. Only the root needs `counts`.")
      .def("scatter", &scatter, array, out, root, how,
           "Sends block r of the root's `array` to rank r. On other ranks `array` may be None.")
      .def("scatter_v", &scatter_v, array, counts, out, root, how,
           "Copies counts[r] elements of the root to rank r. Only the root needs `counts`.")
      .def("barrier", &barrier, how,
           "Waits for all ranks: the operation ends when every rank has called `barrier`.");
}

}  // namespace tutti::python
