// Fuzzes the answers to a client of the store: a greeting, and then an answer to each call. Any
// process at the store's address may send them. All of these bytes are in the socket before the
// client makes its first request.
#include "rendezvous/store/tcp/store_client.h"

#include <string>
#include <vector>

#include <rendezvous/store/tcp/store.pb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/store/tcp/wire.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

constexpr std::size_t most_calls = 32;

std::string greeting(Input& input) {
  if (input.byte() % 4 == 0) return std::string(input.text(input.byte()));
  store_wire::ServerHello hello;
  hello.version = store_wire::little_endian16(hello.version);
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

std::string made_response(Input& input) {
  wire::StoreResponse response;
  const std::uint8_t what = input.byte();
  if ((what & 1) != 0) response.set_code(input.number<std::uint16_t>());
  if ((what & 2) != 0) response.set_message(std::string(input.text(input.byte())));
  if ((what & 4) != 0) response.set_number(input.number<std::int64_t>());
  for (int i = what / 16 % 4; i > 0; --i) response.add_values(std::string(input.text(input.byte())));
  for (int i = what / 64 % 4; i > 0; --i) response.add_missing(std::string(input.text(input.byte())));
  return response.SerializeAsString();
}

std::string answer(Input& input) {
  const std::uint8_t how = input.byte();
  if (how % 4 == 0) return std::string(input.text(input.byte()));
  const std::string body =
      how % 4 == 1 ? std::string(input.text(input.number<std::uint16_t>())) : made_response(input);
  const std::uint32_t length = store_wire::little_endian32(static_cast<std::uint32_t>(body.size()));
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + body;
}

void call(Store& store, std::uint8_t which) {
  const Deadline now = Deadline::after(std::chrono::nanoseconds(0));
  const std::vector<std::string> keys(which / 8 % 4, "k");
  switch (which % 8) {
    case 0:
      return static_cast<void>(store.set("k", "v", now));
    case 1:
      return static_cast<void>(store.get("k", now));
    case 2:
      return static_cast<void>(store.wait(keys, now));
    case 3:
      return static_cast<void>(store.add("k", 1, now));
    case 4:
      return static_cast<void>(store.compare_set("k", "", "v", now));
    case 5:
      return static_cast<void>(store.delete_key("k", now));
    case 6:
      if (which / 16 % 2 == 1) return static_cast<void>(store.set_will(keys, "v", now));
      return static_cast<void>(which / 8 % 2 == 0 ? store.exists("k", now).status() : store.hold("k", now));
    default: {
      const auto values = store.get_many(keys, now);
      return require(!values.ok() || values->size() == keys.size());
    }
  }
}

void ask(Input input) {
  std::string said = greeting(input) + std::string(4, '\0');  // the client's first request succeeds
  std::vector<std::uint8_t> calls;
  while (!input.empty() && calls.size() < most_calls) {
    calls.push_back(input.byte());
    said += answer(input);
  }
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  // Bytes that do not fit into the socket are lost, as if the connection had broken.
  static_cast<void>(send(ends[1], said.data(), said.size(), MSG_NOSIGNAL));
  shutdown(ends[1], SHUT_WR);
  const auto client =
      tcp::open_store(store_wire::Stream(Descriptor(ends[0])), {}, Deadline::after(std::chrono::seconds(10)));
  if (client.ok()) {
    for (const std::uint8_t which : calls) call(**client, which);
  }
  close(ends[1]);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::ask(tutti::fuzz::Input(data, size));
  return 0;
}
