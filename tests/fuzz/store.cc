// Fuzzes requests of a few clients to the store. For each request, the input has the number of a client, a
// length and a message.
#include <array>
#include <string>

#include <rendezvous/store/tcp/store.pb.h>

#include "rendezvous/store/tcp/store_service.h"
#include "rendezvous/store/tcp/wire.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

constexpr std::size_t most_stored = 16 * 1024;

void check(const store_wire::Frame& frame) {
  require(frame->size() >= store_wire::length_bytes && frame->size() <= store_wire::max_frame_bytes + 4096);
  wire::StoreResponse response;
  require(response.ParseFromString(frame->substr(store_wire::length_bytes)));
}

void serve(Input input) {
  store_wire::StoreService service(most_stored);
  std::array<store_wire::StoreService::Parked, 4> clients;
  int answers = 0;
  for (auto& client : clients) {
    client.answer = [&](const store_wire::Frame& frame) {
      check(frame);
      ++answers;
    };
  }
  while (!input.empty()) {
    const std::uint8_t who = input.byte();
    auto& client = clients[who % clients.size()];
    if (client.is_parked) {
      if (who & 4) {
        check(service.expire(client));
      } else if (who & 8) {
        service.forget(client);
      }
      continue;
    }
    if ((who & 48) == 48) service.leave(client);
    const auto request = store_wire::parse_request(std::string(input.text(input.number<std::uint16_t>())));
    if (request == nullptr) continue;
    const auto response = service.handle(*request, client);
    require((response == nullptr) == client.is_parked);
    if (response != nullptr) check(response);
  }
  for (auto& client : clients) service.leave(client);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::serve(tutti::fuzz::Input(data, size));
  return 0;
}
