#include <span>
#include <vector>

#include <tutti/c.h>

#include "bindings/c/handles.h"

using namespace tutti;
using namespace tutti::c;

namespace {

Transfer::Direction direction_of(const tutti_transfer& transfer) {
  if (transfer.direction == TUTTI_SEND) return Transfer::Direction::send;
  if (transfer.direction == TUTTI_RECV) return Transfer::Direction::recv;
  throw invalid("a transfer neither sends nor receives");
}

}  // namespace

int tutti_send(tutti_comm* comm, const void* data, size_t count, tutti_data_type type, int peer, uint64_t tag,
               const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    return communicator.send(ConstBuffer(data, count, data_type(type), how.memory), peer, tag, how);
  });
}

int tutti_recv(tutti_comm* comm, void* data, size_t count, tutti_data_type type, int peer, uint64_t tag,
               const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    return communicator.recv(Buffer(data, count, data_type(type), how.memory), peer, tag, how);
  });
}

int tutti_batch(tutti_comm* comm, const tutti_transfer* transfers, size_t count,
                const tutti_call_options* options, tutti_work** work) {
  return issue(comm, options, work, [&](Communicator& communicator, const How& how) {
    if (count != 0) checked(transfers, "the array of transfers");
    std::vector<Transfer> legs;
    for (const tutti_transfer& leg : std::span(transfers, count)) {
      legs.push_back({direction_of(leg), Buffer(leg.data, leg.count, data_type(leg.type), how.memory),
                      leg.peer, leg.tag});
    }
    return communicator.batch(legs, how);
  });
}
