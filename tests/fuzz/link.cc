// Fuzzes the frames that one end of a link reads, and the records in them. The first byte chooses
// the limit for the length of a record. The second byte chooses the size of the pieces in which the
// bytes arrive. The third byte is the number of records after which the owner destroys the link.
// The rest is the data from the other end.
#include "tools/run/link.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <sys/socket.h>
#include <tools/run/link.pb.h>

#include "tests/fuzz/input.h"
#include "tools/run/event_loop.h"

namespace tutti::fuzz {
namespace {

constexpr std::size_t length_bytes = 4;

struct Frames {
  std::vector<std::string> records;  // all records that are not empty
  bool too_long = false;             // the next record is longer than allowed
};

Frames frames_in(std::string_view bytes, std::size_t longest) {
  Frames frames;
  while (bytes.size() >= length_bytes) {
    const std::size_t length =
        Input(reinterpret_cast<const std::uint8_t*>(bytes.data()), length_bytes).number<std::uint32_t>();
    frames.too_long = length > longest;
    if (frames.too_long || bytes.size() - length_bytes < length) break;
    if (length > 0) frames.records.emplace_back(bytes.substr(length_bytes, length));
    bytes.remove_prefix(length_bytes + length);
  }
  return frames;
}

// An `Owner` sends back each record that it understands.
class Owner final : public tools::LinkEvents {
 public:
  explicit Owner(std::size_t patience) : patience_(patience) {}

  void on_record(std::string_view record) override {
    require(link != nullptr && !why);
    records.emplace_back(record);
    if (records.size() == patience_) return link.reset();
    send_back<tools::record::FromLauncher>(record);
    send_back<tools::record::FromAgent>(record);
  }
  void on_end(const Status& status) override {
    require(link != nullptr && !why);
    why = status;
  }

  std::unique_ptr<tools::Link> link;
  std::vector<std::string> records, sent;
  std::optional<Status> why;

 private:
  template <class Record>
  void send_back(std::string_view bytes) {
    Record record;
    if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const std::string again = record.SerializeAsString();
    Record same;
    require(same.ParseFromString(again) && same.what_case() == record.what_case());
    if (again.empty()) return;
    sent.push_back(again);
    link->send(record);
  }

  const std::size_t patience_;
};

std::string hear(int socket) {
  std::string heard, part(4096, '\0');
  for (ssize_t got = 0; (got = recv(socket, part.data(), part.size(), 0)) > 0;) {
    heard.append(part, 0, static_cast<std::size_t>(got));
  }
  return heard;
}

// A `Talk` holds the bytes that `talk` has sent to the link in pieces, and the link's answer.
struct Talk {
  std::string said, heard;
};
Talk talk(asio::io_context& io, int socket, std::string_view bytes, std::size_t piece) {
  Talk talk;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    const ssize_t sent = send(socket, part.data(), part.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;
    talk.said += part.substr(0, static_cast<std::size_t>(sent));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    io.poll();
    talk.heard += hear(socket);
  }
  shutdown(socket, SHUT_WR);
  io.poll();
  talk.heard += hear(socket);
  return talk;
}

template <class Item>
bool begins_with(const std::vector<Item>& whole, const std::vector<Item>& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

void run(Input input) {
  asio::io_context io{1};
  tools::AsioLoop loop(io);
  const std::size_t longest = std::size_t{16} * input.byte();
  const std::size_t piece = 1 + input.byte();
  Owner owner(input.byte());
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  const Descriptor other(ends[1]);
  owner.link = std::make_unique<tools::Link>(loop, meeting::Connection(Descriptor(ends[0])), owner,
                                             tools::LinkOptions{std::chrono::hours(1), longest});
  const Talk said = talk(io, other.get(), input.rest(), piece);

  const Frames expected = frames_in(said.said, longest);
  require(begins_with(expected.records, owner.records));
  require(begins_with(owner.sent, frames_in(said.heard, SIZE_MAX).records));
  if (owner.link == nullptr) return require(!owner.why);
  require(owner.records == expected.records && owner.why);
  require(owner.why->code() == (expected.too_long ? Code::protocol_error : Code::peer_lost));
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::run(tutti::fuzz::Input(data, size));
  return 0;
}
