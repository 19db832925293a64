#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tutti/status.h>

// These are the parts of PMIx that tutti uses. PMIx is found at run time, so its headers are not needed. All
// versions since 2.0 agree on these declarations. tests/unit/rendezvous/pmix_header_test.cc compares them
// with the header.
namespace tutti::pmix {

using Outcome = int;         // pmix_status_t
using Scope = std::uint8_t;  // pmix_scope_t

// A `Process` names a rank of a job (pmix_proc_t).
struct Process {
  char space[256] = {};
  std::uint32_t rank = 0;
};

// A `Value` is what PMIx keeps under a key (pmix_value_t).
struct Value {
  std::uint16_t type = 0;
  union {
    std::uint64_t largest[3];  // the first member of the union, so that all of its bytes are zero at first
    bool flag;
    char* string;
  } data = {};
};

// An `Info` is an option of a call (pmix_info_t).
struct Info {
  char key[512] = {};
  std::uint32_t flags = 0;
  Value value;
};

// The values below are those of PMIx's header (pmix_common.h).
inline constexpr Outcome success = 0;
inline constexpr Scope to_all = 3;
inline constexpr std::uint16_t bool_type = 1;
inline constexpr std::uint16_t string_type = 3;
inline constexpr std::string_view collect_data = "pmix.collect";

// An `Api` holds the functions of PMIx that tutti uses, each under its name without "PMIx_".
struct Api {
  Outcome (*Init)(Process* self, Info* options, std::size_t option_count);
  Outcome (*Put)(Scope scope, const char* key, Value* value);
  Outcome (*Commit)();
  Outcome (*Fence)(const Process* who, std::size_t count, const Info* options, std::size_t option_count);
  Outcome (*Get)(const Process* whose, const char* key, const Info* options, std::size_t option_count,
                 Value** value);
  Outcome (*Finalize)(const Info* options, std::size_t option_count);
  const char* (*Error_string)(Outcome outcome);
};

// Finds PMIx: the first library of `names` that this process has loaded, or else the first that can
// be loaded. Fails with `unsupported`, and quotes the loader's error for each name. Any thread may
// call.
Result<Api> load(std::span<const std::string> names);

}  // namespace tutti::pmix
