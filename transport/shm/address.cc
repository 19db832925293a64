#include "transport/shm/address.h"

#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>

namespace tutti::shm {
namespace {

constexpr std::size_t longest_name = 64;

template <class T>
bool parse(std::string_view text, int base, T& number) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, base);
  return error == std::errc() && end == last;
}

}  // namespace

std::string format(const Address& address) {
  std::array<char, 17> nonce;
  std::snprintf(nonce.data(), nonce.size(), "%016" PRIx64, address.nonce);
  return address.name + "/" + std::to_string(address.uid) + "/" + nonce.data() + "/" +
         tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::size_t last = text.rfind('/');
  if (last == text.npos) return std::nullopt;
  const auto limits = parse_limits(text.substr(last + 1));
  if (!limits) return std::nullopt;
  text = text.substr(0, last);
  const std::size_t first = text.find('/'), second = text.rfind('/');
  if (first == text.npos || first == second || first == 0 || first > longest_name) return std::nullopt;
  Address address;
  address.limits = *limits;
  address.name = text.substr(0, first);
  if (!parse(text.substr(first + 1, second - first - 1), 10, address.uid)) return std::nullopt;
  if (text.size() - second - 1 != 16 || !parse(text.substr(second + 1), 16, address.nonce))
    return std::nullopt;
  return address;
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("shm");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

}  // namespace tutti::shm
