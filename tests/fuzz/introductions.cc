// Fuzzes the introductions that ranks publish, and the table that rank 0 makes from them.
#include "rendezvous/meeting/introduction.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

void introduction(const std::string& text) {
  const auto rank = decode_introduction(text);
  if (!rank.ok()) {
    require(rank.status().code() == Code::protocol_error);
    return;
  }
  const auto again = decode_introduction(encode_introduction(*rank));
  require(again.ok() && again->rank == rank->rank && again->addresses == rank->addresses);
  require(again->offloads == rank->offloads);
  static_cast<void>(check_compatible(*rank, *again));
}

void table(const std::string& text) {
  const auto ranks = decode_table(text);
  if (!ranks.ok()) return;
  for (const Introduction& rank : *ranks) require(!rank.describe().empty());
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::Input input(data, size);
  const bool is_table = input.byte() == 't';
  const std::string text(input.rest());
  is_table ? tutti::fuzz::table(text) : tutti::fuzz::introduction(text);
  return 0;
}
