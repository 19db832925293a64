// Fuzzes init URLs and literal addresses.
#include "rendezvous/launch/url.h"

#include <tutti/address.h>
#include <tutti/types.h>

#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  const std::string text(fuzz::Input(data, size).rest());
  if (const auto url = parse_url(text); url.ok()) {
    fuzz::require(!url->rank || *url->rank >= 0);
    fuzz::require(!url->world_size || *url->world_size > 0);
    fuzz::require(url->scheme != InitUrl::Scheme::tcp || (!url->host.empty() && url->port != 0));
    fuzz::require(url->scheme != InitUrl::Scheme::file || !url->path.empty());
  }
  if (const auto address = parse_address(text, 1)) {
    fuzz::require(address->port() == 1 && parse_address(address->host(), 1).has_value());
  }
  static_cast<void>(names_loopback(text));
  return 0;
}
