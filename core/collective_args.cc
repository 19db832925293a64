#include "core/collective_args.h"

namespace tutti {
namespace {

// The _v kinds whose counts every rank knows.
bool has_known_counts(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather_v || kind == CollectiveKind::reduce_scatter_v;
}

// The other _v kinds: counts that only some ranks know, checked leg by leg instead.
bool has_private_counts(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all_v || kind == CollectiveKind::gather_v ||
         kind == CollectiveKind::scatter_v;
}

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every bit of the input moves
// every bit of the output, so chaining it never loses a difference in a single count.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t digest(std::span<const std::uint64_t> counts) {
  std::uint64_t state = mix(counts.size());
  for (const std::uint64_t count : counts) state = mix(state ^ count);
  return state;
}

std::uint64_t agreed_count(const CollectiveArgs& args) {
  if (args.kind == CollectiveKind::barrier || has_private_counts(args.kind)) return 0;
  if (!has_known_counts(args.kind)) return args.count;
  const bool output_side =
      args.input_counts.empty() || (args.kind == CollectiveKind::all_gather_v && !args.output_counts.empty());
  return digest(output_side ? args.output_counts : args.input_counts);
}

std::string hex(std::uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 0xf];
  return text;
}

}  // namespace

Fingerprint fingerprint(const CollectiveArgs& args) {
  // Fields without meaning for the kind stay at their defaults, so that they cannot make equal calls look
  // unequal.
  Fingerprint call;
  call.kind = args.kind;
  call.algorithm = args.algorithm;
  call.count = agreed_count(args);
  if (args.kind != CollectiveKind::barrier) call.type = args.type;
  if (is_reduction(args.kind)) call.op = args.op.kind();
  if (has_root(args.kind)) call.root = args.root;
  return call;
}

Composite composite_of(const Fingerprint& call) {
  const bool part = call.algorithm >= static_cast<std::uint8_t>(Composite::init);
  return part ? static_cast<Composite>(call.algorithm) : Composite::none;
}

std::string_view name_of(const Fingerprint& call) {
  switch (composite_of(call)) {
    case Composite::init:
      return "init";
    case Composite::split:
      return "split";
    case Composite::allocate:
      return "allocate";
    case Composite::none:
      break;
  }
  return to_string(call.kind);
}

std::optional<std::uint64_t> known_bytes(const Fingerprint& call) {
  if (composite_of(call) != Composite::none) return std::nullopt;
  const bool counted =
      call.kind != CollectiveKind::barrier && !has_known_counts(call.kind) && !has_private_counts(call.kind);
  if (!counted) return std::nullopt;
  return call.count * size_of(call.type);
}

std::string to_string(const Fingerprint& call, std::string_view algorithm) {
  if (composite_of(call) != Composite::none) return std::string(name_of(call)) + "()";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (has_known_counts(call.kind)) {
    add("counts=#" + hex(call.count));
  } else if (call.kind != CollectiveKind::barrier && !has_private_counts(call.kind)) {
    add("count=" + std::to_string(call.count));
  }
  if (call.kind != CollectiveKind::barrier) add(std::string(to_string(call.type)));
  if (is_reduction(call.kind)) add(std::string(to_string(call.op)));
  if (has_root(call.kind)) add("root=" + std::to_string(call.root));
  if (call.algorithm != 0)
    add("algorithm=" + (algorithm.empty() ? std::to_string(call.algorithm) : std::string(algorithm)));
  return std::string(to_string(call.kind)) + "(" + text + ")";
}

}  // namespace tutti
