#include <cstdint>
#include <limits>
#include <span>

#include <tutti/c.h>

#include "bindings/c/handles.h"

using namespace tutti;
using namespace tutti::c;

namespace {

bool in_place(const void* in) { return in == TUTTI_IN_PLACE; }

void refuse_in_place(const void* in) {
  if (in_place(in)) throw invalid("this operation has no in-place form");
}

// Returns a buffer of `count` elements at `in`. It has the type and the kind of memory of `out`.
ConstBuffer input(const void* in, std::size_t count, const Buffer& out) {
  return {in, count, out.type, out.memory};
}

// Returns the total number of elements if each rank has `count`, or the largest `size_t` if that
// number overflows.
std::size_t blocks(const Communicator& communicator, std::size_t count) {
  const auto size = static_cast<std::size_t>(communicator.size());
  return count > std::numeric_limits<std::size_t>::max() / size ? std::numeric_limits<std::size_t>::max()
                                                                : count * size;
}

std::span<const std::uint64_t> counts_of(const Communicator& communicator, const std::uint64_t* counts) {
  return {&checked(counts, "the array of counts"), static_cast<std::size_t>(communicator.size())};
}

// Returns the counts of all ranks if this rank is the root. Other ranks do not use `counts`, and get an empty
// result.
std::span<const std::uint64_t> counts_at(const Communicator& communicator, const std::uint64_t* counts,
                                         int root) {
  if (communicator.rank() != root) return {};
  return counts_of(communicator, counts);
}

std::size_t total(std::span<const std::uint64_t> counts) {
  std::size_t sum = 0;
  for (const std::uint64_t count : counts) {
    if (count > std::numeric_limits<std::size_t>::max() - sum) return std::numeric_limits<std::size_t>::max();
    sum += count;
  }
  return sum;
}

std::size_t own(const Communicator& communicator, std::span<const std::uint64_t> counts) {
  return counts[static_cast<std::size_t>(communicator.rank())];
}

}  // namespace

int tutti_all_reduce(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                     tutti_op op, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer whole(out, count, data_type(type), how.memory);
    if (in_place(in)) return communicator.all_reduce(whole, reduce_op(op), how);
    return communicator.all_reduce(input(in, count, whole), whole, reduce_op(op), how);
  });
}

int tutti_reduce(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type, tutti_op op,
                 int root, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer whole(out, count, data_type(type), how.memory);
    if (in_place(in)) return communicator.reduce(whole, reduce_op(op), root, how);
    return communicator.reduce(input(in, count, whole), whole, reduce_op(op), root, how);
  });
}

int tutti_broadcast(tutti_comm* comm, void* in_out, size_t count, tutti_data_type type, int root,
                    const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    return communicator.broadcast(Buffer(in_out, count, data_type(type), how.memory), root, how);
  });
}

int tutti_all_gather(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                     const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer all(out, blocks(communicator, count), data_type(type), how.memory);
    if (in_place(in)) return communicator.all_gather(all, how);
    return communicator.all_gather(input(in, count, all), all, how);
  });
}

int tutti_all_gather_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                       tutti_data_type type, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const auto each = counts_of(communicator, counts);
    const Buffer all(out, total(each), data_type(type), how.memory);
    return communicator.all_gather_v(input(in, own(communicator, each), all), all, each, how);
  });
}

int tutti_reduce_scatter(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                         tutti_op op, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const std::size_t all = blocks(communicator, count);
    const Buffer block(out, count, data_type(type), how.memory);
    if (in_place(in))
      return communicator.reduce_scatter(Buffer(out, all, block.type, how.memory), reduce_op(op), how);
    return communicator.reduce_scatter(input(in, all, block), block, reduce_op(op), how);
  });
}

int tutti_reduce_scatter_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                           tutti_data_type type, tutti_op op, const tutti_call_options* options,
                           tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const auto each = counts_of(communicator, counts);
    const Buffer block(out, own(communicator, each), data_type(type), how.memory);
    const ConstBuffer all = input(in, total(each), block);
    return communicator.reduce_scatter_v(all, block, each, reduce_op(op), how);
  });
}

int tutti_all_to_all(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                     const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer all(out, blocks(communicator, count), data_type(type), how.memory);
    if (in_place(in)) return communicator.all_to_all(all, how);
    return communicator.all_to_all(input(in, all.count, all), all, how);
  });
}

int tutti_all_to_all_v(tutti_comm* comm, const void* in, const uint64_t* in_counts, void* out,
                       const uint64_t* out_counts, tutti_data_type type, const tutti_call_options* options,
                       tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const auto given = counts_of(communicator, in_counts);
    const auto taken = counts_of(communicator, out_counts);
    const Buffer whole(out, total(taken), data_type(type), how.memory);
    return communicator.all_to_all_v(input(in, total(given), whole), given, whole, taken, how);
  });
}

int tutti_gather(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type, int root,
                 const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const Buffer all(out, blocks(communicator, count), data_type(type), how.memory);
    return communicator.gather(input(in, count, all), all, root, how);
  });
}

int tutti_gather_v(tutti_comm* comm, const void* in, size_t in_count, void* out, const uint64_t* counts,
                   tutti_data_type type, int root, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const auto each = counts_at(communicator, counts, root);
    const Buffer all(out, total(each), data_type(type), how.memory);
    return communicator.gather_v(input(in, in_count, all), all, each, root, how);
  });
}

int tutti_scatter(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type, int root,
                  const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const Buffer block(out, count, data_type(type), how.memory);
    const ConstBuffer all = input(in, blocks(communicator, count), block);
    return communicator.scatter(all, block, root, how);
  });
}

int tutti_scatter_v(tutti_comm* comm, const void* in, const uint64_t* counts, void* out, size_t out_count,
                    tutti_data_type type, int root, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    refuse_in_place(in);
    const auto each = counts_at(communicator, counts, root);
    const Buffer block(out, out_count, data_type(type), how.memory);
    return communicator.scatter_v(input(in, total(each), block), each, block, root, how);
  });
}

int tutti_scan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type, tutti_op op,
               const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer whole(out, count, data_type(type), how.memory);
    if (in_place(in)) return communicator.scan(whole, reduce_op(op), how);
    return communicator.scan(input(in, count, whole), whole, reduce_op(op), how);
  });
}

int tutti_exscan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type, tutti_op op,
                 const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    const Buffer whole(out, count, data_type(type), how.memory);
    if (in_place(in)) return communicator.exscan(whole, reduce_op(op), how);
    return communicator.exscan(input(in, count, whole), whole, reduce_op(op), how);
  });
}

int tutti_barrier(tutti_comm* comm, const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work,
               [](Communicator& communicator, const How& how) { return communicator.barrier(how); });
}
