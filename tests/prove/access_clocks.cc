#include "tests/prove/access_clocks.h"

#include <algorithm>

namespace tutti::test {

Clocks::Clocks(std::size_t ranks) : known_(ranks, Clock(ranks)), given_(ranks) {
  for (std::size_t rank = 0; rank < ranks; ++rank) known_[rank][rank] = 1;
}

void Clocks::signal(std::size_t rank) {
  given_[rank].push_back(known_[rank]);
  ++known_[rank][rank];
}

void Clocks::await(std::size_t rank, std::size_t peer, std::uint32_t signals) {
  if (signals == 0) return;
  const Clock& news = given_[peer][signals - 1];
  Clock& known = known_[rank];
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], news[i]);
}

const Access* AccessLog::read(std::size_t cell, const Access& by) {
  Cell& touched = cells_[cell];
  if (!ordered(touched.writer, by.rank)) return &touched.writer;
  const auto mine = std::find_if(touched.readers.begin(), touched.readers.end(),
                                 [&](const Access& reader) { return reader.rank == by.rank; });
  if (mine == touched.readers.end()) {
    touched.readers.push_back(by);
  } else {
    *mine = by;
  }
  return nullptr;
}

const Access* AccessLog::write(std::size_t cell, const Access& by) {
  if (const Access* late = after(cell, by.rank)) return late;
  cells_[cell].writer = by;
  cells_[cell].readers.clear();
  return nullptr;
}

const Access* AccessLog::after(std::size_t cell, std::size_t rank) const {
  const Cell& touched = cells_[cell];
  if (!ordered(touched.writer, rank)) return &touched.writer;
  for (const Access& reader : touched.readers) {
    if (!ordered(reader, rank)) return &reader;
  }
  return nullptr;
}

}  // namespace tutti::test
