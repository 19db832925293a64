#include "transport/verbs/registration_cost.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <span>

#include "core/free_delete.h"
#include "transport/verbs/memory.h"

namespace tutti::verbs {
namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
constexpr std::size_t few = std::size_t{64} << 10;
constexpr std::size_t many = std::size_t{1} << 20;

// Calls a function five times. Returns how long the fastest call took, in seconds.
template <class Function>
double shortest(const Function& function) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

// Registering takes a fixed time, and a time per byte. Copying takes a time per byte only.
std::size_t measure_registration(const SharedDomain& domain) {
  constexpr std::size_t page = 4096;
  const AlignedBytes from = aligned_bytes(page, many), to = aligned_bytes(page, many);
  if (from == nullptr || to == nullptr) return never;
  std::memset(from.get(), 1, many);
  std::memset(to.get(), 1, many);
  bool failed = false;
  const auto registering = [&](std::size_t bytes) {
    return shortest([&] {
      failed = failed || !Region::add(domain, std::span(to.get(), bytes), IBV_ACCESS_LOCAL_WRITE).ok();
    });
  };
  const double register_few = registering(few);
  const double register_many = registering(many);
  const double copy_byte = shortest([&] { std::memcpy(to.get(), from.get(), many); }) / many;
  const double register_byte = std::max(register_many - register_few, 0.0) / (many - few);
  if (failed || register_byte >= copy_byte) return never;
  const double fixed = std::max(register_few - register_byte * few, 0.0);
  return static_cast<std::size_t>(std::min(fixed / (copy_byte - register_byte), 1e18));
}

}  // namespace tutti::verbs
