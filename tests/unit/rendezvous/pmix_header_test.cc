// Tests that rendezvous/meeting/pmix_api.h agrees with PMIx's header, if CMake has found one.
#include <gtest/gtest.h>

#if __has_include(<pmix.h>)
#include <array>
#include <cstddef>
#include <type_traits>

#include <pmix.h>

#include "rendezvous/meeting/pmix_api.h"

namespace tutti::pmix {
namespace {

// A `Kind` holds the properties of a type that matter to the calling convention.
struct Kind {
  std::size_t size = 0;
  bool pointer = false;
  bool is_signed = false;
  bool operator==(const Kind&) const = default;
};

template <class T>
constexpr Kind kind_of() {
  return {sizeof(T), std::is_pointer_v<T>, std::is_signed_v<T>};
}

template <class Result, class... Parameters>
constexpr std::array<Kind, sizeof...(Parameters) + 1> kinds(Result (*)(Parameters...)) {
  return {kind_of<Result>(), kind_of<Parameters>()...};
}

// Returns whether a function of the header and a member of `Api` have equal kinds of results and parameters.
template <class Ours, class Theirs>
constexpr bool agree() {
  return kinds(static_cast<Ours>(nullptr)) == kinds(static_cast<Theirs*>(nullptr));
}

#define TUTTI_AGREES(member) static_assert(agree<decltype(Api::member), decltype(PMIx_##member)>())
TUTTI_AGREES(Init);
TUTTI_AGREES(Put);
TUTTI_AGREES(Commit);
TUTTI_AGREES(Fence);
TUTTI_AGREES(Get);
TUTTI_AGREES(Finalize);
TUTTI_AGREES(Error_string);
#undef TUTTI_AGREES

static_assert(sizeof(Outcome) == sizeof(pmix_status_t));
static_assert(sizeof(Scope) == sizeof(pmix_scope_t));

static_assert(sizeof(Process) == sizeof(pmix_proc_t));
static_assert(offsetof(Process, space) == offsetof(pmix_proc_t, nspace));
static_assert(sizeof(Process::space) == sizeof(pmix_proc_t::nspace));
static_assert(offsetof(Process, rank) == offsetof(pmix_proc_t, rank));

static_assert(sizeof(Value) == sizeof(pmix_value_t));
static_assert(offsetof(Value, type) == offsetof(pmix_value_t, type));
static_assert(sizeof(Value::type) == sizeof(pmix_value_t::type));
static_assert(offsetof(Value, data) == offsetof(pmix_value_t, data));

static_assert(sizeof(Info) == sizeof(pmix_info_t));
static_assert(offsetof(Info, key) == offsetof(pmix_info_t, key));
static_assert(sizeof(Info::key) == sizeof(pmix_info_t::key));
static_assert(offsetof(Info, flags) == offsetof(pmix_info_t, flags));
static_assert(sizeof(Info::flags) == sizeof(pmix_info_t::flags));
static_assert(offsetof(Info, value) == offsetof(pmix_info_t, value));

static_assert(success == PMIX_SUCCESS);
static_assert(bool_type == PMIX_BOOL);
static_assert(string_type == PMIX_STRING);
static_assert(to_all == PMIX_GLOBAL);
static_assert(collect_data == PMIX_COLLECT_DATA);

TEST(PmixHeader, AgreesWithTheDeclarations) { SUCCEED() << "the compiler has compared them"; }

}  // namespace
}  // namespace tutti::pmix

#else

TEST(PmixHeader, AgreesWithTheDeclarations) {
  GTEST_SKIP() << "pmix.h (Debian's package libpmix-dev) is not installed";
}

#endif
