#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/c.h>
#include <tutti/init.h>

#include "bindings/c/handles.h"
#include "bindings/c/store.h"

using namespace tutti::c;

namespace {

// Splits a list such as "shm,tcp".
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) names.emplace_back(list.substr(0, comma));
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return names;
}

tutti::InitOptions init_options(const tutti_init_options* options) {
  const tutti_init_options given = known_part<tutti_init_options>(options, TUTTI_INIT_OPTIONS_INIT);
  tutti::InitOptions how;
  if (given.url != nullptr) how.url = given.url;
  if (given.rank >= 0) how.rank = given.rank;
  if (given.world_size >= 0) how.world_size = given.world_size;
  how.timeout = duration(given.timeout_ns);
  if (given.transports != nullptr) how.transports = names_in(given.transports);
  if (given.interrupted != nullptr) {
    how.interrupted = [given] { return given.interrupted(given.interrupted_state) != 0; };
  }
  return how;
}

}  // namespace

int tutti_init(const tutti_init_options* options, tutti_comm** comm) {
  return guarded([&] {
    checked(comm, "the output pointer for the communicator") = nullptr;
    *comm = new tutti_comm{tutti::init(init_options(options))};
  });
}

int tutti_place(const tutti_init_options* options, int* rank, int* world_size) {
  return guarded([&] {
    const tutti::Placement place = tutti::placement(init_options(options));
    checked(rank, "the output pointer for the rank") = place.rank;
    checked(world_size, "the output pointer for the world size") = place.world_size;
  });
}

int tutti_init_store(const tutti_store* store, int rank, int world_size, const tutti_init_options* options,
                     tutti_comm** comm) {
  return guarded([&] {
    checked(comm, "the output pointer for the communicator") = nullptr;
    *comm = new tutti_comm{
        tutti::init(make_store(checked(store, "the store")), rank, world_size, init_options(options))};
  });
}
