#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <tutti/c.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "bindings/c/handles.h"

namespace tutti::c {

namespace {

static_assert(static_cast<int>(DataType::int8) == TUTTI_INT8);
static_assert(static_cast<int>(DataType::uint8) == TUTTI_UINT8);
static_assert(static_cast<int>(DataType::int32) == TUTTI_INT32);
static_assert(static_cast<int>(DataType::uint32) == TUTTI_UINT32);
static_assert(static_cast<int>(DataType::int64) == TUTTI_INT64);
static_assert(static_cast<int>(DataType::uint64) == TUTTI_UINT64);
static_assert(static_cast<int>(DataType::float16) == TUTTI_FLOAT16);
static_assert(static_cast<int>(DataType::bfloat16) == TUTTI_BFLOAT16);
static_assert(static_cast<int>(DataType::float32) == TUTTI_FLOAT32);
static_assert(static_cast<int>(DataType::float64) == TUTTI_FLOAT64);
static_assert(static_cast<int>(DataType::boolean) == TUTTI_BOOL);
static_assert(static_cast<int>(DataType::float8_e4m3) == TUTTI_FLOAT8_E4M3);
static_assert(static_cast<int>(DataType::float8_e5m2) == TUTTI_FLOAT8_E5M2);
static_assert(data_type_count == TUTTI_FLOAT8_E5M2 + 1);

// The operations are in the order of the C constants, from TUTTI_SUM (1) to TUTTI_BIT_XOR.
const std::array<const ReduceOp*, 8> built_in = {&ReduceOp::sum,    &ReduceOp::product, &ReduceOp::min,
                                                 &ReduceOp::max,    &ReduceOp::avg,     &ReduceOp::bit_and,
                                                 &ReduceOp::bit_or, &ReduceOp::bit_xor};

bool is_built_in(tutti_op op) { return reinterpret_cast<std::uintptr_t>(op) <= built_in.size(); }

bool is_type(tutti_data_type type) { return type >= 0 && type < data_type_count; }

// Calls the user's C function, which takes the type as an int.
void call_user_function(const void* left, const void* right, void* out, std::size_t count, DataType type,
                        void* state) {
  const auto* op = static_cast<const tutti_op_object*>(state);
  forget_error();
  const int code = op->function(left, right, out, count, static_cast<tutti_data_type>(type), op->state);
  if (code == TUTTI_OK) return;
  const Status why = last_error();
  throw std::runtime_error(why.ok() ? "its function returned " + std::to_string(code) : why.message());
}

}  // namespace

DataType data_type(tutti_data_type type) {
  if (!is_type(type)) throw invalid(std::to_string(type) + " is not a data type");
  return static_cast<DataType>(type);
}

const ReduceOp& reduce_op(tutti_op op) {
  if (op == nullptr) throw invalid("the operation that combines elements is null");
  return is_built_in(op) ? *built_in[reinterpret_cast<std::uintptr_t>(op) - 1] : op->op;
}

Memory memory(tutti_memory kind, int device) {
  if (kind == TUTTI_HOST) return {};
  if (kind != TUTTI_CUDA) throw invalid(std::to_string(kind) + " is not a kind of memory");
  if (device < 0 || device > Memory::max_device)
    throw invalid(std::to_string(device) + " is not a CUDA device");
  return Memory::cuda(device);
}

}  // namespace tutti::c

using namespace tutti::c;

size_t tutti_data_type_size(tutti_data_type type) {
  return is_type(type) ? tutti::size_of(static_cast<tutti::DataType>(type)) : 0;
}

const char* tutti_data_type_name(tutti_data_type type) {
  // `to_string` returns string literals, which end with a NUL.
  return is_type(type) ? tutti::to_string(static_cast<tutti::DataType>(type)).data() : "unknown";
}

int tutti_op_create_premultiplied_sum(double factor, tutti_op* op) {
  return guarded([&] {
    checked(op, "the output pointer for the operation") = nullptr;
    *op = new tutti_op_object{tutti::ReduceOp::premultiplied_sum(factor)};
  });
}

int tutti_op_create_user(const char* name, tutti_op_function function, int commutative, void* state,
                         tutti_op* op) {
  return guarded([&] {
    checked(op, "the output pointer for the operation") = nullptr;
    checked(name, "the name of the operation");
    if (function == nullptr) throw invalid("the function of the operation is null");
    auto made = std::make_unique<tutti_op_object>(tutti_op_object{tutti::ReduceOp::sum, function, state});
    made->op = tutti::ReduceOp::user(name, call_user_function, commutative != 0, made.get());
    *op = made.release();
  });
}

void tutti_op_free(tutti_op op) {
  if (!is_built_in(op)) delete op;
}
