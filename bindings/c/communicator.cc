#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <tutti/c.h>

#include "bindings/c/handles.h"

using namespace tutti::c;

namespace tutti::c {

How call_options(const tutti_call_options* options) {
  const tutti_call_options given = known_part<tutti_call_options>(options, TUTTI_CALL_OPTIONS_INIT);
  How how;
  how.timeout = duration(given.timeout_ns);
  if (given.algorithm != nullptr) how.algorithm = given.algorithm;
  how.stream = given.stream;
  how.region = given.region;
  how.memory = memory(given.memory, given.device);
  return how;
}

}  // namespace tutti::c

void tutti_comm_free(tutti_comm* comm) { delete comm; }

int tutti_comm_rank(const tutti_comm* comm) { return comm->communicator.rank(); }

int tutti_comm_size(const tutti_comm* comm) { return comm->communicator.size(); }

int tutti_comm_status(const tutti_comm* comm) {
  return guarded([&] {
    const tutti::Status status = checked(comm, "the communicator").communicator.status();
    if (!status.ok()) throw tutti::Error(status);
  });
}

int tutti_comm_abort(tutti_comm* comm, const char* reason) {
  return guarded([&] {
    checked(comm, "the communicator").communicator.abort(reason == nullptr ? "no reason given" : reason);
  });
}

size_t tutti_comm_describe(const tutti_comm* comm, int rank, char* text, size_t size) {
  std::string described;
  guarded([&] {
    const tutti::Communicator& communicator = checked(comm, "the communicator").communicator;
    if (rank < 0 || rank >= communicator.size()) throw invalid("there is no rank " + std::to_string(rank));
    described = communicator.describe(rank);
  });
  if (text != nullptr && size != 0) {
    const size_t fits = std::min(described.size(), size - 1);
    std::memcpy(text, described.data(), fits);
    text[fits] = '\0';
  }
  return described.size();
}

int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part) {
  return guarded([&] {
    checked(part, "the output pointer for the communicator") = nullptr;
    std::optional<tutti::Communicator> made =
        checked(comm, "the communicator").communicator.split(color, key);
    if (made) *part = new tutti_comm{*std::move(made)};
  });
}

int tutti_comm_group(tutti_comm* comm, const int* ranks, size_t count, int key,
                     const tutti_call_options* options, tutti_comm** group) {
  return guarded([&] {
    checked(group, "the output pointer for the communicator") = nullptr;
    if (ranks == nullptr && count != 0) throw invalid("the list of ranks is null");
    tutti::Communicator& from = checked(comm, "the communicator").communicator;
    *group = new tutti_comm{from.group({ranks, count}, key, call_options(options))};
  });
}

int tutti_comm_shrink(tutti_comm* comm, int min_size, tutti_comm** survivors, uint64_t* completed) {
  return guarded([&] {
    checked(survivors, "the output pointer for the communicator") = nullptr;
    if (completed != nullptr) *completed = 0;
    tutti::Shrunk shrunk = checked(comm, "the communicator").communicator.shrink(min_size);
    if (completed != nullptr) *completed = shrunk.completed;
    *survivors = new tutti_comm{std::move(shrunk.communicator)};
  });
}

int tutti_comm_statistics(const tutti_comm* comm, tutti_statistics* statistics) {
  return guarded([&] {
    const tutti::Communicator::Statistics all = checked(comm, "the communicator").communicator.statistics();
    tutti_statistics told = TUTTI_STATISTICS_INIT;
    told.operations = all.operations;
    told.registered_operations = all.registered_operations;
    told.messages_sent = all.messages_sent;
    told.messages_received = all.messages_received;
    told.frames_sent = all.frames_sent;
    told.bytes_sent = all.bytes_sent;
    told.bytes_received = all.bytes_received;
    told.connections = static_cast<uint64_t>(all.connections);
    told.bytes_in_place = all.bytes_in_place;
    fill(statistics, told);
  });
}

int tutti_comm_descriptor(const tutti_comm* comm) { return comm->communicator.descriptor(); }

int tutti_comm_progress(tutti_comm* comm) { return comm->communicator.progress() ? 1 : 0; }

int tutti_allocate(tutti_comm* comm, size_t bytes, tutti_allocation** allocation) {
  return tutti_allocate_with(comm, bytes, nullptr, allocation);
}

int tutti_allocate_with(tutti_comm* comm, size_t bytes, const tutti_allocation_options* options,
                        tutti_allocation** allocation) {
  return guarded([&] {
    checked(allocation, "the output pointer for the allocation") = nullptr;
    const auto how = known_part<tutti_allocation_options>(options, TUTTI_ALLOCATION_OPTIONS_INIT);
    const tutti::Memory where = memory(how.memory, how.device);
    tutti::Allocation made = checked(comm, "the communicator").communicator.allocate(bytes, where);
    *allocation = new tutti_allocation{std::move(made)};
  });
}

void* tutti_allocation_data(const tutti_allocation* allocation) { return allocation->allocation.data(); }

size_t tutti_allocation_size(const tutti_allocation* allocation) { return allocation->allocation.bytes(); }

int tutti_allocation_registered(const tutti_allocation* allocation) {
  return allocation->allocation.registered() ? 1 : 0;
}

void tutti_allocation_free(tutti_allocation* allocation) { delete allocation; }

int tutti_register_memory(tutti_comm* comm, void* data, size_t bytes, tutti_registration** registration) {
  return guarded([&] {
    checked(registration, "the output pointer for the registration") = nullptr;
    if (bytes != 0 && data == nullptr) throw invalid("the memory is null");
    const std::span<std::byte> memory(static_cast<std::byte*>(data), bytes);
    *registration =
        new tutti_registration{checked(comm, "the communicator").communicator.register_memory(memory)};
  });
}

void tutti_registration_free(tutti_registration* registration) { delete registration; }
