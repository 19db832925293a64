// Moves 64 MiB between two ranks in each round, in alternating directions, and checks what arrives. Prints
// "moved N" after round N.
//
//   rail_rank ROUNDS
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <tutti/tutti.h>

namespace {

constexpr std::size_t bytes = 64 << 20;

void fill(std::span<std::byte> memory, unsigned seed) {
  for (std::size_t at = 0; at < memory.size(); at += sizeof(std::uint32_t)) {
    const auto value = static_cast<std::uint32_t>(at * 2654435761u + seed);
    std::memcpy(memory.data() + at, &value, sizeof value);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  tutti::Communicator comm = tutti::init();
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<std::byte> place(bytes), expected(bytes);
  const tutti::Registration registration = comm.register_memory(place);
  for (unsigned round = 0; round < static_cast<unsigned>(rounds); ++round) {
    // In even rounds rank 0 sends, and in odd rounds rank 1.
    fill(expected, round);
    if (static_cast<unsigned>(comm.rank()) == round % 2) {
      std::ranges::copy(expected, place.begin());
      comm.send(std::span<const std::byte>(place), 1 - comm.rank()).wait();
    } else {
      comm.recv(std::span(place), 1 - comm.rank()).wait();
      if (!std::ranges::equal(place, expected)) throw std::runtime_error("wrong bytes have arrived");
    }
    std::cout << "moved " << round << std::endl;
  }
  comm.barrier().wait();
  return 0;
} catch (const std::exception& error) {
  std::cerr << "rail_rank: " << error.what() << "\n";
  return 1;
}
