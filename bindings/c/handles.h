#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tutti/c.h>
#include <tutti/communicator.h>
#include <tutti/reduce_op.h>
#include <tutti/work.h>

#include "bindings/c/error.h"

// These structures are the opaque types of the C interface.
struct tutti_comm {
  tutti::Communicator communicator;
};

struct tutti_work {
  tutti::Work work;
};

struct tutti_allocation {
  tutti::Allocation allocation;
};

struct tutti_registration {
  tutti::Registration registration;
};

struct tutti_op_object {
  tutti::ReduceOp op;
  tutti_op_function function = nullptr;
  void* state = nullptr;
};

namespace tutti::c {

// Returns a copy of the caller's structure. `defaults` provides the members that the caller's
// version of the structure lacks, and all members if `given` is null.
template <class T>
T known_part(const T* given, T defaults) {
  if (given != nullptr) std::memcpy(&defaults, given, std::min(given->struct_size, sizeof(T)));
  return defaults;
}

// Copies `value` into `*given`. It omits the members that the caller's version of the structure
// lacks. Throws if `given` is null.
template <class T>
void fill(T* given, T value) {
  if (given == nullptr) throw invalid("the structure to fill is null");
  value.struct_size = given->struct_size;
  std::memcpy(given, &value, std::min(given->struct_size, sizeof(T)));
}

// Returns `pointer` as a reference, and throws if it is null. `what` is the pointer's name in the
// error.
template <class T>
T& checked(T* pointer, const char* what) {
  if (pointer == nullptr) throw invalid(std::string(what) + " is null");
  return *pointer;
}

// These functions convert a value from the caller. They throw `invalid_argument` if the value is not valid.
DataType data_type(tutti_data_type type);
const ReduceOp& reduce_op(tutti_op op);
Memory memory(tutti_memory kind, int device);

// Converts a caller's `timeout_ns`, and throws if it is negative. INT64_MAX means no limit.
inline std::chrono::nanoseconds duration(std::int64_t timeout_ns) {
  if (timeout_ns < 0) throw invalid("a timeout must not be negative");
  return std::chrono::nanoseconds(timeout_ns);
}

// `How` holds the options of a call, and the kind of memory of its buffers.
struct How : CallOptions {
  Memory memory;
};
// Converts a caller's options. Throws `invalid_argument` if they are not valid.
How call_options(const tutti_call_options* options);

// Calls `start(communicator, how)`, which starts an operation. Stores the operation's handle in `*work`,
// or waits for the operation if `work` is null.
template <class Start>
int issue(tutti_comm* comm, const tutti_call_options* options, tutti_work** work, Start&& start) {
  if (work != nullptr) *work = nullptr;
  return guarded([&] {
    Work started = start(checked(comm, "the communicator").communicator, call_options(options));
    if (work == nullptr) {
      started.wait();
    } else {
      *work = new tutti_work{std::move(started)};
    }
  });
}

}  // namespace tutti::c
