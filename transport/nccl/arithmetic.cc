#include "transport/nccl/arithmetic.h"

#include <string>

#include "core/reduce.h"

namespace tutti::nccl {

namespace {

Status unsupported(const std::string& why) { return Status(Code::unsupported, why); }

// Returns the bits of 1 in a floating-point type.
std::uint64_t one(DataType type) {
  switch (type) {
    case DataType::float16:
      return 0x3c00;
    case DataType::bfloat16:
      return 0x3f80;
    case DataType::float32:
      return 0x3f800000;
    case DataType::float64:
      return 0x3ff0000000000000;
    case DataType::float8_e4m3:
      return 0x38;
    default:
      return 0x3c;
  }
}

}  // namespace

// NCCL multiplies integers only by integers. So it cannot multiply them by a factor such as 0.5, and
// premultiplied sums of integers are refused.
Status takes(const Fingerprint& call, int version) {
  if (call.kind == CollectiveKind::scan || call.kind == CollectiveKind::exscan ||
      call.kind == CollectiveKind::barrier)
    return unsupported("it has no " + std::string(to_string(call.kind)));
  if (!is_reduction(call.kind)) return {};
  switch (call.op) {
    case ReduceOp::Kind::user:
      return unsupported("it cannot call a program's functions");
    case ReduceOp::Kind::bit_and:
    case ReduceOp::Kind::bit_or:
    case ReduceOp::Kind::bit_xor:
      return unsupported("it has no " + std::string(to_string(call.op)));
    case ReduceOp::Kind::premultiplied_sum:
      if (!is_floating(call.type)) return unsupported("it multiplies integers by integers only");
      break;
    default:
      break;
  }
  if (reduces_float8(call) && version < first_version_with_float8) {
    return unsupported("version " + to_string(version) + " cannot add elements of type " +
                       std::string(to_string(call.type)));
  }
  return {};
}

bool reduces_float8(const Fingerprint& call) {
  return is_reduction(call.kind) &&
         (call.type == DataType::float8_e4m3 || call.type == DataType::float8_e5m2);
}

Type type_of(DataType type) {
  switch (type) {
    case DataType::int8:
      return int8;
    case DataType::uint8:
    case DataType::boolean:
      return uint8;
    case DataType::int32:
      return int32;
    case DataType::uint32:
      return uint32;
    case DataType::int64:
      return int64;
    case DataType::uint64:
      return uint64;
    case DataType::float16:
      return float16;
    case DataType::bfloat16:
      return bfloat16;
    case DataType::float32:
      return float32;
    case DataType::float64:
      return float64;
    case DataType::float8_e4m3:
      return float8_e4m3;
    case DataType::float8_e5m2:
      return float8_e5m2;
  }
  return uint8;
}

// NCCL would add truth values as bytes, and 128 + 128 would become 0, which is false. So a sum of truth
// values is their maximum, which is true if one of them is true. A product is their minimum, which is true if
// all of them are true.
Op op_of(ReduceOp::Kind op, DataType type) {
  const bool logical = type == DataType::boolean;
  switch (op) {
    case ReduceOp::Kind::sum:
      return logical ? max : sum;
    case ReduceOp::Kind::product:
      return logical ? min : product;
    case ReduceOp::Kind::min:
      return min;
    case ReduceOp::Kind::max:
      return max;
    default:
      return avg;
  }
}

std::uint64_t factor_as(DataType type, double factor) {
  const std::uint64_t in = one(type);
  std::uint64_t out = 0;
  scale(&in, &out, 1, type, factor);
  return out;
}

}  // namespace tutti::nccl
