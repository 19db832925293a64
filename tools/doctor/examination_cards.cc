#include <algorithm>
#include <memory>
#include <utility>

#include "tools/doctor/examination.h"

// This file tests the RDMA devices of pairs of hosts.
namespace tutti::tools::doctor {

// Returns an address of `one` that `other` has reached, or an empty text.
std::string Examination::reached_address(std::size_t one, std::size_t other) const {
  for (const Connection& connection : examined_.connections) {
    if (connection.from != other || connection.to != one) continue;
    const auto found = std::ranges::find(connection.paths, Outcome::reached, &Path::outcome);
    if (found != connection.paths.end()) return found->to;
  }
  return {};
}

std::vector<Examination::CardPair> Examination::card_pairs(const Round& round) const {
  const std::vector<std::size_t> up = hosts_up();
  const auto has_cards = [&](std::size_t host) {
    return std::ranges::find(up, host) != up.end() && !examined_.hosts[host].facts->cards.empty();
  };
  std::vector<CardPair> pairs;
  for (const auto& [one, other] : round) {
    const std::string address = reached_address(one, other);
    if (has_cards(one) && has_cards(other) && !address.empty())
      pairs.push_back({one, other, {.address = address}});
  }
  return pairs;
}

void Examination::test_cards_of_next_round() {
  if (card_rounds_.empty()) return finish();
  const auto pairs = std::make_shared<std::vector<CardPair>>(card_pairs(card_rounds_.front()));
  card_rounds_.pop_front();
  std::vector<Request> requests;
  for (const CardPair& pair : *pairs) {
    requests.push_back({pair.one, {.what = "port", .addresses = {pair.test.address}}});
  }
  const auto take_port = [this, pairs](std::size_t host, const ProbeAnswer& answer) {
    const auto pair = std::ranges::find(*pairs, host, &CardPair::one);
    pair->test.port = answer.port;
    if (answer.port != 0) return;
    const std::string failure = answer.failure.empty() ? "its probe names no free port" : answer.failure;
    examined_.cards.push_back({.one = host, .other = pair->other, .failure = failure});
  };
  ask_all(requests, take_port, [this, pairs] { test_cards_of(*pairs); });
}

// Both hosts of a pair take part in the test, and both report its result. The result of the first host
// counts, unless the second one lacks ports: the first one then knows only that nobody came.
void Examination::test_cards_of(const std::vector<CardPair>& pairs) {
  std::vector<Request> requests;
  for (CardPair pair : pairs) {
    if (pair.test.port == 0) continue;
    for (const std::size_t host : {pair.one, pair.other}) {
      pair.test.rank = host == pair.one ? 0 : 1;
      requests.push_back({host, {.what = "cards", .cards = pair.test}});
    }
  }
  const auto take_result = [this, pairs](std::size_t host, const ProbeAnswer& answer) {
    const auto pair = std::ranges::find_if(
        pairs, [host](const CardPair& each) { return each.one == host || each.other == host; });
    const CardResult result{.one = pair->one, .other = pair->other, .failure = answer.failure};
    if (host != result.one && !result.lacks_ports()) return;
    const auto known = std::ranges::find_if(examined_.cards, [&](const CardResult& each) {
      return each.one == result.one && each.other == result.other;
    });
    if (known == examined_.cards.end()) {
      examined_.cards.push_back(result);
    } else if (!known->lacks_ports()) {
      *known = result;
    }
  };
  ask_all(requests, take_result, [this] { test_cards_of_next_round(); });
}

}  // namespace tutti::tools::doctor
