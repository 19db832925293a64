#include "core/fingerprint.h"

namespace tutti {
namespace {

// This is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every bit of the input
// affects every bit of the output. So if two lists differ in a single count, their digests differ.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::string hex(std::uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 0xf];
  return text;
}

}  // namespace

Counted counted(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather_v:
    case CollectiveKind::reduce_scatter_v:
      return Counted::digest;
    case CollectiveKind::all_to_all_v:
    case CollectiveKind::gather_v:
    case CollectiveKind::scatter_v:
    case CollectiveKind::barrier:
      return Counted::nothing;
    default:
      return Counted::share;
  }
}

std::uint64_t digest_of(std::span<const std::uint64_t> counts) {
  std::uint64_t state = mix(counts.size());
  for (const std::uint64_t count : counts) state = mix(state ^ count);
  return state;
}

std::string_view name_of(const Fingerprint& call) {
  switch (call.part_of) {
    case Composite::init:
      return "init";
    case Composite::split:
      return "split";
    case Composite::allocate:
      return "allocate";
    case Composite::group:
      return "group";
    case Composite::offload:
      return "offload";
    case Composite::none:
      break;
  }
  return to_string(call.kind);
}

std::optional<std::uint64_t> known_bytes(const Fingerprint& call) {
  if (call.part_of != Composite::none || counted(call.kind) != Counted::share) return std::nullopt;
  return call.count * size_of(call.type);
}

std::string to_string(const Fingerprint& call, std::string_view algorithm) {
  if (call.part_of != Composite::none) return std::string(name_of(call)) + "()";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (counted(call.kind) == Counted::digest) add("counts=#" + hex(call.count));
  if (counted(call.kind) == Counted::share) add("count=" + std::to_string(call.count));
  if (call.kind != CollectiveKind::barrier) add(std::string(to_string(call.type)));
  if (is_reduction(call.kind)) add(std::string(to_string(call.op)));
  if (has_root(call.kind)) add("root=" + std::to_string(call.root));
  if (call.algorithm != 0)
    add("algorithm=" + (algorithm.empty() ? std::to_string(call.algorithm) : std::string(algorithm)));
  if (call.on_device) add("on a device");
  return std::string(to_string(call.kind)) + "(" + text + ")";
}

}  // namespace tutti
