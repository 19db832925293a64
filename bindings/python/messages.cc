#include "bindings/python/group.h"

namespace tutti::python {

namespace {

Operation send(Group& group, nb::handle array, int peer, std::uint64_t tag, const nb::kwargs& options) {
  Array from = Array::to_read(array);
  const ConstBuffer in = from.buffer();
  const How how(options);
  return group.issue(kept({}, std::move(from)), [&](Communicator& c) { return c.send(in, peer, tag, how); });
}

Operation recv(Group& group, nb::handle array, int peer, std::uint64_t tag, const nb::kwargs& options) {
  Array to = Array::to_write(array);
  const Buffer out = to.buffer();
  const How how(options);
  return group.issue(kept({}, std::move(to)), [&](Communicator& c) { return c.recv(out, peer, tag, how); });
}

// Reads a transfer's attribute `name`: its peer or its tag. Throws TypeError if the attribute is
// not an integer, or if a `Number` cannot hold it.
template <class Number>
Number number(nb::handle transfer, const char* name) {
  Number value{};
  if (!nb::try_cast(transfer.attr(name), value))
    throw nb::type_error((std::string(name) + " of a transfer must be an integer in range").c_str());
  return value;
}

// Issues the transfers as one batch. tutti.Send and tutti.Recv differ by their attribute `sends`.
Operation batch(Group& group, const nb::iterable& transfers, const nb::kwargs& options) {
  Kept arrays;
  std::vector<Transfer> legs;
  for (const nb::handle transfer : transfers) {
    if (!nb::hasattr(transfer, "sends")) throw nb::type_error("transfers must be tutti.Send and tutti.Recv");
    const bool sends = nb::cast<bool>(transfer.attr("sends"));
    const nb::object array = transfer.attr("array");
    arrays.arrays.push_back(sends ? Array::to_read(array) : Array::to_write(array));
    legs.push_back({sends ? Transfer::Direction::send : Transfer::Direction::recv,
                    arrays.arrays.back().buffer(), number<int>(transfer, "peer"),
                    number<std::uint64_t>(transfer, "tag")});
  }
  const How how(options);
  return group.issue(std::move(arrays), [&](Communicator& c) { return c.batch(legs, how); });
}

}  // namespace

void bind_messages(nb::class_<Group>& group) {
  const auto how = nb::arg("how");
  group
      .def("send", &send, nb::arg("array"), nb::arg("peer"), nb::arg("tag") = 0, how,
           "Sends a message to rank `peer`. The operation ends when the array may be reused.")
      .def("recv", &recv, nb::arg("array"), nb::arg("peer") = any_rank, nb::arg("tag") = any_tag, how,
           "Receives the earliest message from rank `peer` (or any rank) with `tag` (or any tag). The array "
           "may be larger than the message.")
      .def("batch", &batch, nb::arg("transfers"), how,
           "Starts all transfers (tutti.Send and tutti.Recv) together. The operation ends with the last "
           "transfer.");
}

}  // namespace tutti::python
